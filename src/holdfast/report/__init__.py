"""Results for people and for programs. Nothing here reaches Spark, nor reads a row.

snapshot.py   what a version says, read from its files
forms.py      what ``--format json`` prints; docs/json.md describes it
terminal.py   what the terminal shows, kind by kind
progress.py   what goes on, on standard error, when it takes a while
failures.py   errors as one line and an exit code
"""

from __future__ import annotations

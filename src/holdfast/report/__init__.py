"""Results for people and for programs. Nothing here reaches Spark, nor reads a row.

snapshot.py   what a version says, read from its files
forms.py      what ``--format json`` prints; docs/json.md describes it
versions.py   what each version changed, and how two of them differ
terminal/     what the terminal shows: a version, one rule, a batch, expectations, the history
document.py   what the report page shows, as one JSON document; lives.py: when constraints held
page/         the report page: one HTML file over that document
serve.py      the same page from a small web server
notebook.py   what a notebook shows of a profile
progress.py   what goes on, on standard error, when it takes a while
failures.py   errors as one line and an exit code
"""

from __future__ import annotations

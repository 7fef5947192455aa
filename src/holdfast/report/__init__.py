"""Results for people and programs: text, JSON and a page. Reaches no Spark and reads no rows.

snapshot.py  what a version contains, read from its files
forms.py     what ``--format json`` prints; docs/json.md describes it
shown.py     a version as text and as JSON, as it was asked for
versions.py  what each version changed, and how two versions differ
terminal/    text for the terminal: a version, one rule, a batch, expectations, the history
document.py  everything that the report page shows, as one JSON document
junit.py     what a batch breaks, as a test report for continuous integration
standing.py  how far rows are from a rule, in words
page/        the report page: one HTML file over that document
serve.py     the same page from a small web server
notebook.py  what a notebook shows of a profile
written.py   files of results, such as long lists
published.py versions as Parquet files, for dashboards
published_delta.py  the same as Delta tables
"""

from __future__ import annotations

"""Holdfast finds the constraints that hold in tables and keeps them true as rows change.

>>> from holdfast import Profile
>>> profile = Profile.open("shop")  # doctest: +SKIP
>>> profile.keys("orders")  # doctest: +SKIP
[<Key orders: key(id)>]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from holdfast.api import Profile
    from holdfast.export.files import Exported
    from holdfast.feeds.followed import FeedTable, Followed
    from holdfast.input.batch_files import batch_files
    from holdfast.input.change_rows import ChangeRows
    from holdfast.input.sources import Source
    from holdfast.kinds.denial_constraints.predicate_listing import Predicates
    from holdfast.kinds.denial_constraints.reading import Denials
    from holdfast.kinds.functional_dependencies.reading import Dependencies
    from holdfast.kinds.inclusion_dependencies.foreign_keys import Facts
    from holdfast.kinds.inclusion_dependencies.reading import Inclusions
    from holdfast.kinds.ranking import TableRanking
    from holdfast.model.changes import (
        BatchChanges,
        Broken,
        Changes,
        ConstraintChange,
        ErrorChange,
        KindChanges,
        Superseded,
    )
    from holdfast.model.column_values import Bounds, Domain, Pattern
    from holdfast.model.columns import ColumnFacts
    from holdfast.model.commits import Choice, EvidenceRecord, LastStep
    from holdfast.model.comparisons import Comparison, Space
    from holdfast.model.constraints import (
        AgreeSet,
        Constraint,
        FunctionalDependency,
        Key,
        NonKey,
        NotNull,
    )
    from holdfast.model.denial_constraints import DenialConstraint, OrderRule, Predicate
    from holdfast.model.errors import (
        BatchError,
        ConflictError,
        HoldfastError,
        InputError,
        OvertakenError,
        RuleError,
        SchemaError,
        SetupError,
        SourceError,
        StoreError,
        UnknownTableError,
        UnreachableError,
    )
    from holdfast.model.expectations import (
        Expectation,
        ExpectationChange,
        Group,
        Quarantine,
        Standing,
        Suggestion,
        Tally,
    )
    from holdfast.model.explanation import (
        ChangedRows,
        Event,
        Example,
        Explanation,
        Nearby,
        Past,
        Removal,
        Stretch,
        Violations,
    )
    from holdfast.model.following import FeedFailure, FeedRun, FeedStatus, FeedStep, FeedStop
    from holdfast.model.inclusion_dependencies import (
        Attribute,
        Cluster,
        ForeignKey,
        InclusionDependency,
    )
    from holdfast.model.near import GroupSums, NearChange, NearList, NearRule, Suspect, Suspects
    from holdfast.model.options import Options
    from holdfast.model.ranking import Grain, Ranked, Stability
    from holdfast.model.results import Results
    from holdfast.model.versions import Entry, KindDiff, TableDiff, Verification
    from holdfast.model.whole_tables import Finding, Newest, RowCount
    from holdfast.report.snapshot import Index, Snapshot, TableSnapshot

_PLACES = {
    "Profile": "api",
    "Exported": "export.files",
    "BatchChanges": "model.changes",
    "Changes": "model.changes",
    "Entry": "model.versions",
    "Broken": "model.changes",
    "ErrorChange": "model.changes",
    "KindChanges": "model.changes",
    "KindDiff": "model.versions",
    "Superseded": "model.changes",
    "TableDiff": "model.versions",
    "Verification": "model.versions",
    "ColumnFacts": "model.columns",
    "Choice": "model.commits",
    "AgreeSet": "model.constraints",
    "Attribute": "model.inclusion_dependencies",
    "Cluster": "model.inclusion_dependencies",
    "Bounds": "model.column_values",
    "Constraint": "model.constraints",
    "Domain": "model.column_values",
    "DenialConstraint": "model.denial_constraints",
    "ForeignKey": "model.inclusion_dependencies",
    "FunctionalDependency": "model.constraints",
    "InclusionDependency": "model.inclusion_dependencies",
    "Key": "model.constraints",
    "Newest": "model.whole_tables",
    "RowCount": "model.whole_tables",
    "Finding": "model.whole_tables",
    "NonKey": "model.constraints",
    "NotNull": "model.constraints",
    "Predicate": "model.denial_constraints",
    "BatchError": "model.errors",
    "ConflictError": "model.errors",
    "OvertakenError": "model.errors",
    "HoldfastError": "model.errors",
    "InputError": "model.errors",
    "MissingFileError": "model.errors",
    "RuleError": "model.errors",
    "SchemaError": "model.errors",
    "SetupError": "model.errors",
    "SourceError": "model.errors",
    "StoreError": "model.errors",
    "UnknownTableError": "model.errors",
    "UnreachableError": "model.errors",
    "FeedFailure": "model.following",
    "FeedRun": "model.following",
    "FeedStatus": "model.following",
    "FeedStep": "model.following",
    "FeedStop": "model.following",
    "FeedTable": "feeds.followed",
    "Followed": "feeds.followed",
    "ChangeRows": "input.change_rows",
    "ChangedRows": "model.explanation",
    "Event": "model.explanation",
    "Example": "model.explanation",
    "Explanation": "model.explanation",
    "Nearby": "model.explanation",
    "Past": "model.explanation",
    "Pattern": "model.column_values",
    "Removal": "model.explanation",
    "Stretch": "model.explanation",
    "Violations": "model.explanation",
    "Grain": "model.ranking",
    "Ranked": "model.ranking",
    "Stability": "model.ranking",
    "Expectation": "model.expectations",
    "ExpectationChange": "model.expectations",
    "Group": "model.expectations",
    "Quarantine": "model.expectations",
    "Standing": "model.expectations",
    "Suggestion": "model.expectations",
    "Tally": "model.expectations",
    "TableRanking": "kinds.ranking",
    "Limits": "model.limits",
    "LookUp": "model.batch_indexes",
    "NearChange": "model.near",
    "NearList": "model.near",
    "NearRule": "model.near",
    "GroupSums": "model.near",
    "Suspect": "model.near",
    "Suspects": "model.near",
    "Options": "model.options",
    "Results": "model.results",
    "ConstraintChange": "model.changes",
    "Facts": "kinds.inclusion_dependencies.foreign_keys",
    "Dependencies": "kinds.functional_dependencies.reading",
    "Inclusions": "kinds.inclusion_dependencies.reading",
    "Denials": "kinds.denial_constraints.reading",
    "Predicates": "kinds.denial_constraints.predicate_listing",
    "Space": "model.comparisons",
    "Comparison": "model.comparisons",
    "OrderRule": "model.denial_constraints",
    "EvidenceRecord": "model.commits",
    "LastStep": "model.commits",
    "Index": "report.snapshot",
    "Snapshot": "report.snapshot",
    "TableSnapshot": "report.snapshot",
    "Source": "input.sources",
    "batch_files": "input.batch_files",
}

__all__ = [
    "AgreeSet",
    "Attribute",
    "BatchChanges",
    "BatchError",
    "Bounds",
    "Broken",
    "ChangeRows",
    "ChangedRows",
    "Changes",
    "Choice",
    "Cluster",
    "ColumnFacts",
    "Comparison",
    "ConflictError",
    "Constraint",
    "ConstraintChange",
    "DenialConstraint",
    "Denials",
    "Dependencies",
    "Domain",
    "Entry",
    "ErrorChange",
    "Event",
    "EvidenceRecord",
    "Example",
    "Expectation",
    "ExpectationChange",
    "Explanation",
    "Exported",
    "Facts",
    "FeedFailure",
    "FeedRun",
    "FeedStatus",
    "FeedStep",
    "FeedStop",
    "FeedTable",
    "Finding",
    "Followed",
    "ForeignKey",
    "FunctionalDependency",
    "Grain",
    "Group",
    "GroupSums",
    "HoldfastError",
    "InclusionDependency",
    "Inclusions",
    "Index",
    "InputError",
    "Key",
    "KindChanges",
    "KindDiff",
    "LastStep",
    "Limits",
    "LookUp",
    "MissingFileError",
    "NearChange",
    "NearList",
    "NearRule",
    "Nearby",
    "Newest",
    "NonKey",
    "NotNull",
    "Options",
    "OrderRule",
    "OvertakenError",
    "Past",
    "Pattern",
    "Predicate",
    "Predicates",
    "Profile",
    "Quarantine",
    "Ranked",
    "Removal",
    "Results",
    "RowCount",
    "RuleError",
    "SchemaError",
    "SetupError",
    "Snapshot",
    "Source",
    "SourceError",
    "Space",
    "Stability",
    "Standing",
    "StoreError",
    "Stretch",
    "Suggestion",
    "Superseded",
    "Suspect",
    "Suspects",
    "TableDiff",
    "TableRanking",
    "TableSnapshot",
    "Tally",
    "UnknownTableError",
    "UnreachableError",
    "Verification",
    "Violations",
    "__version__",
    "batch_files",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `import holdfast` is quick."""
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f"holdfast.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")

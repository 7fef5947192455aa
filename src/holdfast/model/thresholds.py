"""The numbers that decide how work is divided, and which of several ways is the cheaper one.

Which constraints hold, and with which errors, does not depend on them; time and memory do, and
which of several rows are shown as witnesses. They are read where they are used, from
:data:`current`, so that a test which replaces this one value takes small tables through what only
large ones would reach.

Numbers that compiled kernels take as constants are in the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Costs:
    """What a core needs for things, and how many of them are considered, in the choice between
    regions and searches."""

    pairs_a_second: float = 4e8
    """Pairs that are compared."""

    group_seconds_a_row: float = 3e-7
    """Bringing equal rows together."""

    box_seconds_a_row: float = 2e-6
    """Cutting rows into boxes."""

    edge_pairs_a_row: int = 16_384
    """Pairs compared in boxes that a region only touches."""

    word_seconds: float = 2e-6
    """Bringing one of the different pairs of a region, sorted and as both of its rows see it."""

    sweep_seconds_a_row: float = 1e-7
    """Searching for violations of a candidate with at most two columns that are not equal."""

    search_seconds_a_row: float = 1e-6
    """Searching for violations of any other one."""

    searches: float = 2.0
    """Searches that a candidate which no region validates needs: it may be refuted, and replaced by
    others."""

    options: int = 256
    """Regions of each kind that are considered in a round."""

    completion_seconds_a_row: float = 4e-6
    """Searching all pairs of rows for sets that have not held before."""

    lookup_seconds: float = 2e-6
    """Looking one row up in an index of one segment."""

    fetched_seconds_a_pair: float = 1e-6
    """Comparing a row with one that a look-up returned."""


@dataclass(frozen=True)
class Thresholds:
    """All of them, by the part of the work that they are about."""

    # Rows, as they are read and kept.

    guess_rows: int = 2_000
    """Rows that types are guessed from, before all rows are read with them."""

    segment_rows: int = 1 << 20
    """Rows at which a segment is closed, so that a task's memory has a bound."""

    segment_bytes: int = 1 << 28
    """Bytes of its words at which a segment is closed, if it has fewer rows by then."""

    block_bytes: int = 1 << 11
    """Bytes of a file that have a checksum of their own, a power of two from 16 on: a process
    compares those blocks that it uses."""

    rung_entries: int = 1 << 8
    """Every so many-th entry of a sorted array is written once more, beside the others: a search
    reads as many entries as lie between two of them."""

    piece_bytes: int = 1 << 26
    """Bytes of rows that are parsed and encoded at once."""

    joined_bytes: int = 1 << 23
    """Bytes that are worth a task to read them, and a segment of their own at first."""

    shown_bytes: int = 256
    """Bytes of the lowest and the highest text of a column that are kept."""

    raw_rows: int = 4_096
    """Raw rows that are decompressed to show one."""

    undivided_rows: int = 10_000
    """Rows that are not worth dividing among tasks."""

    light_rows: int = 1 << 17
    """Rows that a call may go through and share its task with others: a task of its own costs
    some hundredths of a second."""

    located_rows: int = 2_000
    """Rows to delete or update that are worth a task to find them."""

    sent_positions: int = 1 << 16
    """Positions of rows that a task sends to the driver; more of them go there as a file."""

    grouped_rows: int = 1 << 16
    """Rows of a table whose near rules are counted without an estimate, by tasks that see all."""

    drawn_rows: int = 1 << 14
    """Rows of a longer table that its near rules are estimated from."""

    merged_segments: int = 8
    """Segments of one tier that are merged into one of the next."""

    difference_share: float = 0.5
    """The most bytes of all differences, as a share of those of their base."""

    differences: int = 16
    """The most differences that a base has."""

    tables_at_once: int = 64
    """Tables that are profiled side by side, so that they share jobs."""

    swept_tables: int = 16
    """Tables up to which every clean-up looks at the files of all of them."""

    # Indexes.

    lookup_rows: float = 4_096
    """Rows that a look-up in one column may return; an lhs without such a column is
    *unselective*."""

    own_index_rows: int = 64
    """Rows that a look-up returns from which on an index over the whole lhs is the better one."""

    # Searches for pairs that refute candidates.

    sample_rows: int = 40_000
    """Rows of a segment whose neighbours give the first evidence."""

    round_candidates: int = 10_000
    """Candidates of a round where the time is bounded: the clock is read after each round."""

    cheap_probe: int = 10_000_000
    """Rows that a probe may compare, whatever a search would cost."""

    search_cost: float = 6
    """Rows that a probe compares in the time in which a search goes through one."""

    part: int = 16
    """A search in part goes through one row in so many: cheap, and it refutes most that can be
    refuted."""

    part_from_rows: int = 1 << 18
    """Tables smaller than this are searched in full at once."""

    part_from_candidates: int = 64
    """So few candidates are searched in full at once too: mostly no further search follows."""

    few_combinations: int = 4_096
    """Combinations of values on an lhs up to which it gets representatives."""

    large_groups: int = 64
    """Rows per combination from which representatives are worth more than all pairs of small
    groups."""

    sparse_rows: float = 0.125
    """Rows for each combination of values in columns up to which an index over these is sparse:
    hardly two rows share a code."""

    sparse_indexes: int = 8
    """Sparse indexes that searches for few candidates start from, at most."""

    column_cost: float = 2.5
    """What a search from a single column takes, times one from a sparse index, its sorting
    included."""

    frequent_rows: int = 10_000
    """Rows that values of every column of an lhs have, from which it is tried with representatives
    however many combinations there could be."""

    representatives: int = 1 << 13
    """Combinations of values on an lhs that there is room for representatives of; a power of
    two."""

    surveyed_rows: int = 1 << 16
    """Rows that are surveyed apart from others, at least: so many that the few which are kept for
    each combination of values are few beside them."""

    survey: int = 1 << 23
    """Rows times candidates that are worth a task of their own to survey."""

    mask_room: int = 1 << 15
    """Distinct masks that a search has room for."""

    narrowed_rows: int = 64
    """Rows that a look-up returns from which on they are narrowed by a second one."""

    group_rows: int = 4_096
    """Rows of a group that a batch row is compared with once the first of them refuted
    something."""

    # Counting all pairs.

    tile_rows: int = 32_767
    """Rows on a side of a tile. The values of both sides are numbered together, in 16 bits then,
    which is what the kernel compares."""

    tile_pairs: int = 1 << 16
    """Pairs that are not worth a task of their own."""

    gpu_tile_rows: int = 1 << 20
    """Rows on a side of a tile for a GPU, whose kernel takes sides of any length: a tile is loaded,
    and its words are added up, while the GPU waits, so that few large ones are best. As long as a
    segment, so that a task takes no more memory than others do."""

    gpu_tile_pairs: int = 1 << 38
    """Pairs that are not worth a task of their own where a GPU counts them: within about a second,
    and tasks would wait for each other."""

    # Completing the evidence of long tables.

    all_pairs: int = 1 << 31
    """Pairs of a table that are all compared, because that takes seconds."""

    sample_pairs_a_row: int = 4_096
    """Random pairs that are compared first."""

    sample_tile_rows: int = 8_192
    """Rows on a side of a random tile."""

    windows: int = 16
    """Stretches of neighbours that are compared first, of each column."""

    window_rows: int = 1_024
    """Neighbours in the order of a column that are all compared with each other."""

    hurried_sample: tuple[int, int, int] = (128, 4, 64)
    """The same three, rows of a tile first, where time can end."""

    evidences_compared: float = 3e8
    """Pairs of evidences that are compared in a second, to find out which are maximal: a sample of
    more of them than there is time for would be of no use."""

    drawn_pairs: int = 20_000
    """Random pairs whose evidence is kept, so that it is known how near rows come to breaking a
    rule: within a hundredth or so."""

    drawn_equal_pairs: int = 4_096
    """Random pairs of rows that are equal in a column whose evidence is kept, for each column, so
    that it is known how many pairs try a rule that is about rows which agree."""

    share_pairs: int = 10_000_000
    """Pairs that are worth a task of their own."""

    share_pairs_a_row: int = 128
    """Pairs for each row of the table that are worth a task of their own: every task brings all
    rows together first, which takes as long as comparing so many."""

    shown_pairs: int = 64
    """Violating pairs that are brought back for a candidate."""

    violating_rows: int = 4_096
    """Rows of violating pairs that are all compared with each other."""

    task_candidates: int = 512
    """Candidates that each task searches violations of in a round, at most."""

    coded_rows: int = 32_768
    """Rows of a table that are coded together with those of a batch."""

    costs: Costs = field(default_factory=Costs)
    """What things cost, for the choices between regions and searches, and between look-ups and
    comparisons with all rows."""

    # Looking the rows of a batch up for denial constraints.

    lookup_table_rows: int = 1 << 18
    """Rows of a table from which on it gets indexes for look-ups: a batch is compared with all
    rows of a shorter one in no time."""

    returned_rows: int = 256
    """Rows that a look-up by equal columns may return; where none returns so few, inequalities
    join in."""

    index_rows: int = 64
    """Rows that look-ups return whose comparison is worth as much as having an index less."""

    lookup_indexes: int = 32
    """The most indexes that a table has for look-ups."""

    whole_share: float = 0.0025
    """Of a segment's rows, from which on a row that so many go with is compared with all."""

    fetched_pairs: int = 1 << 18
    """Pairs that look-ups returned which are compared at once."""

    recent_share: float = 0.25
    """Of a table's rows, up to which those that have come since a candidate held are looked up."""

    listed_subkeys: int = 1 << 13
    """The most subkeys, with repetitions, whose pairs of rows are listed."""

    subkey_pairs_expected: float = 4_000
    """The most pairs of rows that would agree in a subkey if its columns were independent. Up to
    about here a search for keys brings them together anyway."""

    listed_pairs_a_mask: int = 64
    """Pairs that are listed of an agree-set: so many that deletes seldom take them all, even batch
    after batch of those that it is shown with."""

    past_sets: int = 1 << 16
    """The most sets of which it is remembered up to which row they hold."""

    examined_pairs: int = 1 << 34
    """Pairs of rows that are compared to find what violates one rule: within some minutes."""

    # Values, and sets of them.

    task_cells: int = 1 << 19
    """Cells that one task counts and compares by itself: a second job would cost more."""

    task_entries: int = 1 << 22
    """Entries that a task holds at once, so that its memory has a bound."""

    overlap_cells: int = 1 << 20
    """Pairs of columns whose numbers of shared values one file has, of a large run of them."""

    looked_up_rows: int = 1 << 17
    """Rows of a batch whose tuples are looked up; with more of them sets are compared in full."""

    merged_runs: int = 8
    """Runs of one tier that are merged into one of the next."""

    small_run: int = 1 << 15
    """Entries below which all runs are of the lowest tier."""


current = Thresholds()
"""Those that are in force."""

"""What the steps of a first profile and of a batch read, write, move and hold, as formulas: the
cost model of docs/scale.md.

``python -m benchmarks.scale_model`` prints the tables of that page, and ``python -m benchmarks
model`` compares the formulas with real runs. Bytes *read* are those that tasks take from files
(``runtime/reads.py``); the disk gives them in whole blocks, which is more where rows lie apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.kernels.index import SKETCH, SPREAD
from holdfast.model.commits import Segment
from holdfast.model.records import to_form
from holdfast.model.thresholds import Thresholds
from holdfast.store.log import canonical
from holdfast.tasks.segments import ROWS, most_rows

LIMITS = Thresholds()
ENTRY = 12
"""Bytes of a row in an index: its code and its position."""
SIGNATURE = 8
"""Bytes of the signature of a row, beside the index of whole rows."""
VALUE = 28
"""Bytes of a value of a column in a run: its code, the column and how often it occurs."""
LOOKUP = 20
"""Bytes that a look-up in an index of one segment takes: where its code begins and ends, and a
position."""


@dataclass(frozen=True)
class Amount:
    """What calls did, or are expected to do."""

    calls: int = 0
    read: int = 0
    sent: int = 0  # to the driver
    arrays: int = 0  # bytes of that which are in arrays
    seconds: float = 0.0  # of a processor

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.calls + other.calls,
            self.read + other.read,
            self.sent + other.sent,
            self.arrays + other.arrays,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True)
class Layout:
    """A table, and how it is divided."""

    rows: int
    columns: int
    words: int  # of a row, those of nulls among them
    segment_rows: int
    tasks: int  # at once

    @property
    def row(self) -> int:
        """Bytes of an encoded row."""
        return 8 * self.words

    @property
    def offer(self) -> int:
        """Bytes of a row that is offered as a partner of a drawn one."""
        return 8 * (4 + -(-self.columns // 64))

    @property
    def segments(self) -> int:
        """Of how many segments it is."""
        return -(-self.rows // self.segment_rows)

    @property
    def shares(self) -> int:
        """Calls that each go through some of the segments."""
        return min(self.tasks, self.segments)

    @property
    def ranges(self) -> int:
        """Calls that each go through a range of codes in all segments."""
        return max(self.tasks, self.segments)


@dataclass(frozen=True)
class Counts:
    """What only the rows of a table can say, counted in a run."""

    kept: int  # indexes, beside that of whole rows
    built: int  # indexes, with those that only searches need
    builds: int  # jobs that build them
    searches: float  # passes through an index; one through a part of it counts less
    gathered: float  # rows that searches bring together, for each row
    surveys: int  # passes through all rows in search of representatives
    drawn: tuple[tuple[int, int], ...]  # rows drawn for near rules, and passes to offer partners
    offers: float  # partners that all tasks offer
    group_passes: int  # through all rows, to count groups of near rules exactly
    grouped: float  # bytes that are written for that, and read once, for each row
    tuples: float  # entries of tuples that are counted, for each row
    value_passes: int  # through all rows, to count values and tuples
    counted: float  # values of columns that tasks count, for each row
    distinct: float  # values of columns in all rows, for each row
    looked_up: int = 0  # indexes in which each row of a batch is looked up
    returned: float = 0.0  # bytes of what these look-ups return, for each row of a batch


def first_reads(layout: Layout, counts: Counts) -> dict[str, int]:
    """Bytes that the tasks of a first profile read, by kind of task."""
    rows, row, drawn_row = layout.rows, layout.row, 8 * (1 + layout.words)
    drawn = sum(number for number, _ in counts.drawn)
    passes = sum(times for _, times in counts.drawn)
    seen = sum(number * times for number, times in counts.drawn)
    return {
        "ingest": 0,
        "sample": min(layout.segment_rows, LIMITS.sample_rows) * layout.segments * row,
        "duplicates": rows * ENTRY,
        "build": counts.builds * rows * row,
        "search": round(counts.searches * rows * ENTRY) + round(counts.gathered * rows) * row,
        "representatives": counts.surveys * rows * row,
        "draw_rows": drawn * row,
        "offer_partners": passes * rows * row + layout.shares * seen * drawn_row,
        "merge_partners": layout.tasks * drawn * drawn_row + round(counts.offers) * layout.offer,
        "write_groups": counts.group_passes * rows * row,
        "count_written": round(counts.grouped * rows),
        "count": counts.value_passes * rows * row,
        "move": round(counts.counted * rows) * VALUE,
        "recount": round(counts.tuples * rows) * VALUE,
    }


def visits(layout: Layout, counts: Counts) -> dict[str, int]:
    """How often the tasks of a first profile go to a file, by kind of task."""
    segments, ranges = layout.segments, layout.ranges
    draws, shares = len(counts.drawn), layout.shares
    passes = sum(times for _, times in counts.drawn)
    return {
        "ingest": segments,
        "sample": segments,
        "duplicates": ranges * segments,
        "build": counts.builds * segments,
        "search": round(counts.searches * ranges * segments),
        "representatives": counts.surveys * segments,
        "draw_rows": draws * shares,
        "offer_partners": passes * (segments + shares * shares),
        "merge_partners": (draws + passes) * layout.tasks * shares,
        "write_groups": counts.group_passes * segments,
        "count_written": counts.group_passes * ranges * shares,
        "count": counts.value_passes * segments,
        "move": value_ranges(layout, counts.counted) * counted_files(layout),
        "recount": value_ranges(layout, counts.tuples) * counted_files(layout),
    }


def counted_files(layout: Layout) -> int:
    """Files of counted values: one for each task, or for as many values as a task holds."""
    return max(layout.shares, round(layout.rows * layout.columns / LIMITS.task_entries))


def value_ranges(layout: Layout, entries: float) -> int:
    """Ranges of codes in which so many entries for each row are brought together."""
    return max(layout.tasks, -(-round(entries * layout.rows) // LIMITS.task_entries))


def first_writes(layout: Layout, counts: Counts) -> dict[str, int]:
    """Bytes of the arrays in the files of a first profile, by kind, without raw rows. Indexes that
    only searches need are removed after it."""
    return {
        "words": layout.rows * layout.row,
        "index": layout.rows * (ENTRY * (1 + counts.kept) + SIGNATURE),
        "values": round(counts.distinct * layout.rows) * VALUE,
    }


def sketches(layout: Layout) -> int:
    """Bytes of arrays that reading sends to the driver: a fingerprint of each segment and a sketch
    of each of its columns."""
    return layout.segments * (16 + layout.columns * 8 * (SKETCH + SPREAD))


def insert_reads(layout: Layout, counts: Counts, batch: int, again: int = 0) -> dict[str, int]:
    """Bytes that tasks read to find what inserted rows, one segment of them, repeat and break.
    ``again`` of them equal a row that was deleted before."""
    own, segments = batch * layout.row, layout.segments + 1
    each, returned = batch * LOOKUP * segments, round(counts.returned * batch)
    return {
        "repeats": batch * ENTRY + 2 * own + again * layout.row + each,
        "probe": min(layout.tasks, segments) * own + counts.looked_up * each + returned,
    }


def delete_reads(layout: Layout, batch: int) -> dict[str, int]:
    """Bytes that tasks read to find rows to delete."""
    return {"locate": batch * (ENTRY + LOOKUP * layout.segments) + 4 * batch * layout.row}


def segment_form(rows: int, number: int, sizes: Mapping[str, int], indexes: Sequence[str]) -> int:
    """Bytes of a segment in a manifest, by the sizes of its files."""

    def path(kind: str) -> str:
        return f"data/{kind}-{'0' * 12}-{'0' * 12}-{sizes[kind]}-{'0' * 8}.arrow"

    names = {name: path("index") for name in (ROWS, *indexes)}
    segment = Segment(number, rows, rows, path("words"), path("raw"), None, names)
    return len(canonical(to_form(segment)))


# Far away: lineitem on clusters

CORES, MEMORY, DISK, NETWORK, READING = 4, 64e9, 1e12, 1.25e9, 1e9
"""Of an executor, which is a machine of its own: processors, bytes, and bytes in a second of its
network and of its disk."""

FAR = (10**9, 10**10)
MACHINES = (16, 100, 1_000)

SOURCE, RAW = 42, 71
"""Bytes of a row of lineitem in Parquet, and of a raw row."""

COUNTS = Counts(
    kept=8, built=8, builds=2, searches=7.437, gathered=6.704, surveys=1,
    drawn=((1 << 14, 1), (1 << 17, 1)), offers=2_344_215, group_passes=4, grouped=248.2,
    tuples=0.274, value_passes=2, counted=2.090, distinct=1.240, looked_up=9, returned=40_279,
)  # fmt: skip
"""Of lineitem at scale factor 1 in 8 segments, with 8 tasks (``benchmarks.bench_model counts``)."""

NEAR = ("draw_rows", "offer_partners", "merge_partners", "write_groups", "count_written")
VALUES = ("count", "move", "recount")

OFFERED_BY = 8
"""Tasks that offered so many partners: more tasks offer more, each from its own rows."""

RATES: dict[str, tuple[float, float]] = {
    "ingest": (9.9e-9, 4.9e-3), "sample": (1.6e-8, 1.2e-4), "duplicates": (1.4e-8, 2.5e-5),
    "build": (1.2e-9, 2.1e-3), "search": (2.4e-9, 4.2e-5), "representatives": (2.0e-10, 2.4e-5),
    "draw_rows": (2.4e-9, 1.1e-3), "offer_partners": (2.1e-9, 2.9e-4),
    "merge_partners": (2.0e-9, 1.6e-4), "write_groups": (1.0e-9, 1.1e-3),
    "count_written": (1.4e-9, 4.3e-5), "count": (2.1e-9, 4.5e-4), "move": (3.4e-9, 4.3e-5),
    "recount": (2.3e-9, 4.3e-5),
}  # fmt: skip
"""Seconds of a processor, by kind of task: for a byte, of lineitem at scale factor 1; and for a
visit of a file, as ``python -m benchmarks model`` prints it. Where that does nothing of a kind,
those of what is most like it."""

PAGE = 4_096
"""Bytes that the disk gives at least."""
BATCH = 1_000
RESULT = 300
"""Bytes of a result of a search."""
KIND_FACTS = 10_000
"""Bytes of what a segment's result says of its columns, beside sketches."""


@dataclass(frozen=True)
class Step:
    """What all tasks of a step do, on so many machines."""

    name: str
    read: float
    touched: float  # in whole blocks
    written: float
    moved: float  # to machines that lack it
    driver: float  # what comes to the driver
    seconds: float  # of processors

    def hours(self, machines: int, kept: float) -> float:
        """Until it is done: by processors, network or disks, whichever takes longest. Of what a
        machine has ``kept`` in its memory nothing is read from its disk."""
        disk = max(0.0, 1 - kept) * self.touched / READING
        return max(self.seconds / CORES, self.moved / NETWORK, disk) / machines / 3_600


def lineitem(rows: int, machines: int) -> Layout:
    """TPC-H's table on so many machines."""
    return Layout(rows, 16, 22, LIMITS.segment_rows, machines * CORES)


def scattered(layout: Layout, rows: float) -> float:
    """Bytes of blocks that hold so many random rows of a segment."""
    blocks = layout.segment_rows * layout.row / PAGE
    return PAGE * blocks * -math.expm1(rows * math.log1p(-1 / blocks))


def first_steps(layout: Layout, machines: int) -> list[Step]:
    """Of a first profile."""
    counts = offering(layout)
    reads, written, visited = (f(layout, counts) for f in (first_reads, first_writes, visits))
    rows, row, others = layout.rows, layout.row, machines - 1
    seconds = {
        kind: byte * (reads[kind] or written["words"]) + visit * visited[kind]
        for kind, (byte, visit) in RATES.items()
    }
    parts = layout.ranges * layout.segments
    brought = counts.gathered * rows / counts.searches / parts
    touched = counts.searches * (parts * scattered(layout, brought) + rows * ENTRY)
    lhs = 1 + layout.columns * (layout.columns + 1) // 2
    offers = counts.offers * layout.offer
    drawn = sum(number for number, _ in counts.drawn) * 8 * (1 + layout.words)

    def total(*kinds: str) -> float:
        return sum(seconds[kind] for kind in kinds)

    encoded = written["words"] + rows * (RAW + ENTRY + SIGNATURE)
    sampled = reads["sample"] + reads["duplicates"]
    near = sum(reads[kind] for kind in NEAR)
    values = sum(reads[kind] for kind in VALUES)
    grouped, counted = reads["count_written"], reads["move"] + reads["recount"]
    return [
        Step("reading, encoding", rows * SOURCE, rows * SOURCE, encoded, rows * SOURCE,
             sketches(layout) + layout.segments * KIND_FACTS, total("ingest")),
        Step("sampling, repeated rows", sampled, rows * (row + ENTRY), 0,
             rows * row * others / machines + others * rows * ENTRY,
             (layout.shares + layout.ranges) * RESULT, total("sample", "duplicates")),
        Step("building indexes", reads["build"], reads["build"], rows * ENTRY * counts.built, 0,
             layout.segments * counts.built * 80, total("build")),
        Step("search", reads["search"] + reads["representatives"], touched, 0,
             others * rows * (row + ENTRY * counts.built),
             counts.searches * layout.ranges * RESULT, total("search", "representatives")),
        Step("near rules", near, near, offers + drawn + grouped,
             others * drawn + others * offers + others * grouped,
             layout.tasks * lhs * 8 * (2 + layout.columns) * len(counts.drawn),
             total(*NEAR)),
        Step("values, inclusions", values, values, counted + written["values"],
             others * counted, value_ranges(layout, counts.counted) * RESULT, total(*VALUES)),
        Step("commit", 0, 0, manifest(layout), 0, manifest(layout), 0),
    ]  # fmt: skip


def offering(layout: Layout) -> Counts:
    """Lineitem's counts with the partners that so many tasks offer."""
    return replace(COUNTS, offers=COUNTS.offers / OFFERED_BY * layout.shares)


def manifest(layout: Layout) -> int:
    """Bytes of a table's manifest."""
    size = {"words": layout.segment_rows * layout.row, "index": layout.segment_rows * ENTRY,
            "raw": layout.segment_rows * RAW}  # fmt: skip
    names = [str(column) for column in range(COUNTS.kept)]
    each = segment_form(layout.segment_rows, layout.segments, size, names) + 1
    return layout.segments * each + 20_000


def batch_steps(layout: Layout) -> list[Step]:
    """Of a batch of 1,000 inserted and 1,000 deleted rows."""
    own, counts = BATCH * layout.row, COUNTS
    inserts, deletes = insert_reads(layout, counts, BATCH), delete_reads(layout, BATCH)
    indexes = 1 + counts.looked_up
    looked_up = inserts["repeats"] + inserts["probe"] + deletes["locate"]
    visited = layout.segments * (indexes + 1)
    # Each look-up ends in a block of codes and in one of positions.
    blocks = layout.segment_rows * ENTRY / PAGE
    touched = visited * PAGE * blocks * -math.expm1(2 * BATCH * math.log1p(-1 / blocks))
    merged = math.log(layout.segment_rows / BATCH, LIMITS.merged_segments)
    rewritten = merged * BATCH * (layout.row + RAW + ENTRY * (1 + counts.kept))
    values = 2 * BATCH * layout.columns * VALUE
    lookups = BATCH * visited * LIMITS.costs.lookup_seconds
    state = manifest(layout)
    return [
        Step("reading, encoding", BATCH * RAW, BATCH * RAW, 2 * (own + BATCH * (RAW + ENTRY)),
             2 * BATCH * RAW, 2 * KIND_FACTS, 0.02),
        Step("look-ups", looked_up, touched, 0, layout.shares * own,
             2 * layout.shares * RESULT, lookups),
        Step("values", 2 * values, 2 * values, values, 2 * values, 4 * RESULT, 0.05),
        Step("compaction, on average", rewritten, rewritten, rewritten, rewritten, RESULT, 0.05),
        Step("commit", state, state, state, 0, 2 * state, 0.05),
    ]  # fmt: skip


def tables() -> list[str]:
    """All tables of the page, as Markdown."""
    of_rows = (_work, _machines, _batch)
    return [*(table(rows) for rows in FAR for table in of_rows), _limits()]


def _work(rows: int) -> str:
    """What a first profile does, whatever the number of machines; or from the least to the most."""
    lines = [["step", "reads", "in whole pages", "writes", "to the driver"]]
    for steps in _by_step(rows):
        numbers = zip(*((s.read, s.touched, s.written, s.driver) for s in steps), strict=True)
        lines.append([steps[0].name, *(_spread(amounts) for amounts in numbers)])
    return _markdown(lines)


def _machines(rows: int) -> str:
    """What a first profile moves, and how long it takes."""
    heads = [f"{number:,}" for number in MACHINES]
    lines = [["step", *(f"moves, {head}" for head in heads), *(f"time, {head}" for head in heads)]]
    kept = min(1.0, MEMORY / (rows * lineitem(rows, 1).row))
    hours = [
        [step.hours(number, kept) for number, step in zip(MACHINES, steps, strict=True)]
        for steps in _by_step(rows)
    ]
    for steps, of_step in zip(_by_step(rows), hours, strict=True):
        moved = [_bytes(step.moved) for step in steps]
        lines.append([steps[0].name, *moved, *map(_time, of_step)])
    together = [_time(sum(times)) for times in zip(*hours, strict=True)]
    moved = [_bytes(sum(s.moved for s in steps)) for steps in zip(*_by_step(rows), strict=True)]
    return _markdown([*lines, ["together", *moved, *together]])


def _by_step(rows: int) -> list[tuple[Step, ...]]:
    """By step, what it does on each number of machines."""
    return [*zip(*(first_steps(lineitem(rows, each), each) for each in MACHINES), strict=True)]


def _batch(rows: int) -> str:
    """What a batch does."""
    lines = [["step of a batch", "reads", "in whole pages", "writes", "moves", "to the driver",
              "processors"]]  # fmt: skip
    for steps in zip(*(batch_steps(lineitem(rows, each)) for each in MACHINES), strict=True):
        numbers = zip(
            *((s.read, s.touched, s.written, s.moved, s.driver) for s in steps), strict=True
        )
        cells = [_spread(amounts) for amounts in numbers]
        lines.append([steps[0].name, *cells, _time(steps[0].seconds / 3_600)])
    return _markdown(lines)


def _spread(amounts: Sequence[float]) -> str:
    """An amount, or the least and the most of it."""
    ends = dict.fromkeys([_bytes(min(amounts)), _bytes(max(amounts))])
    return " to ".join(ends)


def _limits() -> str:
    """What breaks, and from which number of rows on."""
    one = lineitem(LIMITS.segment_rows, 1)
    segment, row = LIMITS.segment_rows, one.row
    of_manifest = manifest(one) - 20_000
    of_reading = sketches(one) + KIND_FACTS
    wide = Layout(most_rows(2_016), 1_000, 2_016, most_rows(2_016), 1)
    whole = row + ENTRY * COUNTS.built
    lookup = BATCH * (2 + COUNTS.looked_up) * LIMITS.costs.lookup_seconds
    found = [
        ("a manifest of more than 200 kB, which each batch reads and writes",
         segment * 200e3 / of_manifest),
        ("encoded rows that no longer fit into the memory of a machine (64 GB): searches read "
         "scattered rows from its disk", MEMORY / row),
        ("sketches of all segments on a driver that is to stay below 400 MB",
         segment * 400e6 / of_reading),
        ("sketches of 1 GiB, as much as `spark.driver.maxResultSize` allows unless it is set: "
         "reading fails", segment * 2**30 / of_reading),
        ("sketches of 1 GiB of a table with 1,000 columns of text: reading fails",
         wide.rows * 2**30 / sketches(wide)),
        ("files that searches bring to each machine of a cluster with an object store, on a disk "
         "of 1 TB", DISK / whole),
        ("look-ups of 1,000 rows that take 64 processors more than 2 s",
         segment * 2 * 64 / lookup),
    ]  # fmt: skip
    lines = [["what", "from"]]
    lines += [[what, f"{_count(rows)} rows"] for what, rows in sorted(found, key=lambda f: f[1])]
    return _markdown(lines)


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    head, *rest = (f"| {' | '.join(cells)} |" for cells in lines)
    return "\n".join([head, "|---" * len(lines[0]) + "|", *rest])


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1_000
    return f"{size:.3g} EB"


def _count(rows: float) -> str:
    power = math.floor(math.log10(rows))
    return f"{rows / 10**power:.1f} · 10{str(power).translate(_RAISED)}"


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _time(hours: float) -> str:
    if hours == 0:
        return "0 s"
    if hours < 2 / 60:
        return f"{3_600 * hours:.{0 if hours > 1 / 3_600 else 2}f} s"
    return f"{60 * hours:.0f} min" if hours < 2 else f"{hours:.1f} h"


if __name__ == "__main__":
    print("\n\n".join(tables()))

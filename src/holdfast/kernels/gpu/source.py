"""The kernels' source, for one plan.

A block of threads takes *units*: some rows of the longer side, in registers, beside a span of rows
of the other, which pass through shared memory. Every block counts the words that are frequent in
shared memory, in a table that holds at most one word in each slot; all others in the table in
device memory. That has a counter for each possible key, or finds keys by open addressing: a slot
is taken by writing the key's first word, and its other words follow; since no word of a key is 0,
a thread that comes upon a slot half written waits for the rest.

A table with a bound on its entries is never overrun: a block takes its next step only while there
is room for a step of all blocks, and else leaves the rest of its unit for a larger table.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.kernels.gpu.plan import EQUAL, ORDERED, PackingPlan, rotated

MOST = 0xF0000000
"""Pairs after which a block empties its counters, which have 32 bits."""


HOT = 1 << 14
"""Words counted in shared memory, at most."""

RESERVED = 1_024
"""Bytes of shared memory for what else the kernel and CUDA itself keep there."""


class LaunchShape(NamedTuple):
    """How work is divided among threads."""

    threads: int
    blocks: int  # on a multiprocessor, at least
    rows: int  # in the registers of a thread
    step: int  # rows in shared memory
    hot: int  # slots for frequent words; a power of two

    @property
    def tile(self) -> int:
        """Rows of a unit."""
        return self.threads * self.rows


def shape(plan: PackingPlan, shared: int) -> LaunchShape:
    """What fits the registers of a multiprocessor and the shared memory that a block may have: one
    block takes all of it, since the more words are counted there the better."""
    threads = 1_024 if plan.columns <= 8 else 512 if plan.columns <= 64 else 256
    step = max(4, min(64, 1 << (4_096 // plan.columns).bit_length() - 1))
    room = (shared - RESERVED - _rows_bytes(plan, step)) // (4 * (plan.length + 1))
    if room < 2:
        raise MemoryError(f"rows of {plan.columns:,} words leave a block no shared memory")
    hot = min(HOT, 1 << room.bit_length() - 1)
    return LaunchShape(threads, 1, 2 if plan.columns <= 8 else 1, step, hot)


def shared_bytes(plan: PackingPlan, shape: LaunchShape) -> int:
    """Shared memory of a block: rows and their ends, frequent words and their counts."""
    return _rows_bytes(plan, shape.step) + 4 * shape.hot * (plan.length + 1)


def _rows_bytes(plan: PackingPlan, step: int) -> int:
    return 4 * step * (plan.columns + 1)


def source(plan: PackingPlan, shape: LaunchShape, nulls_equal: bool, swapped: bool) -> str:
    """CUDA C++ for a plan; ``swapped`` has rows s in registers."""
    names = {
        "THREADS": shape.threads,
        "BLOCKS": shape.blocks,
        "ROWS": shape.rows,
        "STEP": shape.step,
        "HOT": shape.hot,
        "COLUMNS": plan.columns,
        "LENGTH": plan.length,
        "DIRECT": int(plan.direct > 0),
        "SWAPPED": int(swapped),
        "UNROLLED": 2 if plan.columns <= 32 else 1,
        "MOST": f"{MOST:#x}ull",
    }
    defined = "\n".join(f"#define {name} {value}" for name, value in names.items())
    return f"{defined}\n{_TYPES}\n{_keys(plan, nulls_equal)}\n{_KERNELS}"


def _keys(plan: PackingPlan, nulls_equal: bool) -> str:
    """The function that gathers the key of two packed rows."""
    lines = []
    for w, word in enumerate(plan.words):
        a, b, guards = f"a[{word.column}]", f"b[{word.column}]", f"{word.guards:#x}u"
        if word.kind == ORDERED:
            lines.append(f"u32 up{w} = {a} - {b} + {guards}, down{w} = {b} - {a} + {guards};")
            lines.append(f"u32 o{w} = (up{w} & {guards}) | ((down{w} >> 1) & ~{guards});")
            if word.nulls:
                a, b = f"a[{word.column + 1}]", f"b[{word.column + 1}]"
                lines.append(f"o{w} &= ~({a} {'^' if nulls_equal else '|'} {b});")
        elif word.kind == EQUAL:
            lines.append(f"u32 o{w} = {guards} - ({a} ^ {b});")
        else:
            lines.append(f"u32 o{w} = {a} | {b};")
    lines += [f"u32 k{j} = 0x80000000u;" for j in range(plan.length)]
    for part in plan.parts:
        moved = f"__funnelshift_l(o{part.word}, o{part.word}, {part.turn})"
        if not part.turn:
            moved = f"o{part.word}"
        lines.append(f"k{part.target} |= {moved} & {rotated(part.mask, part.turn):#x}u;")
    lines += [f"key[{j}] = k{j};" for j in range(plan.length)]
    body = "\n    ".join(lines)
    return f"IN void gather(const u32 *a, const u32 *b, u32 *key)\n{{\n    {body}\n}}"


_TYPES = r"""
typedef unsigned int u32;
typedef unsigned long long u64;
#define IN __device__ __forceinline__
"""

_KERNELS = r"""
struct Table {
    u32 *keys;      // (slots, LENGTH), unless every key has its slot
    u64 *counts;
    u64 *pairs;     // one pair of each word; null: not asked for
    u32 *size;      // how many keys there are
    u32 last;       // slots - 1
};

IN u32 mixed(const u32 *key)
{
    u32 h = key[0] * 0x9E3779B1u;
    #pragma unroll
    for (int j = 1; j < LENGTH; j++)
        h = (h ^ (h >> 15) ^ key[j]) * 0x85EBCA6Bu;
    return h;
}

IN u32 hot_slot(u32 h)
{
    return h >> (32 - __popc(HOT - 1));
}

// Where a key is in the table; it is put there if it is not.
IN u32 slot_of(const Table &table, const u32 *key, u32 h)
{
#if DIRECT
    return key[0] & 0x7FFFFFFFu;
#else
    h ^= h >> 16;
    h *= 0xC2B2AE35u;
    h ^= h >> 13;
    u32 at = h & table.last;
    while (true) {
        volatile u32 *slot = table.keys + (size_t)at * LENGTH;
        u32 first = slot[0];
        if (first == 0) {
            first = atomicCAS((u32 *)slot, 0u, key[0]);
            if (first == 0) {
                #pragma unroll
                for (int j = 1; j < LENGTH; j++)
                    slot[j] = key[j];
                atomicAdd(table.size, 1u);
                return at;
            }
        }
        if (first == key[0]) {
            bool same = true;
            #pragma unroll
            for (int j = 1; j < LENGTH; j++) {
                u32 other;
                do other = slot[j]; while (other == 0);
                same = same && other == key[j];
            }
            if (same)
                return at;
        }
        at = (at + 1) & table.last;
    }
#endif
}

template <bool CHECKED>
IN void compare(const u32 (&a)[ROWS][COLUMNS], const u32 *tile, const u32 *tile_ends, int rows,
                const int (&number)[ROWS], const int (&end)[ROWS], int first, u64 origin,
                const u32 *hot_keys, u32 *hot_counts, const Table &table)
{
    #pragma unroll UNROLLED
    for (int q = 0; q < rows; q++) {
        u32 b[COLUMNS];
#if COLUMNS % 4 == 0
        #pragma unroll
        for (int w = 0; w < COLUMNS / 4; w++) {
            uint4 four = reinterpret_cast<const uint4 *>(tile)[q * (COLUMNS / 4) + w];
            b[4 * w] = four.x, b[4 * w + 1] = four.y, b[4 * w + 2] = four.z, b[4 * w + 3] = four.w;
        }
#else
        #pragma unroll
        for (int w = 0; w < COLUMNS; w++)
            b[w] = tile[q * COLUMNS + w];
#endif
        #pragma unroll
        for (int r = 0; r < ROWS; r++) {
#if SWAPPED
            if (number[r] >= (int)tile_ends[q])
                continue;
#else
            if (CHECKED && first + q >= end[r])
                continue;
#endif
            u32 key[LENGTH];
            gather(a[r], b, key);
            u32 h = mixed(key);
            u32 hot = hot_slot(h);
            bool hit = true;
            #pragma unroll
            for (int j = 0; j < LENGTH; j++)
                hit = hit && hot_keys[j * HOT + hot] == key[j];
            if (hit) {
                atomicAdd(&hot_counts[hot], 1u);
            } else {
                u32 at = slot_of(table, key, h);
                atomicAdd(&table.counts[at], 1ull);
                if (table.pairs) {
                    u32 one = SWAPPED ? first + q : number[r];
                    u32 other = SWAPPED ? number[r] : first + q;
                    table.pairs[at] = origin + ((u64)one << 32) + other;
                }
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) count_pairs(
    const u32 *rows, const u32 *others, const int *ends, int size, u64 origin,
    const int4 *units, int number_of_units, int *next, int4 *left, int *number_left,
    u32 *keys, u64 *counts, u64 *pairs, u32 *entries, u32 last, u32 limit,
    const u32 *hot, const u32 *hot_at)
{
    Table table = {keys, counts, pairs, entries, last};
    extern __shared__ uint4 memory[];
    u32 *tile = reinterpret_cast<u32 *>(memory);
    u32 *tile_ends = tile + STEP * COLUMNS;
    u32 *hot_keys = tile_ends + STEP;
    u32 *hot_counts = hot_keys + HOT * LENGTH;
    __shared__ int taken;
    __shared__ bool full;
    for (int i = threadIdx.x; i < HOT * LENGTH; i += THREADS)
        hot_keys[i] = hot[i];
    for (int i = threadIdx.x; i < HOT; i += THREADS)
        hot_counts[i] = 0;
    u64 counted = 0;
    bool going = true;
    while (going) {
        __syncthreads();
        if (threadIdx.x == 0)
            taken = atomicAdd(next, 1);
        __syncthreads();
        if (taken >= number_of_units)
            break;
        int4 unit = units[taken];  // a tile of rows, the first and last of the others, a sure end
        u32 a[ROWS][COLUMNS];
        int number[ROWS], end[ROWS];
        #pragma unroll
        for (int r = 0; r < ROWS; r++) {
            number[r] = (unit.x * ROWS + r) * THREADS + threadIdx.x;
            bool there = number[r] < size;
            #pragma unroll
            for (int w = 0; w < COLUMNS; w++)
                a[r][w] = there ? rows[(size_t)number[r] * COLUMNS + w] : 0;
#if SWAPPED
            end[r] = 0;
#else
            end[r] = there ? ends[number[r]] : 0;
#endif
        }
        for (int first = unit.y; first < unit.z; first += STEP) {
            int here = min(STEP, unit.z - first);
            __syncthreads();
            if (threadIdx.x == 0)
                full = !DIRECT && *(volatile u32 *)table.size > limit;
            const u32 *from = others + (size_t)first * COLUMNS;
            for (int i = threadIdx.x; i < here * COLUMNS; i += THREADS)
                tile[i] = from[i];
#if SWAPPED
            for (int i = threadIdx.x; i < here; i += THREADS)
                tile_ends[i] = ends[first + i];
#endif
            __syncthreads();
            if (full) {
                if (threadIdx.x == 0)
                    left[atomicAdd(number_left, 1)] = make_int4(unit.x, first, unit.z, unit.w);
                going = false;
                break;
            }
            if (first + here <= unit.w)
                compare<false>(a, tile, tile_ends, here, number, end, first, origin,
                               hot_keys, hot_counts, table);
            else
                compare<true>(a, tile, tile_ends, here, number, end, first, origin,
                              hot_keys, hot_counts, table);
            counted += (u64)THREADS * ROWS * STEP;
            if (counted > MOST) {
                // Counters of 32 bits are emptied before they can overflow.
                __syncthreads();
                for (int i = threadIdx.x; i < HOT; i += THREADS)
                    if (hot_counts[i]) {
                        atomicAdd(&table.counts[hot_at[i]], (u64)hot_counts[i]);
                        hot_counts[i] = 0;
                    }
                counted = 0;
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < HOT; i += THREADS)
        if (hot_counts[i])
            atomicAdd(&table.counts[hot_at[i]], (u64)hot_counts[i]);
}

IN void key_of(const u32 *keys, u32 at, u32 *key)
{
#if DIRECT
    key[0] = at | 0x80000000u;
#else
    for (int j = 0; j < LENGTH; j++)
        key[j] = keys[(size_t)at * LENGTH + j];
#endif
}

// The most frequent word for each slot among the hot ones.
extern "C" __global__ void find_hot(const u32 *keys, const u64 *counts, u32 slots, u64 *best)
{
    for (u32 at = blockIdx.x * blockDim.x + threadIdx.x; at < slots; at += gridDim.x * blockDim.x)
        if (counts[at] > 1) {
            u32 key[LENGTH];
            key_of(keys, at, key);
            u64 number = counts[at] < 0xFFFFFFFFull ? counts[at] : 0xFFFFFFFFull;
            atomicMax(&best[hot_slot(mixed(key))], number << 32 | at);
        }
}

extern "C" __global__ void take_hot(const u32 *keys, const u64 *best, u32 *hot, u32 *hot_at)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= HOT)
        return;
    u32 key[LENGTH];
    key_of(keys, (u32)best[i], key);
    hot_at[i] = (u32)best[i];
    for (int j = 0; j < LENGTH; j++)
        hot[j * HOT + i] = best[i] ? key[j] : 0;
}

// The entries of a table into a larger one.
extern "C" __global__ void move_entries(const u32 *keys, const u64 *counts, const u64 *pairs,
                                        u32 slots, u32 *to_keys, u64 *to_counts,
                                        u64 *to_pairs, u32 *entries, u32 last)
{
    Table table = {to_keys, to_counts, to_pairs, entries, last};
    for (u32 at = blockIdx.x * blockDim.x + threadIdx.x; at < slots; at += gridDim.x * blockDim.x)
        if (!DIRECT && keys[(size_t)at * LENGTH]) {
            u32 key[LENGTH];
            key_of(keys, at, key);
            u32 to = slot_of(table, key, mixed(key));
            table.counts[to] = counts[at];
            if (pairs)
                table.pairs[to] = pairs[at];
        }
}

// Comparison words of some entries; bits are (bit of the key, bit of the word).
extern "C" __global__ void decode(const u32 *keys, const u32 *entries, u32 number, const int2 *bits,
                                  int number_of_bits, u64 *words, int width)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= number)
        return;
    u32 key[LENGTH];
    key_of(keys, entries[i], key);
    u64 *word = words + (size_t)i * width;
    for (int k = 0; k < number_of_bits; k++) {
        u32 part = 0;
        #pragma unroll
        for (int j = 0; j < LENGTH; j++)
            part = j == bits[k].x >> 5 ? key[j] : part;
        if (part >> (bits[k].x & 31) & 1)
            word[bits[k].y >> 6] |= 1ull << (bits[k].y & 63);
    }
}
"""

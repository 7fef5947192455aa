"""Rows packed on the device, for any plan."""

from __future__ import annotations

SOURCE = r"""
typedef unsigned int u32;
typedef unsigned long long u64;

struct Field {
    u32 column;     // in the packed row
    u32 low;
    u32 from;       // a plane of codes, or a bit of the row's own words
    u32 own_bits;   // of a row's own words; 0: a code
    u32 null_code;
    u32 null_bits;  // what a null puts into the mask in the next column; 0: there is none
};

extern "C" __global__ void pack(const int *codes, const u64 *own, int own_width, int rows,
                                const Field *fields, int number, u32 *packed, int columns)
{
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows;
         row += gridDim.x * blockDim.x)
        for (int k = 0; k < number; k++) {
            Field field = fields[k];
            u32 value, nulls = 0;
            if (field.own_bits) {
                u64 word = own[(size_t)row * own_width + (field.from >> 6)];
                value = (u32)(word >> (field.from & 63)) & ((1u << field.own_bits) - 1);
            } else {
                int code = codes[(size_t)field.from * rows + row];
                value = code < 0 ? field.null_code : (u32)code;
                nulls = code < 0 ? field.null_bits : 0;
            }
            u32 *word = packed + (size_t)row * columns + field.column;
            word[0] |= value << field.low;
            if (field.null_bits)
                word[1] |= nulls;
        }
}
"""

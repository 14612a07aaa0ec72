// How rows are spread over threads that keep them (kernels/rows.cuh).
#pragma once
#include "reduce_plan.hpp"

namespace pt_cuda {

// A block's memory for rows: of the 48 KiB that every kernel may have, or of what the device has
// for a block of 1024 threads (wide), less room for the kernels' own variables. (These take less
// than 2 KiB; the tests' stand-in counts the variables of a whole program.)
enum { ROW_THREADS = 256, WIDE_THREADS = 1024, ROW_MEMORY = 46 << 10, WIDE_ROOM = 7 << 10 };

struct RowPlan {
    int log2,
        count;    // threads of a row: up to a warp or the whole block; elements that each keeps
    unsigned shared;            // bytes of a block; 0: a row does not fit
    bool wide;                  // a block of WIDE_THREADS has one row
    int registers;    // packs that a thread may keep in registers: 1, 2, 4, or 0 for shared memory
    int64_t blocks;
};

// For rows of n elements, loaded `vector` at a time; `inputs` rows are kept, in `item` bytes each.
inline RowPlan plan_rows(const pt_call *c, int64_t rows, int64_t n, int vector, int item,
                         int inputs) {
    RowPlan p;
    const int64_t packs = ceil_div(n, vector), busy = (int64_t)multiprocessors(c) * ROW_THREADS * 4;
    p.log2 = ceil_log2(ceil_div(packs, 4));
    const int whole = ceil_log2(packs);
    if (p.log2 < 3) p.log2 = whole < 3 ? whole : 3;
    while (p.log2 < whole && p.log2 < 8 && (rows << p.log2) < busy) p.log2++;
    if (p.log2 > 5) p.log2 = packs > 256 || (rows << 5) < busy ? 8 : 5;
    for (;; p.log2 = p.log2 < 8 ? 8 : 10) {
        p.wide = p.log2 == 10;
        const int64_t lanes = (int64_t)1 << p.log2, count = ceil_div(n, lanes * vector) * vector;
        const int64_t bytes = count * (p.wide ? WIDE_THREADS : ROW_THREADS) * item * inputs;
        p.count = (int)count;
        p.registers = p.wide || vector == 1 || count > 4 * vector ? 0
                      : count > 2 * vector                        ? 4
                                                                  : (int)(count / vector);
        p.shared =
            bytes <= (p.wide ? shared_limit(c) - WIDE_ROOM : (int)ROW_MEMORY) ? (unsigned)bytes : 0;
        if (p.shared || p.wide) break;
    }
    const int64_t blocks = p.wide ? rows : ceil_div(rows, ROW_THREADS >> p.log2);
    const int64_t most = (int64_t)multiprocessors(c) * (p.wide ? 2 : 32);
    p.blocks = blocks < most ? blocks : most;
    return p;
}

}  // namespace pt_cuda

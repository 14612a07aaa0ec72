// A running combination along lines: by one thread for each line, or by one block, 256 elements at a time (Hillis and
// Steele, 1986). A scan is a struct: Carry, `of(element, position)`, `join(earlier, later)`, `put(carry, place)`.
#pragma once
#include "base.cuh"
#include "scan_args.h"

namespace {

enum { SCAN_THREADS = 256 };

PT_DEVICE int64_t scan_place(const ScanArgs &a, int64_t line, int64_t j) {
    return (line / a.inner * a.length + j) * a.inner + line % a.inner;
}

template <class S> PT_DEVICE void scan_by_thread(const ScanArgs &a) {
    for (int64_t line = thread_index(); line < a.lines; line += thread_count()) {
        typename S::Carry carry;
        for (int64_t j = 0; j < a.length; j++) {
            const int64_t at = scan_place(a, line, j);
            const typename S::Carry x = S::of(a, at, j);
            carry = j ? S::join(a, carry, x) : x;
            S::put(a, carry, at);
        }
    }
}

template <class S> PT_DEVICE void scan_by_block(const ScanArgs &a) {
    typedef typename S::Carry Carry;
    __shared__ Carry part[2][SCAN_THREADS];
    for (int64_t line = blockIdx.x; line < a.lines; line += gridDim.x) {
        Carry before;
        for (int64_t first = 0; first < a.length; first += SCAN_THREADS) {
            const int64_t j = first + threadIdx.x, at = scan_place(a, line, j);
            int now = 0;
            __syncthreads();            // who still reads the last piece's end
            if (j < a.length) part[now][threadIdx.x] = S::of(a, at, j);
            for (int step = 1; step < SCAN_THREADS; step *= 2) {
                __syncthreads();
                if (j < a.length) {
                    const Carry x = part[now][threadIdx.x];
                    part[1 - now][threadIdx.x] = (int)threadIdx.x < step ? x : S::join(a, part[now][threadIdx.x - step], x);
                }
                now = 1 - now;
            }
            __syncthreads();
            const int64_t left = a.length - first;
            const Carry all = part[now][left < SCAN_THREADS ? left - 1 : SCAN_THREADS - 1];
            if (j < a.length) {
                const Carry mine = part[now][threadIdx.x];
                S::put(a, first ? S::join(a, before, mine) : mine, at);
            }
            before = first ? S::join(a, before, all) : all;
        }
    }
}

}  // namespace

// Unfolds sliding windows of (planes, height, width) into columns, and folds columns: adds them up
// at the places of their windows.
#include "divide.cuh"
#include "resample_args.h"

namespace {

typedef PT_T T;

PT_DEVICE void unfold(const SlidingArgs &a) {
    const T *x = reinterpret_cast<const T *>(a.x);
    PT_GRID_STRIDE(i, a.total) {
        int64_t rest = i, block[2], tap[2], place[2];
        for (int d = 1; d >= 0; d--) block[d] = take_rest(rest, a.blocks[d]);
        for (int d = 1; d >= 0; d--) tap[d] = take_rest(rest, a.kernel[d]);
        bool inside = true;
        for (int d = 0; d < 2; d++) {
            place[d] = (a.still[d] ? 0 : block[d] * a.stride[d].by) - a.padding[d] +
                       tap[d] * a.dilation[d];
            inside = inside && place[d] >= 0 && place[d] < a.size[d].by;
        }
        reinterpret_cast<T *>(a.out)[i] =
            inside ? x[(rest * a.size[0].by + place[0]) * a.size[1].by + place[1]] : T();
    }
}

// The blocks [first, last] with this tap on a place: one or none; with a stride of 0, all or
// none.
struct Blocks {
    int64_t first, last;
};
PT_DEVICE Blocks blocks_at(const SlidingArgs &a, int d, int64_t place, int64_t tap) {
    const int64_t from = place + a.padding[d] - tap * a.dilation[d];
    if (a.still[d]) return {0, from == 0 ? a.blocks[d].by - 1 : -1};
    int64_t block = from;
    if (from < 0 || take_rest(block, a.stride[d]) || block >= a.blocks[d].by) return {0, -1};
    return {block, block};
}

PT_DEVICE void fold(const SlidingArgs &a) {
    typedef opmath<T>::type C;
    const T *x = reinterpret_cast<const T *>(a.x);
    PT_GRID_STRIDE(i, a.total) {
        int64_t rest = i, place[2];
        for (int d = 1; d >= 0; d--) place[d] = take_rest(rest, a.size[d]);
        C sum = C(0);
        for (int64_t k = 0; k < a.kernel[0].by; k++) {
            const Blocks rows = blocks_at(a, 0, place[0], k);
            if (rows.first > rows.last) continue;
            for (int64_t l = 0; l < a.kernel[1].by; l++) {
                const Blocks columns = blocks_at(a, 1, place[1], l);
                for (int64_t r = rows.first; r <= rows.last; r++)
                    for (int64_t c = columns.first; c <= columns.last; c++) {
                        const int64_t at =
                            ((rest * a.kernel[0].by + k) * a.kernel[1].by + l) * a.blocks[0].by + r;
                        sum = C(sum + up(load(x, at * a.blocks[1].by + c)));
                    }
            }
        }
        reinterpret_cast<T *>(a.out)[i] = down<T>(sum);
    }
}

}  // namespace

PT_KERNEL(sliding_unfold, SlidingArgs, a, 256) { unfold(a); }
PT_KERNEL(sliding_fold, SlidingArgs, a, 256) { fold(a); }

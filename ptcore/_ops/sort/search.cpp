/* Positions of elements in a sorted sequence, by bisection.
 *
 *    places_among(sorted_sequence, input; right) -> int64 like input
 *
 * Both are contiguous. A sequence of one dim serves all of input; otherwise each row serves the
 * same row of input. NaN counts as greater than every number. Compiled for the base level alone.
 */
#include "common.hpp"

namespace {

template <class T>
inline int64_t place(const T *sorted, int64_t n, compute<T> value, bool right) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const compute<T> x = convert<compute<T>>(sorted[middle]);
        if (right ? !(x > value) && (x == x || value != value) : !(x >= value) && x == x)
            low = middle + 1;
        else high = middle;
    }
    return low;
}

int places_among(pt_call *call) {
    const pt_view &sorted = call->in[0], &x = call->in[1];
    if (x.numel == 0) return PT_OK;
    if (sorted.ndim == 0)
        return fail(call, PT_RUNTIME_ERROR, "expected a sequence of at least 1 dimension");
    const int64_t n = sorted.sizes[sorted.ndim - 1], width = x.ndim ? x.sizes[x.ndim - 1] : 1;
    const bool shared = sorted.ndim == 1, right = call->params[0].i != 0;
    if (!shared && sorted.numel / max64(n, 1) != x.numel / width && n)
        return fail(call, PT_RUNTIME_ERROR, "expected a sequence with the rows of input");
    return visit<REALS>(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        parallel_for(x.numel, 1024, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const T *row = input<T>(call) + (shared ? 0 : i / width * n);
                output<int64_t>(call)[i] =
                    place(row, n, convert<compute<T>>(input<T>(call, 1)[i]), right);
            }
        });
        return int(PT_OK);
    });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_search_, PT_ISA)[] = {
    {"places_among", places_among},
    {nullptr, nullptr},
};

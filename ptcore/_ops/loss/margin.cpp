/* Margin losses of rows of class scores, and their slopes.
 *
 *    multi_margin(input, target, weight; p, margin) -> loss of each row
 *    multi_margin_slope(the same) -> derivative of each row's loss by its scores
 *    multilabel_margin(input, target) -> loss of each row; labels end at the first -1
 *    multilabel_margin_slope(the same) -> derivative
 * Inputs are contiguous: input (N, C), targets (N,) and (N, C).
 */
#include "common.hpp"

#include <atomic>

namespace {

inline int open_rows(pt_call *call, int target_ndim) {
    const pt_view &x = call->in[0], &target = call->in[1];
    if (x.ndim != 2 || target.ndim != target_ndim || target.dtype != PT_INT64 ||
        target.sizes[0] != x.sizes[0] || (target_ndim == 2 && target.sizes[1] != x.sizes[1]))
        return fail(call, PT_RUNTIME_ERROR, "expected scores (N, C) and int64 targets for them");
    const int64_t *t = input<int64_t>(call, 1);
    for (int64_t i = 0; i < target.numel; ++i)
        if (t[i] >= x.sizes[1] || t[i] < (target_ndim == 1 ? 0 : -1))
            return fail(call, PT_INDEX_ERROR, "target %lld is out of bounds for %lld classes",
                        (long long)t[i], (long long)x.sizes[1]);
    return PT_OK;
}

template <bool SLOPE>
int multi_margin_kernel(pt_call *call) {
    if (int status = open_rows(call, 1)) return status;
    const pt_view &x = call->in[0], &w = call->in[2];
    const int64_t n = x.sizes[0], classes = x.sizes[1];
    if (present(w) && (w.ndim != 1 || w.numel != classes || w.dtype != x.dtype))
        return fail(call, PT_RUNTIME_ERROR, "expected a weight for each of %lld classes",
                    (long long)classes);
    const bool square = call->params[0].i == 2;
    return visit<FLOATS>(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using E = compute<T>;
        const E margin = E(call->params[1].d);
        parallel_for(n, grain_rows(4 * classes), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const T *row = input<T>(call) + i * classes;
                const int64_t t = input<int64_t>(call, 1)[i];
                const E own = convert<E>(row[t]),
                        share = (present(w) ? convert<E>(input<T>(call, 2)[t]) : E(1)) / E(classes);
                E loss = 0, slope = 0;
                for (int64_t j = 0; j < classes; ++j) {
                    const E gap = margin - own + convert<E>(row[j]);
                    const bool counts = j != t && !(gap <= 0);          /* NaN counts */
                    if constexpr (SLOPE) {
                        const E d = counts ? (square ? 2 * gap * share : share) : E(0);
                        slope -= d;
                        output<T>(call)[i * classes + j] = convert<T>(d);
                    }
                    else if (counts) loss += square ? gap * gap : gap;
                }
                if constexpr (SLOPE) output<T>(call)[i * classes + t] = convert<T>(slope);
                else output<T>(call)[i] = convert<T>(loss * share);
            }
        });
        return int(PT_OK);
    });
}

template <bool SLOPE>
int multilabel_margin_kernel(pt_call *call) {
    if (int status = open_rows(call, 2)) return status;
    const int64_t n = call->in[0].sizes[0], classes = call->in[0].sizes[1];
    return visit<FLOATS>(call, call->in[0].dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using E = compute<T>;
        std::atomic<bool> enough(true);
        parallel_for(n, grain_rows(classes * classes), [&](int64_t begin, int64_t end) {
            scratch<uint8_t> label(classes);
            scratch<E> slope(SLOPE ? classes : 0);
            if (!label || !slope) {
                enough = false;
                return;
            }
            for (int64_t i = begin; i < end; ++i) {
                const T *row = input<T>(call) + i * classes;
                const int64_t *t = input<int64_t>(call, 1) + i * classes;
                memset(label.data, 0, size_t(classes));
                int64_t labels = 0;
                for (; labels < classes && t[labels] >= 0; ++labels) label[t[labels]] = 1;
                if constexpr (SLOPE)
                    for (int64_t j = 0; j < classes; ++j) slope[j] = 0;
                E loss = 0;
                for (int64_t k = 0; k < labels; ++k) {
                    const E own = convert<E>(row[t[k]]);
                    for (int64_t j = 0; j < classes; ++j) {
                        const E gap = 1 - (own - convert<E>(row[j]));
                        if (label[j] || gap <= 0) continue;
                        loss += gap;
                        if constexpr (SLOPE) {
                            slope[j] += 1;
                            slope[t[k]] -= 1;
                        }
                    }
                }
                if constexpr (SLOPE)
                    for (int64_t j = 0; j < classes; ++j)
                        output<T>(call)[i * classes + j] = convert<T>(slope[j] / E(classes));
                else output<T>(call)[i] = convert<T>(loss / E(classes));
            }
        });
        return enough ? int(PT_OK) : no_memory(call, classes * 9);
    });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_margin_, PT_ISA)[] = {
    {"multi_margin", multi_margin_kernel<false>},
    {"multi_margin_slope", multi_margin_kernel<true>},
    {"multilabel_margin", multilabel_margin_kernel<false>},
    {"multilabel_margin_slope", multilabel_margin_kernel<true>},
    {nullptr, nullptr},
};

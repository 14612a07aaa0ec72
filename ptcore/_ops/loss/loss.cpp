/* Classification losses over (N, C, d...) or (C,) inputs and int64 class targets.
 *
 *    nll_loss(input, target, weight?; reduction, ignore_index) -> out, total_weight
 *    nll_loss_backward(g, target, weight?, total_weight; reduction, ignore_index) -> gx
 *    cross_entropy(input, target, weight?; the same, label_smoothing) -> out, lse, total_weight
 *    cross_entropy_backward(g, input, target, weight?, lse, total_weight;
 *        the same, label_smoothing) -> gx
 *
 * reduction: 0 none, 1 mean, 2 sum. total_weight is the sum of the targets' weights (mean divides
 * by it); lse is the log of the sum of exponentials per sample, saved for the derivative. Every
 * target is checked before anything is written. Samples' losses are added in order, in float64.
 */
#include "rows.hpp"

#include <atomic>
#include <limits>

namespace {

enum { NONE, MEAN, SUM };
constexpr int64_t SAMPLE_BLOCK = 128;

/* Shared by the four kernels: the walk over samples, the targets and the weights. */
struct samples {
    const pt_view &target, &weight;
    int64_t classes, count = 1;         /* C, and the number of samples */
    int64_t reduction, ignored;
    int64_t class_dim, class_stride = 0;

    /* `shape` is the view of shape (N, C, d...) or (C,) */
    samples(pt_call *call, const pt_view &shape, const pt_view &t, const pt_view &w)
        : target(t), weight(w), reduction(call->params[0].i), ignored(call->params[1].i),
          class_dim(shape.ndim > 1 ? 1 : 0) {
        classes = shape.ndim ? shape.sizes[class_dim] : 0;
        for (int d = 0; d < shape.ndim; ++d)
            if (d != class_dim) count *= shape.sizes[d];
    }
    int check(pt_call *call, const pt_view &shape) const {
        if (shape.ndim == 0)
            return fail(call, PT_RUNTIME_ERROR,
                        "expected input of shape (C,) or (N, C, ...), got ()");
        if (target.dtype != PT_INT64)
            return fail(call, PT_RUNTIME_ERROR, "expected target of dtype int64, got %s",
                        DTYPE_NAME[target.dtype]);
        if (target.ndim != shape.ndim - 1 || target.numel != count)
            return fail(call, PT_VALUE_ERROR,
                        "expected target of shape (N, ...) for an input of shape (N, C, ...)");
        if (present(weight) &&
            (weight.ndim != 1 || weight.sizes[0] != classes || !pt_is(weight.dtype, FLOATS)))
            return fail(call, PT_RUNTIME_ERROR,
                        "expected a floating weight for each of the %lld classes",
                        (long long)classes);
        space<1> walk;
        for (int d = 0; d < target.ndim; ++d) walk.push(target.sizes[d], {target.strides[d]});
        const int64_t *t = reinterpret_cast<const int64_t *>(target.data);
        cursor<1> at(walk, 0);
        for (int64_t i = 0; i < count; ++i, at.next()) {
            const int64_t c = t[at.offset[0]];
            if (c != ignored && (c < 0 || c >= classes))
                return fail(call, PT_INDEX_ERROR, "target %lld is out of bounds for %lld classes",
                            (long long)c, (long long)classes);
        }
        return PT_OK;
    }
    int64_t class_at(int64_t offset) const {
        return reinterpret_cast<const int64_t *>(target.data)[offset];
    }
    double weight_of(int64_t c) const {
        return present(weight) ? get_real(weight, c * weight.strides[0]) : 1.0;
    }
    double weight_sum() const {
        double sum = 0;
        for (int64_t c = 0; c < classes; ++c) sum += weight_of(c);
        return sum;
    }
    /* the stride of v in dim d of the samples, which have no class dim */
    int64_t sample_stride(const pt_view &v, int64_t d) const {
        return v.strides[d + (d >= class_dim)];
    }
};

/* Adds up the losses; writes out (of each sample if reduction is none) and total_weight. */
inline void reduce_losses(pt_call *call, const samples &s, const double *loss, const double *weight,
                          const pt_view &total_out) {
    double total = 0, sum = 0;
    for (int64_t i = 0; i < s.count; ++i) {
        total += weight[i];
        sum += loss[i];
    }
    put_real(total_out, 0, s.reduction == NONE ? 0.0 : total);
    if (s.reduction == NONE)
        for (int64_t i = 0; i < s.count; ++i) put_real(call->out[0], i, loss[i]);
    else put_real(call->out[0], 0, s.reduction == MEAN ? sum / total : sum);
}

/* d loss / d (loss of a sample): g, divided by total_weight for the mean */
struct sample_gradient {
    const pt_view &g;
    double factor;
    bool each;
    sample_gradient(const pt_view &v, const pt_view &total, int64_t reduction)
        : g(v), factor(reduction == MEAN ? 1 / get_real(total, 0) : 1.0), each(reduction == NONE) {}
    double at(int64_t offset) const {
        return (each ? get_real(g, offset) : get_real(g, 0)) * factor;
    }
};

inline int check_gradient(pt_call *call, const samples &s, const pt_view &g, const pt_view &total) {
    if (pt_is(g.dtype, FLOATS) && pt_is(total.dtype, FLOATS) &&
        (s.reduction == NONE ? g.ndim == s.target.ndim && g.numel == s.count : g.numel == 1))
        return PT_OK;
    return fail(call, PT_RUNTIME_ERROR, "expected a floating gradient of %s",
                s.reduction == NONE ? "the target's shape" : "one element");
}

/* ---- nll_loss ---------------------------------------------------------------------------- */

int nll_loss_kernel(pt_call *call) {
    const pt_view &x = call->in[0];
    if (!pt_is(x.dtype, FLOATS)) return bad_dtype(call, x.dtype);
    const samples s(call, x, call->in[1], call->in[2]);
    if (int status = s.check(call, x)) return status;
    scratch<double> loss(2 * s.count);
    if (!loss) return no_memory(call, 16 * s.count);
    space<2> walk;
    for (int d = 0; d < x.ndim - 1; ++d)
        walk.push(s.target.sizes[d], {s.sample_stride(x, d), s.target.strides[d]});
    const int64_t step = x.strides[s.class_dim];
    int status = visit<FLOATS>(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        parallel_for(s.count, GRAIN / 8, [&](int64_t begin, int64_t end) {
            cursor<2> at(walk, begin);
            for (int64_t i = begin; i < end; ++i, at.next()) {
                const int64_t c = s.class_at(at.offset[1]);
                const double w = c == s.ignored ? 0 : s.weight_of(c);
                loss[i] = c == s.ignored
                              ? 0
                              : -w * convert<double>(input<T>(call)[at.offset[0] + c * step]);
                loss[s.count + i] = w;
            }
        });
        return int(PT_OK);
    });
    if (status) return status;
    reduce_losses(call, s, loss.data, loss.data + s.count, call->out[1]);
    return PT_OK;
}

int nll_loss_backward_kernel(pt_call *call) {
    const pt_view &g = call->in[0], &gx = call->out[0];
    if (!pt_is(gx.dtype, FLOATS)) return bad_dtype(call, gx.dtype);
    const samples s(call, gx, call->in[1], call->in[2]);
    if (int status = s.check(call, gx)) return status;
    if (int status = check_gradient(call, s, g, call->in[3])) return status;
    memset(gx.data, 0, size_t(gx.numel) * size_t(ITEMSIZE[gx.dtype]));
    const sample_gradient scale(g, call->in[3], s.reduction);
    space<3> walk;
    int64_t inner = 1;
    for (int d = gx.ndim - 1; d > s.class_dim; --d) inner *= gx.sizes[d];
    for (int d = 0; d < gx.ndim - 1; ++d) {
        int64_t stride = d < s.class_dim ? inner * s.classes : 1;
        for (int e = d + 1; d >= s.class_dim && e < gx.ndim - 1; ++e) stride *= s.target.sizes[e];
        walk.push(s.target.sizes[d],
                  {stride, s.target.strides[d], s.reduction == NONE ? g.strides[d] : 0});
    }
    parallel_for(s.count, GRAIN / 8, [&](int64_t begin, int64_t end) {
        cursor<3> at(walk, begin);
        for (int64_t i = begin; i < end; ++i, at.next()) {
            const int64_t c = s.class_at(at.offset[1]);
            if (c != s.ignored)
                put_real(gx, at.offset[0] + c * inner, -s.weight_of(c) * scale.at(at.offset[2]));
        }
    });
    return PT_OK;
}

/* ---- cross_entropy ----------------------------------------------------------------------- */

/* Blocks of neighbouring samples with all their classes, as E. In a block of columns x(j, c) is
 * data[j + c * stride], in a row it is data[c]. Blocks that do not lie so in memory are copied. */
struct class_walk {
    space<3> outer;             /* element offsets of input, target and a third operand */
    int64_t width, side[3], blocks, block;
    bool rows;
};
inline class_walk walk_classes(const samples &s, const pt_view &x, const int64_t *third) {
    class_walk w;
    for (int d = 0; d < x.ndim - 1; ++d)
        w.outer.push(s.target.sizes[d],
                     {s.sample_stride(x, d), s.target.strides[d], third ? third[d] : 0});
    const int64_t step = x.strides[s.class_dim];
    w.rows =
        step == 1 || s.classes == 1 || (w.outer.ndim && w.outer.stride[0][w.outer.ndim - 1] != 1);
    w.width = 1;
    w.side[0] = w.side[1] = w.side[2] = 0;
    if (!w.rows) w.width = w.outer.pop(w.side);
    w.block = max64(1, min64(w.width, SAMPLE_BLOCK));
    w.blocks = ceil_div(w.width, w.block);
    return w;
}
template <class E, class T>
inline const E *class_block(const T *from, int64_t step, int64_t classes, int64_t width, E *copy,
                            int64_t &stride) {
    stride = width == 1 ? 1 : step;
    if constexpr (is_same<T, E>)
        if (width > 1 || step == 1) return from;
    stride = width;
    if (width == 1) load(copy, from, step, classes);
    else
        for (int64_t c = 0; c < classes; ++c) load(copy + c * width, from + c * step, 1, width);
    return copy;
}

template <class T, class E>
inline int cross_entropy_as(pt_call *call, const samples &s, double smoothing) {
    const pt_view &x = call->in[0];
    scratch<double> loss(2 * s.count);
    if (!loss) return no_memory(call, 16 * s.count);
    const class_walk walk = walk_classes(s, x, nullptr);
    std::atomic<bool> starved{false};
    parallel_for(
        walk.outer.numel() * walk.blocks, grain_rows(8 * s.classes * walk.block),
        [&](int64_t begin, int64_t end) {
            scratch<E> copy(s.classes * walk.block);
            if (!copy) {
                starved = true;
                return;
            }
            alignas(64) E top[SAMPLE_BLOCK], sum[SAMPLE_BLOCK];
            cursor<3> at(walk.outer, begin / walk.blocks);
            for (int64_t u = begin; u < end; ++u) {
                const int64_t b = u % walk.blocks * walk.block,
                              w = min64(walk.block, walk.width - b);
                int64_t stride;
                const E *p =
                    class_block<E>(input<T>(call) + at.offset[0] + b, x.strides[s.class_dim],
                                   s.classes, w, copy.data, stride);
                if (w == 1) {
                    top[0] = row_max(p, s.classes);
                    sum[0] = E(row_exp_sum<false>(p, static_cast<E *>(nullptr), s.classes, top[0]));
                } else {
                    columns_max(top, p, stride, s.classes, w);
                    double total[SAMPLE_BLOCK] = {};
                    sum_columns(total, p, stride, s.classes, w,
                                [&](E v, int64_t j) { return pt::exp(v - top[j]); });
                    for (int64_t j = 0; j < w; ++j) sum[j] = E(total[j]);
                }
                for (int64_t j = 0; j < w; ++j) {
                    const int64_t i = u / walk.blocks * walk.width + b + j,
                                  t = s.class_at(at.offset[1] + (b + j) * walk.side[1]);
                    const double log_sum = log(double(sum[j])), lse = double(top[j]) + log_sum;
                    put_real(call->out[1], i, lse);
                    const double wt = t == s.ignored ? 0 : s.weight_of(t);
                    loss[s.count + i] = wt;
                    loss[i] = 0;
                    if (t == s.ignored) continue;
                    /* -log softmax without rounding lse first */
                    auto cost = [&](int64_t c) {
                        return log_sum - (double(p[c * stride + j]) - double(top[j]));
                    };
                    loss[i] = (1 - smoothing) * wt * cost(t);
                    if (smoothing > 0) {
                        double all = 0;
                        for (int64_t c = 0; c < s.classes; ++c) all += s.weight_of(c) * cost(c);
                        loss[i] += smoothing / double(s.classes) * all;
                    }
                }
                if (u % walk.blocks == walk.blocks - 1) at.next();
            }
        });
    if (starved) return no_memory(call, s.classes * walk.block * int64_t(sizeof(E)));
    reduce_losses(call, s, loss.data, loss.data + s.count, call->out[2]);
    return PT_OK;
}

inline int check_smoothing(pt_call *call, double smoothing) {
    if (smoothing >= 0 && smoothing <= 1) return PT_OK;
    return fail(call, PT_RUNTIME_ERROR, "label_smoothing must be in [0, 1], got %g", smoothing);
}

int cross_entropy_kernel(pt_call *call) {
    const pt_view &x = call->in[0];
    const samples s(call, x, call->in[1], call->in[2]);
    if (int status = s.check(call, x)) return status;
    if (int status = check_smoothing(call, call->params[2].d)) return status;
    return visit<FLOATS>(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        return cross_entropy_as<T, compute<T>>(call, s, call->params[2].d);
    });
}

/* whether rounding has changed one of n log-sum-exps so much that exp(x - lse) loses digits */
template <class E>
inline bool rounded_away(const E *lse, int64_t n) {
    bool away = false;
    for (int64_t j = 0; j < n; ++j) {
        const double size = std::fabs(double(lse[j]));
        away = away || (size > 4e-6 / std::numeric_limits<E>::epsilon() && size < HUGE_VAL);
    }
    return away;
}

/* gx = scale ((1 - e) w_t (p_c - [c = t]) + e/C (p_c W - w_c)), p = exp(x - lse), W = sum of w
 *
 * One function: the passes over a block share its arrays on the stack. */
template <class T, class E>
inline int cross_entropy_backward_as(pt_call *call, const samples &s, double smoothing) {
    const pt_view &g = call->in[0], &x = call->in[1], &lse = call->in[4], &gx = call->out[0];
    const sample_gradient scale(g, call->in[5], s.reduction);
    const class_walk walk = walk_classes(s, x, s.reduction == NONE ? g.strides : nullptr);
    space<1> saved;
    for (int d = 0; d < lse.ndim; ++d) saved.push(lse.sizes[d], {lse.strides[d]});
    int64_t inner = 1;
    for (int d = gx.ndim - 1; d > s.class_dim; --d) inner *= gx.sizes[d];
    const double even = smoothing / double(s.classes), weights = s.weight_sum();
    T *out = output<T>(call);
    std::atomic<bool> starved{false};
    parallel_for(
        walk.outer.numel() * walk.blocks, grain_rows(8 * s.classes * walk.block),
        [&](int64_t begin, int64_t end) {
            scratch<E> copy(2 * s.classes * walk.block);
            if (!copy) {
                starved = true;
                return;
            }
            alignas(64) E shift[SAMPLE_BLOCK], factor[SAMPLE_BLOCK];
            cursor<3> at(walk.outer, begin / walk.blocks);
            cursor<1> at_lse(saved,
                             begin / walk.blocks * walk.width + begin % walk.blocks * walk.block);
            for (int64_t u = begin; u < end; ++u) {
                const int64_t b = u % walk.blocks * walk.block,
                              w = min64(walk.block, walk.width - b);
                int64_t stride;
                const E *PT_RESTRICT p =
                    class_block<E>(input<T>(call, 1) + at.offset[0] + b, x.strides[s.class_dim],
                                   s.classes, w, copy.data, stride);
                /* the block in the output, as E: sample i starts at
                 * (i / inner) inner C + i % inner */
                const int64_t first = u / walk.blocks * walk.width + b,
                              place = first / inner * inner * s.classes + first % inner;
                E *PT_RESTRICT q = copy.data + s.classes * walk.block;
                int64_t step = w;
                const bool whole = first % inner + w <= inner;
                if constexpr (is_same<T, E>)
                    if (whole && (w > 1 || inner == 1)) {
                        q = out + place;
                        step = inner;
                    }
                int64_t hit[SAMPLE_BLOCK];
                double scales[SAMPLE_BLOCK];
                for (int64_t j = 0; j < w; ++j, at_lse.next()) {
                    hit[j] = s.class_at(at.offset[1] + (b + j) * walk.side[1]);
                    scales[j] =
                        hit[j] == s.ignored ? 0 : scale.at(at.offset[2] + (b + j) * walk.side[2]);
                    shift[j] = E(get_real(lse, at_lse.offset[0]));
                    factor[j] = hit[j] == s.ignored
                                    ? E(0)
                                    : E(scales[j] *
                                        ((1 - smoothing) * s.weight_of(hit[j]) + even * weights));
                }
                if (rounded_away(shift, w)) {       /* terms are divided by their sum */
                    double sum[SAMPLE_BLOCK] = {};
                    const int64_t apart = w == 1 ? 1 : step;
                    if (w == 1) sum[0] = row_exp_sum<true>(p, q, s.classes, shift[0]);
                    for (int64_t c = 0; w > 1 && c < s.classes; ++c) {
                        PT_IVDEP
                        for (int64_t j = 0; j < w; ++j) {
                            q[c * step + j] = pt::exp(p[c * stride + j] - shift[j]);
                            sum[j] += double(q[c * step + j]);
                        }
                    }
                    for (int64_t j = 0; j < w; ++j) factor[j] = E(double(factor[j]) / sum[j]);
                    for (int64_t c = 0; c < s.classes; ++c)
                        for (int64_t j = 0; j < w; ++j) q[c * apart + j] *= factor[j];
                } else if (w == 1) {
                    const E lse0 = shift[0], f = factor[0];
                    for (int64_t c = 0; c < s.classes; ++c) q[c] = pt::exp(p[c] - lse0) * f;
                } else {
                    for (int64_t c = 0; c < s.classes; ++c) {
                        PT_IVDEP
                        for (int64_t j = 0; j < w; ++j)
                            q[c * step + j] = pt::exp(p[c * stride + j] - shift[j]) * factor[j];
                    }
                }
                for (int64_t j = 0; j < w; ++j) {
                    const int64_t t = hit[j], apart = w == 1 ? 1 : step;
                    if (t == s.ignored) {
                        for (int64_t c = 0; c < s.classes; ++c) q[c * apart + j] = 0;
                        continue;
                    }
                    q[t * apart + j] -= E(scales[j] * (1 - smoothing) * s.weight_of(t));
                    if (even > 0)
                        for (int64_t c = 0; c < s.classes; ++c)
                            q[c * apart + j] -= E(scales[j] * even * s.weight_of(c));
                }
                if (reinterpret_cast<char *>(q) != reinterpret_cast<char *>(out + place))
                    for (int64_t j = 0; j < w; ++j) {
                        const int64_t i = first + j;
                        T *to = out + i / inner * inner * s.classes + i % inner;
                        for (int64_t c = 0; c < s.classes; ++c)
                            to[c * inner] = convert<T>(q[w == 1 ? c : c * w + j]);
                    }
                if (u % walk.blocks == walk.blocks - 1) at.next();
            }
        });
    return starved ? no_memory(call, 2 * s.classes * walk.block * int64_t(sizeof(E))) : int(PT_OK);
}

int cross_entropy_backward_kernel(pt_call *call) {
    const pt_view &x = call->in[1];
    const samples s(call, x, call->in[2], call->in[3]);
    if (int status = s.check(call, x)) return status;
    if (int status = check_smoothing(call, call->params[2].d)) return status;
    if (int status = check_gradient(call, s, call->in[0], call->in[5])) return status;
    if (call->in[4].numel != s.count || !pt_is(call->in[4].dtype, FLOATS))
        return fail(call, PT_RUNTIME_ERROR, "expected lse with one floating value per sample");
    return visit<FLOATS>(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        return cross_entropy_backward_as<T, compute<T>>(call, s, call->params[2].d);
    });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_loss_, PT_ISA)[] = {
    {"nll_loss", nll_loss_kernel},
    {"nll_loss_backward", nll_loss_backward_kernel},
    {"cross_entropy", cross_entropy_kernel},
    {"cross_entropy_backward", cross_entropy_backward_kernel},
    {nullptr, nullptr},
};

// nll_loss and cross_entropy over class targets, and their derivatives. Losses of samples are added
// in one order, in float64. A target that is out of bounds is reported and counts as ignored.
#include "dynamic.cuh"
#include "exp_sum.cuh"
#include "loss_args.h"
#include "reduce.cuh"
#include "report.cuh"

namespace {

typedef PT_T T;
typedef opmath<T>::type C;

PT_DEVICE int size_of(int dtype) { return dtype == 12 ? 8 : dtype == 11 ? 4 : 2; }    // bytes

PT_DEVICE double weight_of(const LossArgs &a, int64_t c) {
    return a.weight ? load_from<double>(a.weight + c * a.weight_stride * size_of(a.weight_dtype),
                                        a.weight_dtype)
                    : 1;
}

// The class of a sample, -1 if it is ignored.
PT_DEVICE int64_t class_of(const LossArgs &a, int64_t s) {
    const int64_t c = a.target[s];
    if (c == a.ignored) return -1;
    if (c >= 0 && c < a.classes) return c;
    report(a.fault, a.op, c, 1, a.classes);
    return -1;
}

PT_DEVICE int64_t place(const LossArgs &a, int64_t s, int64_t c) {
    const int64_t column = take_rest(s, a.inner);
    return (s * a.classes + c) * a.inner.by + column;
}
PT_DEVICE C value(const LossArgs &a, int64_t s, int64_t c) {
    return up(reinterpret_cast<const T *>(a.x)[place(a, s, c)]);
}

PT_DEVICE void put_loss(const LossArgs &a, int64_t s, double loss) {
    a.loss[s] = loss;
    if (a.reduction == 0) reinterpret_cast<T *>(a.result)[s] = down<T>((C)loss);
}

// Stores a sample's results, once its largest input and its sum of exponentials are known.
PT_DEVICE void finish(const LossArgs &a, int64_t s, ExpSum<C> e, double smooth_sum) {
    const double log_sum = pt::log((double)e.sum);
    const int64_t t = class_of(a, s);
    store_to(a.lse + s * size_of(a.lse_dtype), a.lse_dtype, (double)e.top + log_sum);
    a.sample_weight[s] = t < 0 ? 0 : weight_of(a, t);
    double loss = 0;
    if (t >= 0) {
        loss = (1 - a.smoothing) * weight_of(a, t) *
               (log_sum - ((double)value(a, s, t) - (double)e.top));
        if (a.smoothing > 0)
            loss += a.smoothing / (double)a.classes * (log_sum * a.weight_sum[0] - smooth_sum);
    }
    put_loss(a, s, loss);
}

enum { V = vector_of<T>::size };

// Walks through a contiguous row: one(i) for each element before the first pack and after the last,
// pack(i) for the first element of each pack.
template <class One, class Many>
PT_DEVICE void each_of_row(const T *row, int64_t n, int lane, int lanes, bool packed, One one,
                           Many pack) {
    int64_t head = packed ? (int64_t)((16 - (uint64_t)row % 16) % 16 / sizeof(T)) : n;
    if (head > n) head = n;
    const int64_t body = head + (n - head) / V * V;
    for (int64_t i = lane; i < head; i += lanes) one(i);
    for (int64_t i = head + (int64_t)lane * V; i < body; i += (int64_t)lanes * V) pack(i);
    for (int64_t i = body + lane; i < n; i += lanes) one(i);
}

// A warp (a block if there are many classes) for each sample; a sample's classes are neighbours.
template <bool BLOCK> PT_DEVICE void rows(const LossArgs &a) {
    const int lane = BLOCK ? threadIdx.x : threadIdx.x & 31, lanes = BLOCK ? PT_LOSS_THREADS : 32;
    const int64_t step = BLOCK ? gridDim.x : thread_count() >> 5;
    for (int64_t s = BLOCK ? blockIdx.x : thread_index() >> 5; s < a.samples; s += step) {
        const T *row = reinterpret_cast<const T *>(a.x) + s * a.classes;
        ExpSum<C> e = no_exp_sum<C>();
        each_of_row(row, a.classes, lane, lanes, true,
            [&](int64_t i) {
                const C x = up(row[i]);
                add_exps<1>(e, &x);
            },
            [&](int64_t i) {
                const Elements<T, V> p = load_pack<V>(row + i);
                C x[V];
                PT_UNROLL for (int v = 0; v < V; v++) x[v] = up(p.v[v]);
                add_exps<V>(e, x);
            });
        e = BLOCK ? block_reduce(e, MergeExpSums(), no_exp_sum<C>())
                  : warp_reduce(e, MergeExpSums());
        double smooth = 0;
        if (a.smoothing > 0) {
            for (int64_t c = lane; c < a.classes; c += lanes)
                smooth += weight_of(a, c) * ((double)up(row[c]) - (double)e.top);
            smooth = BLOCK ? block_reduce(smooth, plus(), 0.0) : warp_reduce(smooth, plus());
        }
        if (lane == 0) finish(a, s, e, smooth);
    }
}

// A thread for each sample; neighbouring samples are neighbours in memory.
PT_DEVICE void columns(const LossArgs &a) {
    PT_GRID_STRIDE(s, a.samples) {
        const T *column = reinterpret_cast<const T *>(a.x) + place(a, s, 0);
        ExpSum<C> e = no_exp_sum<C>();
        int64_t c = 0;
        for (; c + 4 <= a.classes; c += 4) {
            C x[4];
            PT_UNROLL for (int v = 0; v < 4; v++) x[v] = up(column[(c + v) * a.inner.by]);
            add_exps<4>(e, x);
        }
        for (; c < a.classes; c++) {
            const C x = up(column[c * a.inner.by]);
            add_exps<1>(e, &x);
        }
        double smooth = 0;
        if (a.smoothing > 0)
            for (c = 0; c < a.classes; c++)
                smooth += weight_of(a, c) * ((double)up(column[c * a.inner.by]) - (double)e.top);
        finish(a, s, e, smooth);
    }
}

PT_DEVICE void nll(const LossArgs &a) {
    PT_GRID_STRIDE(s, a.samples) {
        const int64_t t = class_of(a, s);
        a.sample_weight[s] = t < 0 ? 0 : weight_of(a, t);
        put_loss(a, s, t < 0 ? 0 : -a.sample_weight[s] * (double)value(a, s, t));
    }
}

// The sums over samples of losses and weights, from which the results are computed. a.a: the
// reduction; a.b: the weights' sum has the type of the loss, not that of computation.
struct Total {
    typedef Pair<double, double> State;
    static PT_DEVICE_MEMBER State identity(const ReduceArgs &, int64_t) { return {0, 0}; }
    static PT_DEVICE_MEMBER State merge(State x, State y) {
        return {x.first + y.first, x.second + y.second};
    }
    static PT_DEVICE_MEMBER void add(State &s, const State *x, int n, int64_t, int64_t,
                                     const ReduceArgs &) {
        for (int i = 0; i < n; i++) s = merge(s, x[i]);
    }
    static PT_DEVICE_MEMBER void store(const ReduceArgs &a, int64_t, State s) {
        *static_cast<T *>(a.out) = down<T>((C)(a.a == 1 ? s.first / s.second : s.first));
        if (a.b) *static_cast<T *>(a.out2) = down<T>((C)s.second);
        else *static_cast<C *>(a.out2) = (C)s.second;
    }
};
typedef TwoTensors<double, double> LossesAndWeights;

// d loss / d (loss of sample s)
PT_DEVICE double scale_of(const LossArgs &a, int64_t s) {
    const double g =
        load_from<double>(a.g + (a.reduction == 0 ? s * size_of(a.g_dtype) : 0), a.g_dtype);
    return a.reduction == 1 ? g / load_from<double>(a.total, a.total_dtype) : g;
}

// (1 - e) w_t (p_c - [c = t]) + e / C (p_c W - w_c), scaled; p = exp(x - lse), W = the sum of
// weights
template <bool SMOOTH> struct Entropy {
    enum { SHARES = true };
    C lse, factor, hit, even;
    int64_t t;
    PT_DEVICE_MEMBER Entropy(const LossArgs &a, int64_t s)
        : lse(0), factor(0), hit(0), even(0), t(class_of(a, s)) {
        if (t < 0) return;
        const double w = (1 - a.smoothing) * weight_of(a, t), e = a.smoothing / (double)a.classes,
                     scale = scale_of(a, s);
        lse = (C)load_from<double>(a.lse_in + s * size_of(a.lse_dtype), a.lse_dtype);
        factor = (C)(scale * (w + (SMOOTH ? e * a.weight_sum[0] : 0)));
        hit = (C)(scale * w);
        even = (C)(scale * e);
    }
    // Whether rounding has changed lse so much that exp(x - lse) loses digits of T. The terms are
    // then divided by their sum, which is 1 otherwise.
    PT_DEVICE_MEMBER bool is_coarse() const {
        const C most = sizeof(T) == 2 ? C(840) : sizeof(T) == 4 ? C(33.5) : C(1.8e10);
        return pt::abs(lse) > most && pt::isfinite(lse);
    }
    PT_DEVICE_MEMBER C term(C x) const { return math::exp(x - lse); }
    PT_DEVICE_MEMBER void divide_by(C sum) { factor /= sum; }
    // The gradient by class c; `own`: c is the sample's class.
    PT_DEVICE_MEMBER C operator()(const LossArgs &a, C x, int64_t c, bool own) const {
        C r = term(x) * factor;
        if (own) r -= hit;
        return t < 0 ? C(0) : SMOOTH ? r - even * (C)weight_of(a, c) : r;
    }
};

struct Likelihood {
    enum { SHARES = false };
    C hit;
    int64_t t;
    PT_DEVICE_MEMBER Likelihood(const LossArgs &a, int64_t s) : hit(0), t(class_of(a, s)) {
        if (t >= 0) hit = (C)(-weight_of(a, t) * scale_of(a, s));
    }
    PT_DEVICE_MEMBER C operator()(const LossArgs &, C, int64_t, bool own) const {
        return own ? hit : C(0);
    }
};

// Threads as in rows().
template <class G, bool BLOCK> PT_DEVICE void gradient_rows(const LossArgs &a) {
    const int lane = BLOCK ? threadIdx.x : threadIdx.x & 31, lanes = BLOCK ? PT_LOSS_THREADS : 32;
    const int64_t step = BLOCK ? gridDim.x : thread_count() >> 5;
    for (int64_t s = BLOCK ? blockIdx.x : thread_index() >> 5; s < a.samples; s += step) {
        G g(a, s);
        T *out = reinterpret_cast<T *>(a.out) + s * a.classes;
        const T *x = a.x ? reinterpret_cast<const T *>(a.x) + s * a.classes : out;
        if constexpr (G::SHARES)
            if (g.is_coarse()) {                        // the same for all threads of the row
                C sum = 0;
                PT_UNROLL_BY(1)
                for (int64_t c = lane; c < a.classes; c += lanes) sum += g.term(up(x[c]));
                g.divide_by(BLOCK ? block_reduce(sum, plus(), C(0)) : warp_reduce(sum, plus()));
            }
        each_of_row(out, a.classes, lane, lanes, (uint64_t)x % 16 == (uint64_t)out % 16,
            [&](int64_t i) { out[i] = down<T>(g(a, a.x ? C(up(x[i])) : C(0), i, i == g.t)); },
            [&](int64_t i) {
                Elements<T, V> p, r;
                if (a.x) p = load_pack<V>(x + i);
                const int own = (uint64_t)(g.t - i) < (uint64_t)V ? (int)(g.t - i) : -1;
                PT_UNROLL
                for (int v = 0; v < V; v++)
                    r.v[v] = down<T>(g(a, a.x ? C(up(p.v[v])) : C(0), i + v, v == own));
                store_pack<V>(out + i, r);
            });
    }
}

// A thread for some classes (of blockIdx.y) of a sample; neighbouring samples are neighbours.
template <class G> PT_DEVICE void gradient_columns(const LossArgs &a) {
    const int64_t begin = blockIdx.y * a.each,
                  end = begin + a.each < a.classes ? begin + a.each : a.classes;
    PT_GRID_STRIDE(s, a.samples) {
        G g(a, s);
        const int64_t first = place(a, s, 0);
        if constexpr (G::SHARES)
            if (g.is_coarse()) {
                C sum = 0;
                const T *x = reinterpret_cast<const T *>(a.x) + first;
                PT_UNROLL_BY(1)
                for (int64_t left = a.classes; left; left--, x += a.inner.by) sum += g.term(up(*x));
                g.divide_by(sum);
            }
        for (int64_t c = begin; c < end; c++) {
            const int64_t i = first + c * a.inner.by;
            reinterpret_cast<T *>(a.out)[i] =
                down<T>(g(a, a.x ? C(up(reinterpret_cast<const T *>(a.x)[i])) : C(0), c, c == g.t));
        }
    }
}

}  // namespace

PT_KERNEL_SYNC(cross_entropy_rows, LossArgs, a, PT_LOSS_THREADS) { rows<false>(a); }
PT_KERNEL_SYNC(cross_entropy_wide, LossArgs, a, PT_LOSS_THREADS) { rows<true>(a); }
PT_KERNEL(cross_entropy_columns, LossArgs, a, PT_LOSS_THREADS) { columns(a); }
PT_KERNEL(nll_loss, LossArgs, a, PT_LOSS_THREADS) { nll(a); }
PT_REDUCTION_ROWS(loss_total, LossesAndWeights, Total)
PT_REDUCTION_FINISH(loss_total, Total)
PT_KERNEL_SYNC(cross_entropy_gradient_rows, LossArgs, a, PT_LOSS_THREADS) {
    if (a.smoothing > 0) gradient_rows<Entropy<true>, false>(a);
    else gradient_rows<Entropy<false>, false>(a);
}
PT_KERNEL_SYNC(cross_entropy_gradient_wide, LossArgs, a, PT_LOSS_THREADS) {
    if (a.smoothing > 0) gradient_rows<Entropy<true>, true>(a);
    else gradient_rows<Entropy<false>, true>(a);
}
PT_KERNEL(cross_entropy_gradient_columns, LossArgs, a, PT_LOSS_THREADS) {
    if (a.smoothing > 0) gradient_columns<Entropy<true>>(a);
    else gradient_columns<Entropy<false>>(a);
}
PT_KERNEL(nll_gradient_rows, LossArgs, a, PT_LOSS_THREADS) { gradient_rows<Likelihood, false>(a); }
PT_KERNEL(nll_gradient_wide, LossArgs, a, PT_LOSS_THREADS) { gradient_rows<Likelihood, true>(a); }
PT_KERNEL(nll_gradient_columns, LossArgs, a, PT_LOSS_THREADS) { gradient_columns<Likelihood>(a); }

// batch_norm, group_norm and their derivatives. The engine of reductions sums over sets of
// elements; a second kernel adds up the parts of each sum in order and computes factors for each
// channel or plane; a third kernel applies the factors. Neighbouring elements are added up in the
// dtype of computation, and these sums in float64. The summands are distances from a number of the
// set, so that one pass gives the variance. PT_T is x, PT_U the gradient.
#include "channel_norm_args.h"
#include "reduce.cuh"

namespace {

typedef PT_T T;
typedef PT_U U;
typedef opmath<T>::type C;

enum { AT_ONCE = 4 };                   // packs that a thread has in flight
constexpr int WIDTH = sizeof(T) > sizeof(U) ? 16 / sizeof(T) : 16 / sizeof(U);

PT_DEVICE double number(const char *data, int dtype, int64_t i) {
    switch (dtype) {
    case 9: return (double)up(reinterpret_cast<const half *>(data)[i]);
    case 10: return (double)up(reinterpret_cast<const bfloat16 *>(data)[i]);
    case 11: return (double)reinterpret_cast<const float *>(data)[i];
    default: return reinterpret_cast<const double *>(data)[i];
    }
}
PT_DEVICE double get(const RealArgs &v, int64_t i) { return number(v.data, v.dtype, i); }
PT_DEVICE double get_or(const RealArgs &v, int64_t i, double other) {
    return v.data ? get(v, i) : other;
}
PT_DEVICE void put(const RealArgs &v, int64_t i, double x) {
    if (!v.data) return;
    switch (v.dtype) {
    case 9: reinterpret_cast<half *>(v.data)[i] = down<half>((float)x); break;
    case 10: reinterpret_cast<bfloat16 *>(v.data)[i] = down<bfloat16>((float)x); break;
    case 11: reinterpret_cast<float *>(v.data)[i] = (float)x; break;
    default: reinterpret_cast<double *>(v.data)[i] = x; break;
    }
}

// -- sums -----------------------------------------------------------------------------------------

// Sums over a set, and the number from which distances are measured.
struct Sums {
    double first, second;
    C center;
    PT_DEVICE_MEMBER Sums &operator+=(const Sums &o) {
        first += o.first;
        second += o.second;
        return *this;
    }
};
struct Plus {
    PT_DEVICE_MEMBER Sums operator()(Sums x, Sums y) const { return x += y; }
};

struct OfSets {
    typedef Sums State;
    static PT_DEVICE_MEMBER Sums merge(Sums x, Sums y) { return x += y; }
    static PT_DEVICE_MEMBER void store(const ReduceArgs &a, int64_t set, Sums s) {
        static_cast<Sums *>(a.out)[set] = s;
    }
    // Adds the `factor` of each element, and `factor` times the element's distance from the center.
    // Products beyond the type's range, such as squares of 1e20 and 1e-25, are computed again in
    // double.
    template <class X, class F> static PT_DEVICE_MEMBER void add_each(Sums &s, const X *x, int n,
                                                                      F factor) {
        C first = 0, second = 0;
        PT_UNROLL for (int i = 0; i < n; i++) {
            C distance;
            const C by = factor(x[i], s.center, distance);
            first += by;
            second += by * distance;
        }
        s.first += first;
        if (pt::isfinite(second) && pt::abs(second) > C(1e-28)) {
            s.second += second;
            return;
        }
        for (int i = 0; i < n; i++) {
            C distance;
            const double by = factor(x[i], s.center, distance);
            s.second += by * distance;
        }
    }
};

// Sums of distances and of their squares, from an element of the set (from 0 if it is not finite).
struct MomentSums : OfSets {
    static PT_DEVICE_MEMBER Sums identity(const ReduceArgs &a, int64_t set) {
        const C x = (C)up(static_cast<const T *>(a.in)[kept_offset(a, set)]);
        return {0, 0, pt::isfinite(x) ? x : C(0)};
    }
    static PT_DEVICE_MEMBER void add(Sums &s, const T *x, int n, int64_t, int64_t,
                                     const ReduceArgs &) {
        add_each(s, x, n, [](T v, C center, C &distance) { return distance = (C)up(v) - center; });
    }
};

// Sums of the gradient g, and of g times the distance of x from the mean.
struct GradientSums : OfSets {
    static PT_DEVICE_MEMBER Sums identity(const ReduceArgs &a, int64_t set) {
        return {0, 0, (C)number(a.known, a.known_dtype, divided(set, a.sharing))};
    }
    static PT_DEVICE_MEMBER void add(Sums &s, const Pair<T, U> *x, int n, int64_t, int64_t,
                                     const ReduceArgs &) {
        add_each(s, x, n, [](Pair<T, U> v, C center, C &distance) {
            distance = (C)up(v.first) - center;
            return (C)up(v.second);
        });
    }
};
typedef OneTensor<T> Input;
typedef TwoTensors<T, U> InputAndGradient;

PT_DEVICE Sums added_up(const ChannelNormArgs &a, int64_t set) {
    const Sums *const sums = static_cast<const Sums *>(a.sums);
    Sums sum = sums[set];
    for (int64_t p = 1; p < a.parts; p++) sum += sums[p * a.sets + set];
    return sum;
}

// -- factors --------------------------------------------------------------------------------------

struct Factors {
    C mean, scale, shift, slope;
};
PT_DEVICE Factors *factors(const ChannelNormArgs &a) {
    return reinterpret_cast<Factors *>(a.factors);
}

struct Moments {
    double mean, var;
};
PT_DEVICE Moments moments(const ChannelNormArgs &a, int64_t set) {
    const double count = (double)a.count;
    const Sums sum = added_up(a, set);
    const double off = sum.first / count, var = sum.second / count - off * off;
    return {(double)sum.center + off, var < 0 ? 0.0 : var};
}

PT_DEVICE void move(const RealArgs &v, int64_t c, double to, double momentum) {
    if (v.data) put(v, c, get(v, c) * (1 - momentum) + to * momentum);
}
// Moves the running statistics towards a mean and the unbiased variance, which is NaN for a single
// element; `var` is biased.
PT_DEVICE void move(const ChannelNormArgs &a, int64_t c, double mean, double var) {
    const double count = (double)a.count;
    move(a.running_mean, c, mean, a.momentum);
    move(a.running_var, c, var * count / (count - 1), a.momentum);
}

PT_DEVICE void batch_forward(const ChannelNormArgs &a) {
    PT_GRID_STRIDE(c, a.c) {
        const Moments m = moments(a, c);
        put(a.mean, c, m.mean);
        put(a.spread, c, m.var);
        move(a, c, m.mean, m.var);
        const double scale = get_or(a.weight, c, 1) / pt::sqrt(m.var + a.eps);
        factors(a)[c] = {(C)m.mean, (C)scale, (C)get_or(a.bias, c, 0), C(0)};
    }
}

PT_DEVICE void group_forward(const ChannelNormArgs &a) {
    PT_GRID_STRIDE(plane, a.n * a.c) {
        int64_t set = plane, image = plane;
        const int64_t channel = take_rest(set, a.by_channels), c = take_rest(image, a.by_c);
        const Moments m = moments(a, set);
        const double rstd = 1 / pt::sqrt(m.var + a.eps);
        if (channel == 0) {
            put(a.mean, set, m.mean);
            put(a.spread, set, rstd);
        }
        factors(a)[plane] = {(C)m.mean, (C)(get_or(a.weight, c, 1) * rstd), (C)get_or(a.bias, c, 0),
                             C(0)};
    }
}

// Factors from given statistics.
PT_DEVICE void given(const ChannelNormArgs &a) {
    PT_GRID_STRIDE(c, a.c) {
        const double scale = get_or(a.weight, c, 1) / pt::sqrt(get(a.spread, c) + a.eps);
        factors(a)[c] = {(C)get(a.mean, c), (C)scale, (C)get_or(a.bias, c, 0), C(0)};
    }
}

// slope: its root with its sign, since the slope itself may be too small for C.
PT_DEVICE C signed_root(double x) { return C(x < 0 ? -pt::sqrt(-x) : pt::sqrt(x)); }

// The variance of channel c, as given; from x again where the given one is infinite, as that of
// numbers beyond 1e19 is in float32. NaN, which numbers that are not finite give, stays.
PT_DEVICE double variance(const ChannelNormArgs &a, int64_t c) {
    double var = get(a.spread, c);
    if (!(var > 3e38)) return var;
    const T *const x = reinterpret_cast<const T *>(a.x);
    const double mean = get(a.mean, c);
    var = 0;
    for (int64_t n = 0; n < a.n; n++)
        for (int64_t i = 0; i < a.s; i++) {
            const double d = (double)up(x[(n * a.c + c) * a.s + i]) - mean;
            var += d * d;
        }
    return var / (double)a.count;
}

// gx = scale g - shift - (x - mean) |slope| slope
PT_DEVICE void batch_backward(const ChannelNormArgs &a) {
    const double count = (double)a.count;
    PT_GRID_STRIDE(c, a.c) {
        const Sums sum = added_up(a, c);
        const double rstd = 1 / pt::sqrt(variance(a, c) + a.eps),
                     scale = get_or(a.weight, c, 1) * rstd;
        put(a.gw, c, sum.second * rstd);
        put(a.gb, c, sum.first);
        factors(a)[c] = {(C)get(a.mean, c), (C)scale, (C)(scale * sum.first / count),
                         signed_root(scale * sum.second / count * rstd * rstd)};
    }
}

// A warp for each group of an image.
PT_DEVICE void group_backward(const ChannelNormArgs &a) {
    const int64_t channels = a.by_channels.by, warps = thread_count() / 32, lane = threadIdx.x % 32;
    const double size = (double)(channels * a.s);
    for (int64_t set = thread_index() / 32; set < a.n * a.groups; set += warps) {
        int64_t image = set;
        const int64_t first = take_rest(image, a.by_groups) * channels;
        Sums all = {0, 0, C(0)};
        for (int64_t k = lane; k < channels; k += 32) {
            const Sums sum = added_up(a, set * channels + k);
            const double w = get_or(a.weight, first + k, 1);
            all.first += w * sum.first;
            all.second += w * sum.second;
        }
        all = warp_reduce(all, Plus());
        const double rstd = get(a.spread, set);
        for (int64_t k = lane; k < channels; k += 32)
            factors(a)[set * channels + k] = {
                (C)get(a.mean, set), (C)(get_or(a.weight, first + k, 1) * rstd),
                (C)(all.first / size * rstd),
                signed_root(all.second / size * rstd * rstd * rstd)};
    }
}

// The gradients of group_norm's weight and bias.
PT_DEVICE void group_backward_affine(const ChannelNormArgs &a) {
    PT_GRID_STRIDE(c, a.c) {
        const int64_t group = divided(c, a.by_channels);
        double g = 0, gxhat = 0;
        for (int64_t n = 0; n < a.n; n++) {
            const Sums sum = added_up(a, n * a.c + c);
            g += sum.first;
            gxhat += sum.second * get(a.spread, n * a.groups + group);
        }
        put(a.gw, c, gxhat);
        put(a.gb, c, g);
    }
}

// -- results --------------------------------------------------------------------------------------

PT_DEVICE C result(T x, U g, const Factors &f, bool backward) {
    const C from = up(x) - f.mean;
    return backward ? f.scale * (C)up(g) - f.shift - from * pt::abs(f.slope) * f.slope
                    : from * f.scale + f.shift;
}
// The factors of element i's plane.
PT_DEVICE Factors factors_of(const ChannelNormArgs &a, uint32_t i) {
    const uint32_t plane = a.first_plane + divided(i, a.by_plane[0], a.by_plane[1]);
    return factors(a)[plane - divided(plane, a.by_period[0], a.by_period[1]) * (uint32_t)a.period];
}

// ONE: all elements of a pack are in one plane.
template <int V, bool ONE> PT_DEVICE void apply(const ChannelNormArgs &a) {
    const T *const x = reinterpret_cast<const T *>(a.x);
    const U *const g = reinterpret_cast<const U *>(a.g);
    T *const out = reinterpret_cast<T *>(a.out);
    const uint32_t n = a.here, step = gridDim.x * blockDim.x * V;
    for (uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) * V; i < n; i += AT_ONCE * step) {
        Elements<T, V> xs[AT_ONCE];
        Elements<U, V> gs[AT_ONCE];
        PT_UNROLL for (int k = 0; k < AT_ONCE; k++) {
            if (i + k * step >= n) continue;
            xs[k] = load_pack<V>(x + i + k * step);
            if (a.g) gs[k] = load_pack<V>(g + i + k * step);
        }
        PT_UNROLL for (int k = 0; k < AT_ONCE; k++) {
            const uint32_t at = i + k * step;
            if (at >= n) continue;
            Factors f = factors_of(a, at);
            Elements<T, V> y;
            PT_UNROLL for (int v = 0; v < V; v++) {
                if (!ONE && v) f = factors_of(a, at + v);
                y.v[v] = down<T>(result(xs[k].v[v], gs[k].v[v], f, a.g != nullptr));
            }
            store_pack<V>(out + at, y);
        }
    }
}

}  // namespace

PT_REDUCTION_ROWS(channel_moments, Input, MomentSums)
PT_REDUCTION_COLUMNS(channel_moments, Input, MomentSums)
PT_REDUCTION_ROWS(channel_gradients, InputAndGradient, GradientSums)
PT_REDUCTION_COLUMNS(channel_gradients, InputAndGradient, GradientSums)
PT_KERNEL(batch_norm_factors, ChannelNormArgs, a, 256) { batch_forward(a); }
PT_KERNEL(group_norm_factors, ChannelNormArgs, a, 256) { group_forward(a); }
PT_KERNEL(batch_norm_given_factors, ChannelNormArgs, a, 256) { given(a); }
PT_KERNEL(batch_norm_gradients, ChannelNormArgs, a, 256) { batch_backward(a); }
PT_KERNEL_SYNC(group_norm_gradients, ChannelNormArgs, a, 256) { group_backward(a); }
PT_KERNEL(group_norm_affine_gradients, ChannelNormArgs, a, 256) { group_backward_affine(a); }
PT_KERNEL(channel_apply, ChannelNormArgs, a, 256) { apply<1, true>(a); }
PT_KERNEL(channel_apply_packed, ChannelNormArgs, a, 256) { apply<WIDTH, true>(a); }
PT_KERNEL(channel_apply_mixed, ChannelNormArgs, a, 256) { apply<WIDTH, false>(a); }
PT_KERNEL(channel_fill, ChannelFillArgs, a, 256) {
    PT_GRID_STRIDE(i, a.n) put(a.to, i, a.value);
}

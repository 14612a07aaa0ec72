/* Reductions that choose: amax, amin, max_dim, min_dim (values and indices), argmax, argmin.
 *
 * A NaN wins, and the first NaN among several; of equal values the first wins. Where indices are
 * asked for, narrow integers are compared as int32 or int64; half types are compared as float32:
 * the conversions are exact.
 */
#include "lanes.hpp"
#include "reduce.hpp"

#include <algorithm>

namespace {

template <class T> struct ordered_type { using type = T; };
template <> struct ordered_type<uint8_t> { using type = int32_t; };
template <> struct ordered_type<int8_t> { using type = int32_t; };
template <> struct ordered_type<uint16_t> { using type = int32_t; };
template <> struct ordered_type<int16_t> { using type = int32_t; };
template <> struct ordered_type<uint32_t> { using type = int64_t; };
template <> struct ordered_type<half> { using type = float; };
template <> struct ordered_type<bfloat16> { using type = float; };

/* Integers whose extremes are found as they are, by loops that the compiler vectorises. */
template <class T>
constexpr bool IS_NARROW = is_same<T, uint8_t> || is_same<T, int8_t> || is_same<T, int16_t>;

template <class E, bool MAX>
struct choice {
    using fold_type = std::conditional_t<MAX, max_fold, min_fold>;
    static E worst() { return MAX ? limits<E>::lowest() : limits<E>::highest(); }
    /* whether x, which comes after v, replaces it */
    static bool better(E x, E v) { return v == v && !(MAX ? x <= v : x >= v); }
};

template <class E, bool MAX>
struct value_op {
    using elem = E;
    using state = E;
    using fold_type = typename choice<E, MAX>::fold_type;
    static state identity() { return choice<E, MAX>::worst(); }
    static bool settled(const state &) { return false; }
    static void merge(state &a, const state &b) { a = fold_type::apply(a, b); }
    void run(state &s, const E *x, int64_t n, int64_t) const {
        if constexpr (IS_NARROW<E>) {
            E best = s;
            for (int64_t i = 0; i < n; ++i)
                best = MAX ? std::max(best, x[i]) : std::min(best, x[i]);
            s = best;
        } else {
            s = fold_type::apply(s, fold<fold_type>(x, n, identity()));
        }
    }
    void columns(state *PT_RESTRICT s, const E *PT_RESTRICT x, int64_t stride, int64_t rows,
                 int64_t width, int64_t) const {
        for (int64_t r = 0; r < rows; ++r) {
            const E *p = x + r * stride;
            PT_IVDEP
            for (int64_t j = 0; j < width; ++j) s[j] = fold_type::apply(s[j], p[j]);
        }
    }
};

template <class E, bool MAX>
struct index_op {
    using elem = E;
    using pick = choice<E, MAX>;
    struct state {
        E value;
        int64_t index;      /* -1: no element yet */
    };
    static state identity() { return {pick::worst(), -1}; }
    static bool settled(const state &s) { return s.value != s.value; }
    static void merge(state &a, const state &b) {
        if (b.index >= 0 && (a.index < 0 || pick::better(b.value, a.value))) a = b;
    }
    void run(state &s, const E *x, int64_t n, int64_t position) const {
        const E best = fold<typename pick::fold_type>(x, n, pick::worst());
        if (s.index >= 0 && !pick::better(best, s.value)) return;
        const int64_t at = find(x, n, best);    /* `best` may be a zero of the other sign */
        s = {x[at], position + at};
    }
    void columns(state *s, const E *x, int64_t stride, int64_t rows, int64_t width,
                 int64_t position) const {
        using I = std::conditional_t<sizeof(E) == 4, int32_t, int64_t>;
        E value[COLUMN_WIDTH];
        I index[COLUMN_WIDTH];
        for (int64_t j = 0; j < width; ++j) {
            value[j] = x[j];
            index[j] = 0;
        }
        for (int64_t r = 1; r < rows; ++r) take_row(value, index, x + r * stride, I(r), width);
        for (int64_t j = 0; j < width; ++j) merge(s[j], {value[j], position + index[j]});
    }

  private:
      template <class I>
      static void take_row(E *PT_RESTRICT value, I *PT_RESTRICT index, const E *PT_RESTRICT x, I r,
                           int64_t width) {
          PT_IVDEP
          for (int64_t j = 0; j < width; ++j) {
              const E v = value[j], y = x[j];
              const bool take = (v == v) & !(MAX ? y <= v : y >= v);
              value[j] = take ? y : v;
              index[j] = take ? r : index[j];
          }
      }
    /* the first position of `best`, which occurs in x: blocks of 64, then one by one */
    static int64_t find(const E *x, int64_t n, E best) {
        const bool nan = best != best;
        int64_t i = 0;
        for (; i + 64 <= n; i += 64) {
            int hits = 0;
            if (nan)
                for (int l = 0; l < 64; ++l) hits |= x[i + l] != x[i + l];
            else
                for (int l = 0; l < 64; ++l) hits |= x[i + l] == best;
            if (hits) break;
        }
        while (i < n - 1 && !(nan ? x[i] != x[i] : x[i] == best)) ++i;
        return i;
    }
};

struct value_write {
    template <class O, class S>
    static void apply(O &out, const S &s, const sink &, int64_t) { out = convert<O>(s); }
};
struct value_index_write {
    template <class O, class S>
    static void apply(O &out, const S &s, const sink &to, int64_t i) {
        out = convert<O>(s.value);
        reinterpret_cast<int64_t *>(to.out2)[i] = s.index;
    }
};
struct index_write {
    template <class S>
    static void apply(int64_t &out, const S &s, const sink &, int64_t) { out = s.index; }
};

template <class Op, class T, class O, class Write>
inline int choose(pt_call *call, const reduction_plan &plan) {
    if (plan.count == 0 && plan.outputs > 0)
        return fail(call, PT_INDEX_ERROR,
                    "expected reduction dim to have non-zero size, got an empty one");
    using E = typename Op::elem;
    const Op op;
    source from = source_of<E, T>(call->in[0]);
    if constexpr (is_same<E, uint8_t>)
        if (call->in[0].dtype == PT_BOOL)           /* any byte but 0 is true: read as 1 */
            from = {from.data, 1, fetch_plain<E, boolean>, false};
    return reduce(call, reducer_of(&op), from, plan,
                  sink_of<O, typename Op::state, Write>(call));
}

template <bool MAX>
int value_kernel(pt_call *call) {
    reduction_plan plan;
    if (int status = plan_dims(call, 0, plan)) return status;
    without_repeats(plan);
    return visit<REALS>(call, call->in[0].dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using E = std::conditional_t<IS_NARROW<T>, T, typename ordered_type<T>::type>;
        return choose<value_op<E, MAX>, T, T, value_write>(call, plan);
    });
}

template <bool MAX, bool VALUES>
int index_kernel(pt_call *call) {
    reduction_plan plan;
    bool mask[PT_MAX_DIM];
    const pt_param &dim = call->params[0];
    if (int status =
            dims_mask(call, &dim.i, dim.kind == PT_PARAM_NONE ? 0 : 1, call->in[0].ndim, mask))
        return status;
    plan_reduction(call->in[0], mask, true, plan);
    if (!VALUES && plan.count == 1) {
        memset(call->out[0].data, 0, size_t(call->out[0].numel) * sizeof(int64_t));
        return PT_OK;
    }
    return visit<REALS>(call, call->in[0].dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using op = index_op<typename ordered_type<T>::type, MAX>;
        if constexpr (VALUES) return choose<op, T, T, value_index_write>(call, plan);
        else return choose<op, T, int64_t, index_write>(call, plan);
    });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_extremum_, PT_ISA)[] = {
    {"amax", value_kernel<true>},
    {"amin", value_kernel<false>},
    {"max_dim", index_kernel<true, true>},
    {"min_dim", index_kernel<false, true>},
    {"argmax", index_kernel<true, false>},
    {"argmin", index_kernel<false, false>},
    {nullptr, nullptr},
};

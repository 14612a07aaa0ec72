/* Products and extremes scattered along a dim: like scatter_add in index.cpp. Products of half
 * types are taken in float32. Among extremes NaN wins.
 * Compiled for the base level alone.
 */
#include "indexing.hpp"

namespace {

struct times {
    template <class T> static T apply(T a, T b) {
        if constexpr (is_complex<T> || is_same<T, boolean>) return a * b;
        else if constexpr (std::is_integral<T>::value) {
            using U = typename pt::wrapping<T>::type;   /* unsigned, at least 32 bits: it wraps */
            return T(U(a) * U(b));
        } else return a * b;
    }
};
template <bool MAX>
struct extreme {
    template <class T> static T apply(T a, T b) {
        const compute<T> x = convert<compute<T>>(a), y = convert<compute<T>>(b);
        return y != y || (x == x && (MAX ? y > x : y < x)) ? b : a;
    }
};

template <class Combine, uint32_t TYPES>
int scatter_with(pt_call *call) {
    int64_t dim;
    if (int status = open_dim(call, call->in[0], call->in[1], &call->in[2], dim)) return status;
    auto run = [&](auto tag) {
        using T = PT_TYPE(tag);
        if constexpr (is_same<Combine, times> && is_half<T>)
            return adding_to_copy<T>(call, &call->in[0], 0, 0, false, [&](auto *out) {
                using S = std::remove_pointer_t<decltype(out)>;
                if constexpr (!is_half<S>)
                    scatter_into<S, T>(call, out, dim, [](S a, T b) { return a * convert<S>(b); });
            });
        else {
            copy_unless_same(output<T>(call), call->in[0]);
            scatter_into<T, T>(call, output<T>(call), dim,
                               [](T a, T b) { return Combine::apply(a, b); });
            return int(PT_OK);
        }
    };
    if constexpr (is_same<Combine, times>)
        if (call->out[0].dtype == PT_BOOL) return run(type_tag<boolean>{});
    return visit<TYPES>(call, call->out[0].dtype, run);
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_scatter_reduce_, PT_ISA)[] = {
    {"scatter_prod", scatter_with<times, INTEGERS | FLOATS | COMPLEXES>},
    {"scatter_amax", scatter_with<extreme<true>, REALS>},
    {"scatter_amin", scatter_with<extreme<false>, REALS>},
    {nullptr, nullptr},
};

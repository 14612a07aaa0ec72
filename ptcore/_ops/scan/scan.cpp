/* Running sums and products along a dim: cumsum, cumprod. running.cpp has the others.
 *
 * Floating sums are computed in float64 for float32 and half inputs; integers wrap in the output's
 * type. Once a NaN is met, the results stay NaN.
 */
#include "lanes.hpp"
#include "scan.hpp"

namespace {

/* type of the carry of a sum or product */
template <class T, bool = std::is_integral<T>::value> struct carry_of { using type = double; };
template <class T> struct carry_of<T, true> {   /* narrow types would become ints, and overflow */
    using type = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;
};
template <> struct carry_of<boolean, false> { using type = boolean; };
template <> struct carry_of<complex64, false> { using type = complex128; };
template <> struct carry_of<complex128, false> { using type = complex128; };

template <class T, class Fold>
struct fold_scan {
    using out_type = T;
    using carry = typename carry_of<T>::type;
    static carry start() { return convert<carry>(is_same<Fold, add_fold> ? 0 : 1); }
    static void step(carry &c, T x, int64_t, T &out, int64_t *) {
        c = carry(Fold::apply(c, convert<carry>(x)));
        out = convert<T>(c);
    }
};

/* computes in the output's dtype; the input has the same one, or an integer type that is widened */
template <class Fold>
int fold_kernel(pt_call *call) {
    if (int status = check_dim(call)) return status;
    const int from = call->in[0].dtype;
    if (from == PT_BOOL && call->out[0].dtype == PT_BOOL)
        return scan(call, scan_of<fold_scan<boolean, Fold>, boolean>());
    if (from == PT_BOOL && call->out[0].dtype == PT_INT64)
        return scan(call, scan_of<fold_scan<int64_t, Fold>, boolean>());
    return visit<INTEGERS | FLOATS | COMPLEXES>(call, call->out[0].dtype, [&](auto tag) {
        using O = PT_TYPE(tag);
        if (from == call->out[0].dtype) {
            if constexpr (std::is_integral<O>::value) {     /* both signs wrap equally */
                using U = std::make_unsigned_t<O>;
                return scan(call, scan_of<fold_scan<U, Fold>, U>());
            }
            else return scan(call, scan_of<fold_scan<O, Fold>, O>());
        }
        if constexpr (is_same<O, int64_t>)
            return visit<INTEGERS>(call, from, [&](auto in) {
                return scan(call, scan_of<fold_scan<O, Fold>, PT_TYPE(in)>());
            });
        else return bad_dtype(call, from);
    });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_scan_, PT_ISA)[] = {
    {"cumsum", fold_kernel<add_fold>},
    {"cumprod", fold_kernel<multiply_fold>},
    {nullptr, nullptr},
};

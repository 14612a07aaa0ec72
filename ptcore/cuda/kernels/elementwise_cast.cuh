// One op's formula over operands of any dtypes: each is converted to the compute dtype, the result
// to the output's. A program of its own beside elementwise.cuh, as few calls need it and its
// switches take long to compile.
#include "dynamic.cuh"
#include "elementwise_formula.cuh"

namespace {

// Ops that wrap are computed in the unsigned type C; their results are read as T again before they
// are converted.
template <class A, class B> struct same { enum { yes = false }; };
template <class A> struct same<A, A> { enum { yes = true }; };
template <bool WRAPS> struct converted { typedef Out type; };
template <> struct converted<true> { typedef T type; };
typedef converted<same<Out, C>::yes && !same<C, T>::yes && (PT_TCODE > 0 && PT_TCODE < 9)>::type
    Converted;

PT_DEVICE void cast(const ElementwiseArgs &a) {
    const Params<C> p(a.params, PT_OP::nparams);
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += step) {
        const Offsets<NIN + 1> o = offsets_of<NIN + 1>(a.walk, i);
        Inputs x;
        for (int k = 0; k < NIN; k++)
            x.x[k] = a.data[k + 1]
                         ? C(up(load_from<T>(a.data[k + 1] + o.at[k + 1], a.dtypes[k + 1])))
                         : number(a, k + 1);
        store_to(a.data[0] + o.at[0], a.dtypes[0], (Converted)down<Out>(formula<NIN>(p, x)));
    }
}

}  // namespace

PT_KERNEL(elementwise_cast, ElementwiseArgs, a, 256) { cast(a); }

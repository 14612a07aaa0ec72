// One op's formula over dense operands, 16 bytes at a time, and over operands of any strides.
#include "elementwise_formula.cuh"

namespace {

enum {
    PT_PER_THREAD = sizeof(T) == 1 ? 1 : 4,
    PT_PACKS_PER_THREAD = 2
};          // a pack of bytes needs many registers

PT_DEVICE C single(const ElementwiseArgs &a, int k) {
    return a.data[k] ? C(up(load(reinterpret_cast<const T *>(a.data[k]), 0))) : number(a, k);
}

PT_DEVICE void dense(const ElementwiseArgs &a) {
    constexpr int V = 16 / sizeof(T);
    const int64_t first = ((int64_t)blockIdx.x * blockDim.x * PT_PER_THREAD + threadIdx.x) * V;
    if (first >= a.n)
        return;    // before single() reads an operand: a one-element output may be the operand
    const Params<C> p(a.params, PT_OP::nparams);
    Inputs fixed = {};
    for (int k = 0; k < NIN; k++)
        if (a.single >> (k + 1) & 1) fixed.x[k] = single(a, k + 1);
    const int64_t step = (int64_t)blockDim.x * V;
    Out *out = reinterpret_cast<Out *>(a.data[0]);
    if (a.aligned && first + (PT_PER_THREAD - 1) * step + V <= a.n) {
        Pack<T, V> in[NIN][PT_PER_THREAD];
        for (int k = 0; k < NIN; k++)
            if (!(a.single >> (k + 1) & 1))
                PT_UNROLL for (int j = 0; j < PT_PER_THREAD; j++)
            in[k][j] =
                *reinterpret_cast<const Pack<T, V> *>(reinterpret_cast<const T *>(a.data[k + 1]) +
                                                      first + j * step);
        PT_UNROLL for (int j = 0; j < PT_PER_THREAD; j++) {
            Pack<Out, V> r;
            PT_UNROLL for (int v = 0; v < V; v++) {
                Inputs x;
                for (int k = 0; k < NIN; k++)
                    x.x[k] = a.single >> (k + 1) & 1 ? fixed.x[k] : C(up(load(in[k][j].v, v)));
                r.v[v] = down<Out>(formula<NIN>(p, x));
            }
            *reinterpret_cast<Pack<Out, V> *>(out + first + j * step) = r;
        }
        return;
    }
    for (int j = 0; j < PT_PER_THREAD; j++)
        for (int64_t i = first + j * step; i < first + j * step + V && i < a.n; i++) {
            Inputs x;
            for (int k = 0; k < NIN; k++)
                x.x[k] = a.single >> (k + 1) & 1
                             ? fixed.x[k]
                             : C(up(load(reinterpret_cast<const T *>(a.data[k + 1]), i)));
            out[i] = down<Out>(formula<NIN>(p, x));
        }
}

PT_DEVICE void strided(const ElementwiseArgs &a) {
    const Params<C> p(a.params, PT_OP::nparams);
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += step) {
        const Offsets<NIN + 1> o = offsets_of<NIN + 1>(a.walk, i);
        Inputs x;
        for (int k = 0; k < NIN; k++)
            x.x[k] = a.data[k + 1]
                         ? C(up(load(reinterpret_cast<const T *>(a.data[k + 1] + o.at[k + 1]), 0)))
                         : number(a, k + 1);
        *reinterpret_cast<Out *>(a.data[0] + o.at[0]) = down<Out>(formula<NIN>(p, x));
    }
}

// Computes packs of neighbours along the innermost dim. An input's pack is loaded by one
// instruction, or is one element for all (stride 0).
PT_DEVICE void packed(const ElementwiseArgs &a) {
    constexpr int V = 16 / sizeof(T);
    const Params<C> p(a.params, PT_OP::nparams);
    const uint32_t first = blockIdx.x * (256 * PT_PACKS_PER_THREAD) + threadIdx.x;
    PT_UNROLL for (int j = 0; j < PT_PACKS_PER_THREAD; j++) {
        const uint32_t i = first + j * 256;
        if (i < a.n) {
            const Offsets<NIN + 1> o = offsets_of<NIN + 1>(a.walk, i);
            Pack<T, V> in[NIN];
            Inputs fixed = {};
            PT_UNROLL for (int k = 0; k < NIN; k++) {
                const char *from = a.data[k + 1] + o.at[k + 1];
                if (a.walk.strides[k + 1][0]) in[k] = *reinterpret_cast<const Pack<T, V> *>(from);
                else
                    fixed.x[k] = a.data[k + 1] ? C(up(load(reinterpret_cast<const T *>(from), 0)))
                                               : number(a, k + 1);
            }
            Pack<Out, V> r;
            PT_UNROLL for (int v = 0; v < V; v++) {
                Inputs x;
                PT_UNROLL
                for (int k = 0; k < NIN; k++)
                    x.x[k] = a.walk.strides[k + 1][0] ? C(up(load(in[k].v, v))) : fixed.x[k];
                r.v[v] = down<Out>(formula<NIN>(p, x));
            }
            *reinterpret_cast<Pack<Out, V> *>(a.data[0] + o.at[0]) = r;
        }
    }
}

}  // namespace

PT_KERNEL(elementwise_dense, ElementwiseArgs, a, 256) { dense(a); }
PT_KERNEL(elementwise_packed, ElementwiseArgs, a, 256) { packed(a); }
PT_KERNEL(elementwise_strided, ElementwiseArgs, a, 256) { strided(a); }

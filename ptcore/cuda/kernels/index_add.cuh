// Values added at the places of an index, in any order.
#include "atomic.cuh"
#include "index_base.cuh"

namespace {

template <class T> PT_DEVICE T scaled(T x, const IndexArgs &a) { return (T)(x * (T)a.whole_alpha); }
PT_DEVICE bool scaled(bool x, const IndexArgs &a) { return x && a.alpha[0] != 0; }
PT_DEVICE float scaled(float x, const IndexArgs &a) { return x * (float)a.alpha[0]; }
PT_DEVICE double scaled(double x, const IndexArgs &a) { return x * a.alpha[0]; }
PT_DEVICE half scaled(half x, const IndexArgs &a) { return pt::to_half(pt::to_float(x) * (float)a.alpha[0]); }
PT_DEVICE bfloat16 scaled(bfloat16 x, const IndexArgs &a) { return pt::to_bfloat16(pt::to_float(x) * (float)a.alpha[0]); }
PT_DEVICE complex64 scaled(complex64 x, const IndexArgs &a) { return x * complex64((float)a.alpha[0], (float)a.alpha[1]); }
PT_DEVICE complex128 scaled(complex128 x, const IndexArgs &a) { return x * complex128(a.alpha[0], a.alpha[1]); }

PT_DEVICE void accumulate(const IndexArgs &a) {
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += step) {
        const Offsets<3> o = offsets_of<3>(a.walk, i);
        const int64_t index = *reinterpret_cast<const int64_t *>(a.data[2] + o.at[2]);
        int64_t by;
        if ((index != a.skipped || a.size == 0) && moved(a, index, by))
            atomic_add(reinterpret_cast<PT_T *>(a.data[1] + o.at[1] + by),
                       scaled(load(reinterpret_cast<const PT_T *>(a.data[0] + o.at[0]), 0), a));
    }
}

}  // namespace

PT_KERNEL(index_accumulate, IndexArgs, a, 256) { accumulate(a); }

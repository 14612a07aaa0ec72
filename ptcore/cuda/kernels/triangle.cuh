// Keeps a triangle of each matrix and fills the other with zeros. PT_T is any type of its size.
#include "shape_args.h"
#include "walk.cuh"

namespace {

PT_DEVICE void cut(const TriangleArgs &a) {
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += step) {
        const Offsets<2> o = offsets_of<2>(a.walk, i);
        int64_t place = a.start + o.at[0] / (int64_t)sizeof(PT_T);
        const int64_t column = take_rest(place, a.columns), row = take_rest(place, a.rows);
        const bool kept = a.lower ? column <= row + a.diagonal : column >= row + a.diagonal;
        *reinterpret_cast<PT_T *>(a.out + o.at[0]) =
            kept ? *reinterpret_cast<const PT_T *>(a.in + o.at[1]) : PT_T();
    }
}

}  // namespace

PT_KERNEL(triangle, TriangleArgs, a, 256) { cut(a); }

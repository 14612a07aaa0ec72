// dst = src with conversion from PT_U to PT_T: dense, and with any strides.
#include "copy_args.h"
#include "dynamic.cuh"
#include "walk.cuh"

namespace {

enum { PT_PER_THREAD = 4 };
typedef raw<PT_T>::type To;
typedef raw<PT_U>::type From;

PT_DEVICE void dense(const CopyArgs &a) {
    constexpr int V = 4;
    To *dst = reinterpret_cast<To *>(a.dst);
    const From *src = reinterpret_cast<const From *>(a.src);
    const int64_t first = ((int64_t)blockIdx.x * blockDim.x * PT_PER_THREAD + threadIdx.x) * V,
                  step = (int64_t)blockDim.x * V;
    if (a.aligned && first + (PT_PER_THREAD - 1) * step + V <= a.n) {
        Pack<From, V> in[PT_PER_THREAD];
        PT_UNROLL
        for (int j = 0; j < PT_PER_THREAD; j++)
            in[j] = *reinterpret_cast<const Pack<From, V> *>(src + first + j * step);
        PT_UNROLL for (int j = 0; j < PT_PER_THREAD; j++) {
            Pack<To, V> out;
            PT_UNROLL
            for (int v = 0; v < V; v++) out.v[v] = pt::element<From, To>::cast(in[j].v[v]);
            *reinterpret_cast<Pack<To, V> *>(dst + first + j * step) = out;
        }
        return;
    }
    for (int j = 0; j < PT_PER_THREAD; j++)
        for (int64_t i = first + j * step; i < first + j * step + V && i < a.n; i++)
            dst[i] = pt::element<From, To>::cast(src[i]);
}

PT_DEVICE void strided(const CopyArgs &a) {
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += step) {
        const Offsets<2> o = offsets_of<2>(a.walk, i);
        *reinterpret_cast<To *>(a.dst + o.at[0]) =
            pt::element<From, To>::cast(*reinterpret_cast<const From *>(a.src + o.at[1]));
    }
}

// Copies packs of neighbours along the innermost dim. Where the source's stride in this dim is 0,
// one source element fills the pack.
PT_DEVICE void packed(const CopyArgs &a) {
    constexpr int V = 16 / (sizeof(To) > sizeof(From) ? sizeof(To) : sizeof(From));
    const uint32_t first = blockIdx.x * (256 * PT_PER_THREAD) + threadIdx.x;
    Pack<From, V> in[PT_PER_THREAD];
    int64_t to[PT_PER_THREAD];
    PT_UNROLL for (int j = 0; j < PT_PER_THREAD; j++) {
        const uint32_t i = first + j * 256;
        if (i < a.n) {
            const Offsets<2> o = offsets_of<2>(a.walk, i);
            to[j] = o.at[0];
            if (a.walk.strides[1][0]) {
                in[j] = *reinterpret_cast<const Pack<From, V> *>(a.src + o.at[1]);
            } else {
                const From x = *reinterpret_cast<const From *>(a.src + o.at[1]);
                PT_UNROLL for (int v = 0; v < V; v++) in[j].v[v] = x;
            }
        }
    }
    PT_UNROLL for (int j = 0; j < PT_PER_THREAD; j++)
        if (first + j * 256 < a.n) {
            Pack<To, V> out;
            PT_UNROLL
            for (int v = 0; v < V; v++) out.v[v] = pt::element<From, To>::cast(in[j].v[v]);
            *reinterpret_cast<Pack<To, V> *>(a.dst + to[j]) = out;
        }
}

}  // namespace

PT_KERNEL(copy_dense, CopyArgs, a, 256) { dense(a); }
PT_KERNEL(copy_packed, CopyArgs, a, 256) { packed(a); }
PT_KERNEL(copy_strided, CopyArgs, a, 256) { strided(a); }

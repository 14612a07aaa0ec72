// Elements taken from or put at the places of an index, by their size alone, and several indices
// made into one index of byte offsets.
#include "index_base.cuh"
#include "pack.cuh"

namespace {

template <class T> PT_DEVICE void take(const IndexArgs &a) {
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += step) {
        const Offsets<3> o = offsets_of<3>(a.walk, i);
        int64_t by;
        const bool fine = moved(a, *reinterpret_cast<const int64_t *>(a.data[2] + o.at[2]), by);
        *reinterpret_cast<T *>(a.data[0] + o.at[0]) =
            fine ? *reinterpret_cast<const T *>(a.data[1] + o.at[1] + by) : T();
    }
}

struct Put {
    template <class T> PT_DEVICE_MEMBER void operator()(T *to, const T *from) const {
        store_any(to, *from);
    }
};

PT_DEVICE void places(const IndexArgs &a) {
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += step) {
        const Offsets<3> o = offsets_of<3>(a.walk, i);
        int64_t by;
        int64_t *place = reinterpret_cast<int64_t *>(a.data[0] + o.at[0]);
        const bool fine = moved(a, *reinterpret_cast<const int64_t *>(a.data[2] + o.at[2]), by);
        const int64_t before = a.again ? *place : 0;
        *place = fine && before != PT_NOWHERE ? before + by : PT_NOWHERE;
    }
}

}  // namespace

PT_KERNEL(index_take, IndexArgs, a, 256) { take<PT_T>(a); }
PT_KERNEL(index_put, IndexArgs, a, 256) { each_place<PT_T>(a, Put()); }
PT_KERNEL(index_places, IndexArgs, a, 256) { places(a); }
#if PT_TCODE == 14          // aligned words of 16 bytes; complex numbers may lie at multiples of 8
PT_KERNEL(index_take_words, IndexArgs, a, 256) { take<word_of<16>::type>(a); }
PT_KERNEL(index_put_words, IndexArgs, a, 256) { each_place<word_of<16>::type>(a, Put()); }
#endif

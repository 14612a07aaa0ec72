// A random permutation: the order of random 64-bit words, as on the CPU. PT_T: the output's type.
#include "sort_args.h"
#include "stream_place.cuh"

PT_KERNEL(permute_open, SortArgs, a, 256) {
    const StreamPlace at = stream_place(a);
    PT_GRID_STRIDE(i, a.size.by) {
        uint64_t key = ~(uint64_t)0;
        if (i < a.length)
            key = pt::word64(pt::philox(at.seed, at.offset, (uint64_t)i / 2, 0).w, i % 2);
        static_cast<SortEntry *>(a.entries)[i] = SortEntry{key, i};
    }
}
PT_KERNEL(permute_close, SortArgs, a, 256) {
    typedef raw<PT_T>::type Out;
    const SortEntry *entries = static_cast<const SortEntry *>(a.entries);
    PT_GRID_STRIDE(i, a.length)
    reinterpret_cast<Out *>(a.positions)[i] = pt::element<int64_t, Out>::cast(entries[i].position);
}

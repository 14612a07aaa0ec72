// Elements to entries whose order is the wanted one, and back.
#include "sort_keys.cuh"

namespace {

// Numbers are I, of 32 bits where that is enough for all of them.
template <class I> PT_DEVICE void open(const SortArgs &a) {
    const I n = (I)(a.lines * a.size), size = (I)a.size;
    for (I i = (I)thread_index(); i < n; i += (I)thread_count()) {
        const int64_t line = i / size, j = i % size;
        // padding comes behind all by its position
        put_entry(a, i, j < a.length ? ordered(a, load(reinterpret_cast<const T *>(a.in), place(a, line, j, a.length)))
                                     : ~(uint64_t)0, j);
    }
}

// The element comes from its key, as where it lies in the input is anywhere.
template <class I> PT_DEVICE void close(const SortArgs &a) {
    const I n = (I)(a.lines * a.kept), kept = (I)a.kept;
    for (I i = (I)thread_index(); i < n; i += (I)thread_count()) {
        const int64_t line = i / kept, j = i % kept, to = place(a, line, j, a.kept), at = line * a.size + j;
        SortEntry e;
        if (a.brief) {
            const uint64_t word = static_cast<const uint64_t *>(a.entries)[at];
            e = SortEntry{word >> 32, (int64_t)(word & 0xffffffffu)};
        } else {
            e = static_cast<const SortEntry *>(a.entries)[at];
        }
        raw<T>::type x;
        if (!element_of(a, &x, e.key)) x = reinterpret_cast<const raw<T>::type *>(a.in)[place(a, line, e.position, a.length)];
        reinterpret_cast<raw<T>::type *>(a.values)[to] = x;
        reinterpret_cast<int64_t *>(a.positions)[to] = e.position;
    }
}

}  // namespace

PT_KERNEL(sort_open, SortArgs, a, 256) {
    if (a.lines * a.size < (int64_t)1 << 31) open<uint32_t>(a);
    else open<int64_t>(a);
}
PT_KERNEL(sort_close, SortArgs, a, 256) {
    if (a.lines * a.kept < (int64_t)1 << 31) close<uint32_t>(a);
    else close<int64_t>(a);
}

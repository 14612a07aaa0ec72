// Converts elements to entries that compare in the wanted order, and back.
#include "sort_keys.cuh"

namespace {

PT_DEVICE void open(const SortArgs &a) {
    const int64_t n = a.lines * a.size.by;
    PT_GRID_STRIDE(i, n) {
        int64_t line = i;
        const int64_t j = take_rest(line, a.size);
        // padding comes last because of its position
        put_entry(a, i,
                  j < a.length ? ordered(a, load(reinterpret_cast<const T *>(a.in),
                                                 place(a, line, j, a.length)))
                               : ~(uint64_t)0,
                  j);
    }
}

// The element is computed from its key, because reading it from the input is a scattered access.
PT_DEVICE void close(const SortArgs &a) {
    const int64_t n = a.lines * a.kept.by;
    PT_GRID_STRIDE(i, n) {
        int64_t line = i;
        const int64_t j = take_rest(line, a.kept), to = place(a, line, j, a.kept.by),
                      at = line * a.size.by + j;
        SortEntry e;
        if (a.brief) {
            const uint64_t word = static_cast<const uint64_t *>(a.entries)[at];
            e = SortEntry{word >> 32, (int64_t)(word & 0xffffffffu)};
        } else {
            e = static_cast<const SortEntry *>(a.entries)[at];
        }
        raw<T>::type x;
        if (!element_of(a, &x, e.key))
            x = reinterpret_cast<const raw<T>::type *>(a.in)[place(a, line, e.position, a.length)];
        reinterpret_cast<raw<T>::type *>(a.values)[to] = x;
        reinterpret_cast<int64_t *>(a.positions)[to] = e.position;
    }
}

}  // namespace

PT_KERNEL(sort_open, SortArgs, a, 256) { open(a); }
PT_KERNEL(sort_close, SortArgs, a, 256) { close(a); }

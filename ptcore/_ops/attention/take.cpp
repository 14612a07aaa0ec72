/* A loop of a plan that takes elements of a tensor at given indices (tiles.h). */
#include "tiles.h"

#include <cstring>

namespace {

template<class T, int NDIM> bool take(char *const *ptr, int64_t n, const pt_taken &t) {
    const T *from = reinterpret_cast<const T *>(t.data);
    T *to = reinterpret_cast<T *>(ptr[0]);
    bool wrong = false;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0;
        bool outside = false;
        for (int d = 0; d < NDIM; d++) {
            int64_t k = reinterpret_cast<const int64_t *>(ptr[1 + d])[i];
            k += k < 0 ? t.sizes[d] : 0;
            outside |= uint64_t(k) >= uint64_t(t.sizes[d]);
            at += k * t.strides[d];
        }
        to[i] = from[outside ? 0 : at];
        wrong |= outside;
    }
    return wrong;
}

/* The elements at the given indices; negative indices count from the end. An index out of range
 * sets t.wrong, and element 0 is read instead. */
template<class T> void take_any(char *const *ptr, int64_t n, const void *params) {
    pt_taken t;
    std::memcpy(&t, params, sizeof t);
    static_assert(PT_TAKE_DIMS == 4, "a way for each");
    const bool wrong = t.ndim == 1   ? take<T, 1>(ptr, n, t)
                       : t.ndim == 2 ? take<T, 2>(ptr, n, t)
                       : t.ndim == 3 ? take<T, 3>(ptr, n, t)
                                     : take<T, 4>(ptr, n, t);
    if (wrong) *t.wrong = 1;
}

pt_elementwise op_of(pt_loop loop) {
    pt_elementwise op = {};
    op.name = "index_get";
    op.loop[PT_INT64] = loop;
    op.cost = 16;
    return op;
}

}  /* namespace */

extern "C" const pt_elementwise *pt_take_loops(int itemsize) {
    static const pt_elementwise ops[] = {op_of(take_any<uint8_t>), op_of(take_any<uint16_t>),
                                         op_of(take_any<uint32_t>), op_of(take_any<uint64_t>)};
    for (int k = 0; k < 4; k++)
        if (itemsize == 1 << k) return &ops[k];
    return nullptr;
}

/* Elements of a tensor at positions of a tile, as a loop of a plan (tiles.h). */
#include "tiles.h"

#include <cstring>

namespace {

/* The element at indices, which count from the end where they are negative. One out of range is told, and is 0. */
template<int SIZE> void take(char *const *ptr, int64_t n, const void *params) {
    pt_taken t;
    std::memcpy(&t, params, sizeof t);
    bool wrong = false;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0;
        bool inside = true;
        for (int d = 0; d < t.ndim; d++) {
            int64_t k = reinterpret_cast<const int64_t *>(ptr[1 + d])[i];
            k += k < 0 ? t.sizes[d] : 0;
            inside &= k >= 0 && k < t.sizes[d];
            at += k * t.strides[d];
        }
        std::memcpy(ptr[0] + i * SIZE, t.data + (inside ? at * SIZE : 0), SIZE);
        wrong |= !inside;
    }
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
    static const pt_elementwise ops[] = {op_of(take<1>), op_of(take<2>), op_of(take<4>), op_of(take<8>)};
    for (int k = 0; k < 4; k++)
        if (itemsize == 1 << k) return &ops[k];
    return nullptr;
}

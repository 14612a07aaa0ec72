/* What index.cpp and advanced_index.cpp share: index checks and addition into a destination. */
#ifndef PTCORE_KERNELS_INDEXING_HPP
#define PTCORE_KERNELS_INDEXING_HPP
#include "common.hpp"

namespace {

inline int out_of_bounds(pt_call *call, int64_t value, int64_t dim, int64_t size) {
    return fail(call, PT_INDEX_ERROR, "index %lld is out of bounds for dimension %lld with size %lld", (long long)value, (long long)dim,
                (long long)size);
}

/* Every element of an int64 index is in [lowest, size). */
inline int check_index(pt_call *call, const pt_view &index, int64_t lowest, int64_t size, int64_t dim) {
    if (index.dtype != PT_INT64)
        return fail(call, PT_INDEX_ERROR, "expected an index of dtype int64, got %s", index.dtype < PT_NDTYPES ? DTYPE_NAME[index.dtype] : "none");
    if (index.numel == 0) return PT_OK;
    space<1> outer;
    for (int d = 0; d < index.ndim; ++d) outer.push(index.sizes[d], {index.strides[d]});
    int64_t step[1];
    const int64_t n = outer.pop(step), rows = outer.numel();
    cursor<1> at(outer, 0);
    for (int64_t r = 0; r < rows; ++r, at.next()) {
        const int64_t *p = reinterpret_cast<const int64_t *>(index.data) + at.offset[0];
        uint64_t bad = 0;
        /* in [lowest, size) exactly if the distance from lowest, taken unsigned, is small */
        const uint64_t range = uint64_t(size) - uint64_t(lowest);
        if (step[0] == 1)
            for (int64_t j = 0; j < n; ++j) bad |= uint64_t(uint64_t(p[j]) - uint64_t(lowest) >= range);
        else
            for (int64_t j = 0; j < n; ++j) bad |= uint64_t(uint64_t(p[j * step[0]]) - uint64_t(lowest) >= range);
        if (!bad) continue;
        for (int64_t j = 0; j < n; ++j)
            if (p[j * step[0]] < lowest || p[j * step[0]] >= size) return out_of_bounds(call, p[j * step[0]], dim, size);
    }
    return PT_OK;
}

/* integers add without a sign, so that they wrap */
template <class T, bool = std::is_integral<T>::value> struct adding { using type = T; };
template <class T> struct adding<T, true> { using type = std::make_unsigned_t<T>; };

template <class F>
inline int visit_adding(pt_call *call, int dtype, F &&f) {
    if (dtype == PT_BOOL) return f(type_tag<boolean>{});
    return visit<INTEGERS | FLOATS | COMPLEXES>(call, dtype, [&](auto tag) { return f(type_tag<typename adding<PT_TYPE(tag)>::type>{}); });
}

} // namespace
#endif

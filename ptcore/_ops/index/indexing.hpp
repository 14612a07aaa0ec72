/* What the indexing kernels share: index checks, the walk along one dim and addition into a
 * destination. */
#ifndef PTCORE_KERNELS_INDEXING_HPP
#define PTCORE_KERNELS_INDEXING_HPP
#include "common.hpp"

#include <algorithm>

namespace {

inline int out_of_bounds(pt_call *call, int64_t value, int64_t dim, int64_t size) {
    return fail(call, PT_INDEX_ERROR,
                "index %lld is out of bounds for dimension %lld with size %lld", (long long)value,
                (long long)dim, (long long)size);
}

/* Checks that every element of an int64 index is in [lowest, size). */
inline int check_index(pt_call *call, const pt_view &index, int64_t lowest, int64_t size,
                       int64_t dim) {
    if (index.dtype != PT_INT64)
        return fail(call, PT_INDEX_ERROR, "expected an index of dtype int64, got %s",
                    index.dtype < PT_NDTYPES ? DTYPE_NAME[index.dtype] : "none");
    if (index.numel == 0) return PT_OK;
    space<1> outer;
    for (int d = 0; d < index.ndim; ++d) outer.push(index.sizes[d], {index.strides[d]});
    int64_t step[1];
    const int64_t n = outer.pop(step), rows = outer.numel();
    cursor<1> at(outer, 0);
    for (int64_t r = 0; r < rows; ++r, at.next()) {
        const int64_t *p = reinterpret_cast<const int64_t *>(index.data) + at.offset[0];
        uint64_t bad = 0;
        /* v is in [lowest, size) if and only if the unsigned v - lowest is below range */
        const uint64_t range = uint64_t(size) - uint64_t(lowest);
        if (step[0] == 1)
            for (int64_t j = 0; j < n; ++j)
                bad |= uint64_t(uint64_t(p[j]) - uint64_t(lowest) >= range);
        else
            for (int64_t j = 0; j < n; ++j)
                bad |= uint64_t(uint64_t(p[j * step[0]]) - uint64_t(lowest) >= range);
        if (!bad) continue;
        for (int64_t j = 0; j < n; ++j)
            if (p[j * step[0]] < lowest || p[j * step[0]] >= size)
                return out_of_bounds(call, p[j * step[0]], dim, size);
    }
    return PT_OK;
}

/* integers are added as unsigned types, so that they wrap */
template <class T, bool = std::is_integral<T>::value> struct adding { using type = T; };
template <class T> struct adding<T, true> { using type = std::make_unsigned_t<T>; };

template <class F>
inline int visit_adding(pt_call *call, int dtype, F &&f) {
    if (dtype == PT_BOOL) return f(type_tag<boolean>{});
    return visit<INTEGERS | FLOATS | COMPLEXES>(call, dtype, [&](auto tag) {
        return f(type_tag<typename adding<PT_TYPE(tag)>::type>{});
    });
}

/* The type of products and sums of T: unsigned types of less than 32 bits would become ints, which
 * must not overflow. */
template <class T>
using wide_enough =
    std::conditional_t<std::is_integral<T>::value && sizeof(T) < 4, uint32_t, compute<T>>;

/* The type in which elements of T that meet at one place are added up. */
template <class T> struct sum_type { using type = T; };
template <> struct sum_type<half> { using type = float; };
template <> struct sum_type<bfloat16> { using type = float; };
template <> struct sum_type<float> { using type = double; };
template <> struct sum_type<complex64> { using type = complex128; };

/* Whether an index names one position more than some hundred times, by a sample whose values are
 * counted in buckets. `along`: how many of its elements may name one place. */
PT_NOINLINE bool crowded(const pt_view &index, int64_t along) {
    if (along < 1024) return false;
    int bits = 10;
    while (bits < 16 && index.numel >> (bits + 5)) ++bits;
    const int64_t samples = int64_t(1) << bits;
    scratch<int32_t> count(samples);
    if (!count) return false;
    memset(count.data, 0, size_t(samples) * sizeof(int32_t));
    space<1> walk;
    for (int d = 0; d < index.ndim; ++d) walk.push(index.sizes[d], {index.strides[d]});
    cursor<1> at(walk, 0);
    int64_t most = 0;
    for (int64_t i = 0; i < samples; ++i) {
        at.seek(i * (index.numel >> bits));
        const uint64_t v = reinterpret_cast<const uint64_t *>(index.data)[at.offset[0]];
        most = max64(most, ++count[int64_t(v * 0x9E3779B97F4A7C15u >> (64 - bits))]);
    }
    return most >= 24 && double(most) * double(along) >= 256.0 * double(samples);
}
/* Whether `terms` elements are added to n places in their sum type, in memory of its own. Halves
 * always are: 256 + 1 is 256 in bfloat16. Of floats, only eight or more a place are worth that, or
 * many at one. */
template <class T>
inline bool adds_wide(int64_t terms, int64_t n, const pt_view &index, int64_t along) {
    return !is_same<typename sum_type<T>::type, T> &&
           (is_half<T> || terms / 8 >= n || (terms >= n / 4 && crowded(index, along)));
}

/* Whether an index names different places, from 0 to size or counted from the end. */
struct place_key {
    int64_t at;
    friend bool operator<(place_key a, place_key b) { return a.at < b.at; }
};
inline bool all_differ(const pt_view &index, int64_t size) {
    scratch<place_key> keys(index.numel);
    if (!keys) return false;
    space<1> walk;
    for (int d = 0; d < index.ndim; ++d) walk.push(index.sizes[d], {index.strides[d]});
    cursor<1> from(walk, 0);
    for (int64_t i = 0; i < index.numel; ++i, from.next()) {
        const int64_t v = reinterpret_cast<const int64_t *>(index.data)[from.offset[0]];
        keys[i] = {v < 0 ? v + size : v};
    }
    std::sort(keys.data, keys.data + index.numel);
    for (int64_t i = 1; i < index.numel; ++i)
        if (keys[i].at == keys[i - 1].at) return false;
    return true;
}
/* Whether elements of T can be added one by one, as no place gets several: asked where they are so
 * few that a copy of all places would take longer. */
template <class T>
inline bool adds_apart(const pt_view &index, int64_t size, int64_t terms, int64_t n) {
    return is_half<T> && terms < n / 16 && all_differ(index, size);
}

/* Runs add(E *out), which adds `terms` elements, on a copy of the input in the type of the sums, E,
 * and stores the copy in the output. In place the input is the output; without an input the copy
 * begins with zeros. Input 1 is the index, of which `along` elements may name one place.
 * `apart`: no place gets several terms. */
template <class T, class Add>
inline int adding_to_copy(pt_call *call, const pt_view *start, int64_t terms, int64_t along,
                          bool apart, Add &&add) {
    using E = typename sum_type<T>::type;
    T *out = output<T>(call);
    const int64_t n = call->out[0].numel;
    if (start) copy_unless_same(out, *start);
    else memset(static_cast<void *>(out), 0, size_t(n) * sizeof(T));
    if constexpr (!is_same<E, T>)
        if (adds_wide<T>(terms, n, call->in[1], along) && !apart) {
            scratch<E> wide(n);
            if (!wide) return no_memory(call, n * int64_t(sizeof(E)));
            parallel_for(n, GRAIN, [&](int64_t begin, int64_t end) {
                load(wide.data + begin, out + begin, 1, end - begin);
            });
            add(wide.data);
            parallel_for(n, GRAIN, [&](int64_t begin, int64_t end) {
                store(out + begin, wide.data + begin, end - begin);
            });
            return PT_OK;
        }
    add(out);
    return PT_OK;
}
/* t + v, rounded to the type of t */
template <class S, class T>
inline S added(S t, T v) {
    using E = wide_enough<S>;
    return convert<S>(E(convert<E>(t) + convert<E>(v)));
}

/* The walk of a moved operand (n dims, any strides), the index and a third operand along `dim`:
 * lines along the index's last dim, for each position in its other dims. */
struct lines {
    space<3> outer; /* all dims but `dim` and that across: strides of moved, index, other */
    int64_t along[3], n;                /* strides and size of `dim`; if it is across: 0 and 1 */
    int64_t across[3], width;           /* of the last dim of more than one element */
    int64_t moved;                      /* stride of the moved operand along dim */
    bool indexed;                       /* whether `dim` is across */
};
inline lines walk_lines(const pt_view &index, int64_t dim, const int64_t *moved,
                        const int64_t *other) {
    lines w;
    w.n = w.width = 1;
    w.moved = moved[dim];
    int64_t last = index.ndim - 1;
    while (last > 0 && index.sizes[last] == 1) --last;
    w.indexed = index.ndim == 0 || last == dim;
    for (int k = 0; k < 3; ++k) w.along[k] = w.across[k] = 0;
    for (int64_t d = 0; d < index.ndim; ++d) {
        const int64_t s[3] = {d == dim ? 0 : moved[d], index.strides[d], other[d]};
        if (d == last) {
            w.width = index.sizes[d];
            memcpy(w.across, s, sizeof s);
        }
        else if (d == dim) {
            w.n = index.sizes[d];
            memcpy(w.along, s, sizeof s);
        }
        else w.outer.push(index.sizes[d], s);
    }
    return w;
}
inline void contiguous_strides(const pt_view &v, int64_t (&stride)[PT_MAX_DIM]) {
    for (int64_t d = v.ndim - 1, s = 1; d >= 0; s *= v.sizes[d--]) stride[d] = s;
}

/* Reads `dim` of an op whose input, index and src have equally many dims (0-d counts as 1-d). */
inline int open_dim(pt_call *call, const pt_view &x, const pt_view &index, const pt_view *src,
                    int64_t &dim) {
    const int ndim = x.ndim ? x.ndim : 1;
    dim = wrap_dim(call->params[0].i, ndim);
    if (dim < 0 || dim >= ndim)
        return fail(call, PT_INDEX_ERROR, "dim must be in [%d, %d], got %lld", -ndim, ndim - 1,
                    (long long)call->params[0].i);
    if (index.numel == 0)
        return PT_OK; /* nothing is read or written, whatever the number of dims */
    if ((index.ndim ? index.ndim : 1) != ndim || (src && (src->ndim ? src->ndim : 1) != ndim))
        return fail(call, PT_RUNTIME_ERROR, "expected index%s with %d dimensions like input",
                    src ? " and src" : "", x.ndim);
    for (int d = 0; d < index.ndim && index.numel; ++d)
        if ((d != dim && x.ndim && index.sizes[d] > x.sizes[d]) ||
            (src && src->ndim && index.sizes[d] > src->sizes[d]))
            return fail(call, PT_RUNTIME_ERROR,
                        "size of index at dimension %d is larger than that of %s", d,
                        d != dim && x.ndim && index.sizes[d] > x.sizes[d] ? "input" : "src");
    return check_index(call, index, 0, x.ndim ? x.sizes[dim] : 1, dim);
}

/* to[j] = combine(to[j], from[j]) in the columns [b, e): the index of a whole row is one number */
template <class T, class S, class Combine>
inline void combine_rows(T *PT_RESTRICT to, const S *PT_RESTRICT from, int64_t b, int64_t e,
                         Combine &&combine) {
    for (int64_t j = b; j < e; ++j) to[j] = combine(to[j], from[j]);
}
/* out[index] = combine(out[index], src) along dim, in the order of the index */
template <class T, class S, class Combine>
inline void scatter_into(pt_call *call, T *out, int64_t dim, Combine &&combine) {
    const pt_view &index = call->in[1], &src = call->in[2];
    if (index.numel == 0) return;
    int64_t stride[PT_MAX_DIM], none[1] = {0};
    contiguous_strides(call->out[0], stride);
    const lines w =
        walk_lines(index, dim, call->out[0].ndim ? stride : none, src.ndim ? src.strides : none);
    /* the dim across is cut into blocks too, unless it is the indexed dim */
    const int64_t block = w.indexed ? w.width : 1024, blocks = ceil_div(w.width, block);
    parallel_for(w.outer.numel() * blocks, grain_rows(2 * w.n * min64(block, w.width)),
                 [&](int64_t begin, int64_t end) {
                     cursor<3> at(w.outer, begin / blocks);
                     for (int64_t u = begin; u < end; ++u) {
                         const int64_t b = u % blocks * block, e = min64(w.width, b + block);
                         for (int64_t i = 0; i < w.n; ++i) {
                             T *to = out + at.offset[0];
                             const int64_t *p =
                                 input<int64_t>(call, 1) + at.offset[1] + i * w.along[1];
                             const S *from = input<S>(call, 2) + at.offset[2] + i * w.along[2];
                             if (w.across[0] == 0 && w.moved == 1 && w.across[1] == 1 &&
                                 w.across[2] == 1)
                                 for (int64_t j = b; j < e; ++j)
                                     to[p[j]] = combine(to[p[j]], from[j]);
                             else if (w.across[0] == 1 && w.across[1] == 0 && w.across[2] == 1)
                                 combine_rows(to + *p * w.moved, from, b, e, combine);
                             else
                                 for (int64_t j = b; j < e; ++j) {
                                     T &t = to[j * w.across[0] + p[j * w.across[1]] * w.moved];
                                     t = combine(t, from[j * w.across[2]]);
                                 }
                         }
                         if (u % blocks == blocks - 1) at.next();
                     }
                 });
}

} // namespace
#endif

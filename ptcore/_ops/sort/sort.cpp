/* Sorting and order statistics along a dim: values and int64 indices.
 *
 *    sort(input; dim, descending, stable)      always stable
 *    topk(input; k, dim, largest, sorted)      always sorted; of equal elements the earlier ones
 *    kth(input; k, dim, keepdim)               the k-th smallest, counted from 1
 *    median(input; skip_nan, dim, keepdim)     the lower one; the first NaN, unless NaN are skipped
 *    isin(input, tests; invert)                whether each element is among those of `tests`
 *    mode(input; dim, keepdim)                 the smallest of the most frequent elements,
 *                                              and its last position
 *
 * Every element becomes an unsigned key with the wanted order: floats by their bits with the sign
 * folded in, -0 equal to 0, every NaN equal and greatest; complemented for descending order. A key
 * and a position make one entry. So entries are never equal and every way of sorting them is
 * stable: insertion and merge sort for short lines, radix sort for long lines.
 */
#include "common.hpp"

#include <algorithm>
#include <atomic>

namespace {

template <class T>
struct sort_key {
    using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    static type of(T x) {
        if constexpr (is_half<T>) return sort_key<float>::of(pt::to_float(x));
        else if constexpr (is_float<T>) {
            constexpr type sign = type(1) << (8 * sizeof(T) - 1);
            if (x != x) return type(~type(0));
            const type bits = pt::to_bits(x == 0 ? T(0) : x);
            return bits & sign ? type(~bits) : type(bits | sign);
        } else if constexpr (std::is_signed<T>::value)
            return type(type(x) ^ (type(1) << (8 * sizeof(type) - 1)));
        else return type(x);
    }
};

/* Entries: one word with a 32-bit key above a 32-bit position, or two words. */
struct short_entry {
    uint64_t word;
    static constexpr int digits = 4;
    static short_entry make(uint32_t key, int64_t i) { return {uint64_t(key) << 32 | uint32_t(i)}; }
    int64_t position() const { return int64_t(word & 0xffffffffu); }
    unsigned digit(int d) const { return unsigned(word >> (32 + 8 * d)) & 255u; }
    friend bool operator<(short_entry a, short_entry b) { return a.word < b.word; }
    friend bool same_key(short_entry a, short_entry b) { return a.word >> 32 == b.word >> 32; }
};
struct long_entry {
    uint64_t key, index;
    static constexpr int digits = 8;
    static long_entry make(uint64_t key, int64_t i) { return {key, uint64_t(i)}; }
    int64_t position() const { return int64_t(index); }
    unsigned digit(int d) const { return unsigned(key >> (8 * d)) & 255u; }
    friend bool operator<(const long_entry &a, const long_entry &b) {
        return a.key < b.key || (a.key == b.key && a.index < b.index);
    }
    friend bool same_key(const long_entry &a, const long_entry &b) { return a.key == b.key; }
};

template <class P>
inline void insertion_sort(P *p, int64_t n) {
    for (int64_t i = 1; i < n; ++i) {
        const P x = p[i];
        int64_t j = i;
        for (; j > 0 && x < p[j - 1]; --j) p[j] = p[j - 1];
        p[j] = x;
    }
}
/* bottom-up from runs of 16; returns the one of p and buffer that has the result */
template <class P>
inline P *merge_sort(P *p, P *buffer, int64_t n) {
    constexpr int64_t START = 16;
    for (int64_t i = 0; i < n; i += START) insertion_sort(p + i, min64(START, n - i));
    for (int64_t run = START; run < n; run *= 2) {
        for (int64_t i = 0; i < n; i += 2 * run) {
            const int64_t middle = min64(n, i + run), end = min64(n, i + 2 * run);
            int64_t a = i, b = middle;
            for (int64_t o = i; o < end; ++o) {
                const bool left = b >= end || (a < middle && p[a] < p[b]);
                buffer[o] = left ? p[a++] : p[b++];
            }
        }
        P *t = p;
        p = buffer;
        buffer = t;
    }
    return p;
}
/* Entries come in the order of their positions. Sorts by the least significant digit first; entries
 * with equal digits keep their order. */
template <class P>
inline P *radix_sort(P *p, P *buffer, int64_t n) {
    int64_t counts[P::digits][256] = {};
    for (int64_t i = 0; i < n; ++i)
        for (int d = 0; d < P::digits; ++d) ++counts[d][p[i].digit(d)];
    for (int d = 0; d < P::digits; ++d) {
        if (counts[d][p[0].digit(d)] == n) continue;        /* all entries have the same digit */
        int64_t sum = 0;
        for (int v = 0; v < 256; ++v) {
            const int64_t c = counts[d][v];
            counts[d][v] = sum;
            sum += c;
        }
        for (int64_t i = 0; i < n; ++i) buffer[counts[d][p[i].digit(d)]++] = p[i];
        P *t = p;
        p = buffer;
        buffer = t;
    }
    return p;
}
template <class P>
inline P *sort_entries(P *p, P *buffer, int64_t n) {
    return n < 1024 ? merge_sort(p, buffer, n) : radix_sort(p, buffer, n);
}

/* restores the heap below entry i; order() keeps the k smallest entries, the greatest on top */
template <class P>
inline void sift(P *heap, int64_t k, int64_t i) {
    const P x = heap[i];
    for (int64_t child; (child = 2 * i + 1) < k; i = child) {
        if (child + 1 < k && heap[child] < heap[child + 1]) ++child;
        if (!(x < heap[child])) break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}

/* Sorts along `dim`, or selects the k first entries; k < 0: the whole line. */
template <class T, class P>
int order(pt_call *call, int64_t dim, int64_t k, bool descending) {
    using K = typename sort_key<T>::type;
    const pt_view &x = call->in[0];
    const bool select = k >= 0;
    int64_t n = 1, step = 0, inner = 1;
    space<2> lines;
    for (int64_t d = 0, s = call->out[0].numel; d < x.ndim; ++d) {
        s /= call->out[0].sizes[d];
        if (d == dim) {
            n = x.sizes[d];
            step = x.strides[d];
            inner = s;
        }
        else lines.push(x.sizes[d], {x.strides[d], s});
    }
    const int64_t keep = select ? k : n;
    const bool heap = select && (k <= 1024 || k < n / 16);
    const K flip = descending ? K(~K(0)) : K(0);
    [[maybe_unused]] const bool truth = x.dtype == PT_BOOL;
    T *values = output<T>(call);
    int64_t *indices = output<int64_t>(call, 1);
    std::atomic<bool> starved{false};
    parallel_for(lines.numel(), grain_rows(16 * n), [&](int64_t begin, int64_t end) {
        const int64_t room = heap ? keep : n;
        scratch<P> space(2 * room);
        if (!space) {
            starved = true;
            return;
        }
        cursor<2> at(lines, begin);
        for (int64_t line = begin; line < end; ++line, at.next()) {
            const T *from = input<T>(call) + at.offset[0];
            P *p = space.data;
            auto entry = [&](int64_t i) {
                T v = from[i * step];
                if constexpr (is_same<T, uint8_t>) v = truth ? T(v != 0) : v;
                return P::make(K(sort_key<T>::of(v) ^ flip), i);
            };
            for (int64_t i = 0; i < room; ++i) p[i] = entry(i);
            if (heap) {
                for (int64_t i = keep / 2 - 1; i >= 0; --i) sift(p, keep, i);
                for (int64_t i = keep; i < n; ++i) {
                    const P e = entry(i);
                    if (e < p[0]) {
                        p[0] = e;
                        sift(p, keep, 0);
                    }
                }
                /* radix sort needs entries in the order of positions, which a heap does not keep */
                p = merge_sort(p, space.data + room, room);
            }
            else
                p = sort_entries(p, space.data + room, room);
            for (int64_t i = 0; i < keep; ++i) {
                const int64_t source = p[i].position(), to = at.offset[1] + i * inner;
                values[to] = from[source * step];
                indices[to] = source;
            }
        }
    });
    return starved ? no_memory(call, 2 * n * int64_t(sizeof(P))) : int(PT_OK);
}

inline int order_along(pt_call *call, const pt_param &dim_param, int64_t k, bool descending) {
    const pt_view &x = call->in[0];
    const int ndim = x.ndim ? x.ndim : 1;
    const int64_t dim = wrap_dim(dim_param.i, ndim);
    if (dim < 0 || dim >= ndim)
        return fail(call, PT_INDEX_ERROR, "dim must be in [%d, %d], got %lld", -ndim, ndim - 1,
                    (long long)dim_param.i);
    const int64_t n = x.ndim ? x.sizes[dim] : 1;
    if (k > n)
        return fail(call, PT_RUNTIME_ERROR,
                    "selected index k out of range: k must be in [0, %lld], got %lld", (long long)n,
                    (long long)k);
    if (call->out[0].numel == 0) return PT_OK;
    return visit<REALS>(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        if constexpr (sizeof(T) < 8)
            if (n <= int64_t(UINT32_MAX)) return order<T, short_entry>(call, dim, k, descending);
        return order<T, long_entry>(call, dim, k, descending);
    });
}

/* ---- one element of each line --------------------------------------------------------------- */

/* chosen(entries, buffer, n, missing) returns the entry whose value is wanted, of a line of n
 * entries, of which `missing` are NaN. */
template <class T, class P, class Chosen>
int one_of_each(pt_call *call, int64_t dim, Chosen &&chosen) {
    using K = typename sort_key<T>::type;
    const pt_view &x = call->in[0];
    [[maybe_unused]] const bool truth = x.dtype == PT_BOOL;
    int64_t n = 1, step = 0, inner = call->out[0].numel;
    space<2> lines;
    for (int64_t d = 0; d < x.ndim; ++d) {
        if (d == dim) {
            n = x.sizes[d];
            step = x.strides[d];
            continue;
        }
        inner /= x.sizes[d];
        lines.push(x.sizes[d], {x.strides[d], inner});
    }
    std::atomic<bool> starved{false};
    parallel_for(lines.numel(), grain_rows(8 * n), [&](int64_t begin, int64_t end) {
        scratch<P> entries(2 * n);
        if (!entries) {
            starved = true;
            return;
        }
        cursor<2> at(lines, begin);
        for (int64_t line = begin; line < end; ++line, at.next()) {
            const T *from = input<T>(call) + at.offset[0];
            int64_t missing = 0;
            for (int64_t i = 0; i < n; ++i) {
                T v = from[i * step];
                if constexpr (is_same<T, uint8_t>) v = truth ? T(v != 0) : v;
                const K key = sort_key<T>::of(v);
                if constexpr (is_float<T>) missing += key == K(~K(0));
                entries.data[i] = P::make(key, i);
            }
            const int64_t place = chosen(entries.data, entries.data + n, n, missing).position();
            output<T>(call)[at.offset[1]] = from[place * step];
            output<int64_t>(call, 1)[at.offset[1]] = place;
        }
    });
    return starved ? no_memory(call, 2 * n * int64_t(sizeof(P))) : int(PT_OK);
}

template <class Chosen>
int one_along(pt_call *call, int dim_at, Chosen &&chosen) {
    const pt_view &x = call->in[0];
    const int ndim = x.ndim ? x.ndim : 1;
    const int64_t given = call->params[dim_at].i, dim = wrap_dim(given, ndim);
    if (dim < 0 || dim >= ndim)
        return fail(call, PT_INDEX_ERROR, "dim must be in [%d, %d], got %lld", -ndim, ndim - 1,
                    (long long)given);
    if (call->out[0].numel == 0) return PT_OK;
    const int64_t n = x.ndim ? x.sizes[dim] : 1;
    if (n == 0)
        return fail(call, PT_INDEX_ERROR, "dim %lld has size 0, but a value for it is needed",
                    (long long)dim);
    return visit<REALS>(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        if constexpr (sizeof(T) < 8)
            if (n <= int64_t(UINT32_MAX)) return one_of_each<T, short_entry>(call, dim, chosen);
        return one_of_each<T, long_entry>(call, dim, chosen);
    });
}

/* the k-th smallest, counted from 0 */
template <class P>
inline P kth(P *p, int64_t n, int64_t k) {
    if (n <= 16) insertion_sort(p, n);
    else std::nth_element(p, p + k, p + n);
    return p[k];
}

int kth_kernel(pt_call *call) {
    const pt_view &x = call->in[0];
    const int64_t k = call->params[0].i, dim = call->params[1].i;
    const int64_t n = x.ndim && dim < x.ndim ? x.sizes[dim < 0 ? dim + x.ndim : dim] : 1;
    if (k < 1 || k > n)
        return fail(call, PT_RUNTIME_ERROR, "k must be in [1, %lld], got %lld", (long long)n,
                    (long long)k);
    return one_along(call, 1,
                     [k](auto *p, auto *, int64_t m, int64_t) { return kth(p, m, k - 1); });
}

/* NaN are the greatest entries, in the order of their positions. */
int median_kernel(pt_call *call) {
    const bool skip = call->params[0].i != 0;
    return one_along(call, 1, [skip](auto *p, auto *, int64_t n, int64_t missing) {
        if (skip) return kth(p, n, missing < n ? (n - missing - 1) / 2 : 0);
        return kth(p, n, missing ? n - missing : (n - 1) / 2);
    });
}

/* NaN differ from each other, so that each NaN occurs only once. */
int mode_kernel(pt_call *call) {
    return one_along(call, 0, [](auto *p, auto *buffer, int64_t n, int64_t missing) {
        auto *sorted = sort_entries(p, buffer, n);
        auto best = sorted[0];
        int64_t longest = 0;
        for (int64_t i = 0, begin = 0; i < n - missing; ++i) {
            if (!same_key(sorted[i], sorted[begin])) begin = i;
            if (i - begin + 1 > longest) {
                longest = i - begin + 1;
                best = sorted[i];
            }
        }
        return best;
    });
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* A key in a type of this file's own, so that the library's templates for it are compiled for this
 * file and ISA level alone. */
template <class K>
struct own_key {
    K key;
    friend bool operator<(own_key a, own_key b) { return a.key < b.key; }
    friend bool operator==(own_key a, own_key b) { return a.key == b.key; }
};

/* NaN equals nothing: NaN are left out of the tests, and no number has their key. */
template <class T>
int among(pt_call *call, bool invert) {
    using K = typename sort_key<T>::type;
    const pt_view &x = call->in[0], &tests = call->in[1];
    constexpr K missing = K(~K(0));         /* the key of NaN */
    scratch<own_key<K>> keys(tests.numel);
    if (!keys) return no_memory(call, tests.numel * int64_t(sizeof(K)));
    int64_t n = 0;
    for (int64_t i = 0; i < tests.numel; ++i) {
        const K key = sort_key<T>::of(input<T>(call, 1)[i]);
        if (!is_float<T> || key != missing) keys[n++] = {key};
    }
    if (n > 8) std::sort(keys.data, keys.data + n);
    parallel_for(x.numel, grain_rows(n > 8 ? 32 : n + 1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const own_key<K> key{sort_key<T>::of(input<T>(call)[i])};
            const bool found = n > 8 ? std::binary_search(keys.data, keys.data + n, key)
                                     : std::find(keys.data, keys.data + n, key) != keys.data + n;
            output<uint8_t>(call)[i] = found != invert;
        }
    });
    return PT_OK;
}

int isin_kernel(pt_call *call) {
    return visit<INTEGERS | FLOATS>(call, call->in[0].dtype, [&](auto tag) {
        return among<PT_TYPE(tag)>(call, call->params[0].i != 0);
    });
}

int sort_kernel(pt_call *call) {
    return order_along(call, call->params[0], -1, call->params[1].i != 0);
}

int topk_kernel(pt_call *call) {
    const int64_t k = call->params[0].i;
    if (k < 0)
        return fail(call, PT_RUNTIME_ERROR, "k must not be negative, got %lld", (long long)k);
    return order_along(call, call->params[1], k, call->params[2].i != 0);
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_sort_, PT_ISA)[] = {
    {"sort", sort_kernel},
    {"topk", topk_kernel},
    {"kth", kth_kernel},
    {"median", median_kernel},
    {"mode", mode_kernel},
    {"isin", isin_kernel},
    {nullptr, nullptr},
};

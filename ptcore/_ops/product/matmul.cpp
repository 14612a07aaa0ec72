/* Matrix products: mm, bmm, addmm, linear, mv, dot.
 *
 * Small and skinny products run in the kernels of gemm.hpp, larger float and complex ones in the
 * BLAS that dispatch has loaded (else PT_NEED_BLAS is returned before anything is written). The
 * result is cut into tiles by shape alone; the pool shares the tiles, and each runs on one BLAS
 * thread. float16 and bfloat16 are multiplied in float32 and rounded once; integers wrap.
 */
#include "blas.hpp"
#include "gemm.hpp"
#include "lanes.hpp"

namespace {

/* ---- BLAS -------------------------------------------------------------------------------- */

template <class T> pt_gemm blas_gemm();
template <> pt_gemm blas_gemm<float>() { return pt_blas.sgemm; }
template <> pt_gemm blas_gemm<double>() { return pt_blas.dgemm; }
template <> pt_gemm blas_gemm<complex64>() { return pt_blas.cgemm; }
template <> pt_gemm blas_gemm<complex128>() { return pt_blas.zgemm; }

/* BLAS takes a matrix with a unit stride and a 32-bit leading dimension that is at least a row. */
template <class T>
inline bool fits_blas(const matrix<const T> &a, int64_t rows, int64_t columns) {
    auto fits = [](int64_t leading, int64_t length, int64_t count) {
        return count == 1 || (leading >= length && leading <= INT_MAX);
    };
    return (a.column == 1 && fits(a.row, columns, rows)) ||
           (a.row == 1 && fits(a.column, rows, columns));
}

/* One tile; sizes are below 2^30. Row-major C = A B is the column-major C^T = B^T A^T. */
template <class T>
inline void blas_tile(const product<T> &q, bool accumulate, const matrix<const T> &a,
                      const matrix<const T> &b, const matrix<T> &c, int64_t n, int64_t m,
                      int64_t k) {
    auto flag = [](const matrix<const T> &x, int64_t rows, int64_t columns, int &leading) {
        const bool plain = x.column == 1 && (rows == 1 || x.row >= columns);
        leading = int(plain ? (rows == 1 ? max64(1, columns) : x.row)
                            : (columns == 1 ? max64(1, rows) : x.column));
        return plain ? 'N' : 'T';
    };
    int lda, ldb, ldc = int(n == 1 ? max64(1, m) : c.row), in = int(n), im = int(m), ik = int(k);
    char ta = flag(a, n, k, lda), tb = flag(b, k, m, ldb);
    T alpha = q.alpha, beta = convert<T>(accumulate ? 1 : 0);
    blas_gemm<T>()(&tb, &ta, &im, &in, &ik, &alpha, const_cast<T *>(b.data), &ldb,
                   const_cast<T *>(a.data), &lda, &beta, c.data, &ldc);
}

/* ---- planning ---------------------------------------------------------------------------- */

struct operand {
    const char *data = nullptr;
    int64_t row = 0, column = 0, batch = 0;
};
/* out (batch, n, m) = alpha a (batch, n, k) b (batch, k, m) + beta c; c may be absent */
struct task {
    int64_t batch = 1, n = 1, m = 1, k = 1;
    operand a, b, c;
    const pt_param *alpha = nullptr, *beta = nullptr;
};

template <class T>
constexpr bool has_blas = is_same<T, float> || is_same<T, double> || is_complex<T>;

template <class T>
inline bool wants_blas(const task &t) {
    if constexpr (!has_blas<T>) return false;
    const double work = double(t.n) * double(t.m) * double(t.k);
    if constexpr (is_complex<T>) return work > 8192;
    else if (t.n <= 32 && (t.b.row == 1 || t.b.column == 1)) return false;
    else return work > 64.0 * 64 * 64;
}

/* a contiguous copy of a (batch,) rows x columns operand, converted to T */
template <class T, class S>
inline void pack(T *to, const operand &x, int64_t batch, int64_t rows, int64_t columns) {
    const S *from = reinterpret_cast<const S *>(x.data);
    const bool whole =
        x.column == 1 && x.row == columns && (batch == 1 || x.batch == rows * columns);
    parallel_for(batch * rows, grain_rows(columns), [&](int64_t begin, int64_t end) {
        if (whole)
            return load(to + begin * columns, from + begin * columns, 1, (end - begin) * columns);
        for (int64_t r = begin; r < end; ++r)
            load(to + r * columns, from + r / rows * x.batch + r % rows * x.row,
                 columns == 1 ? 1 : x.column, columns);
    });
}
/* replaces an operand by its packed copy; a broadcast batch is packed once. An operand with
 * contiguous columns keeps them: each run of memory is read from end to end. */
template <class T, class S>
inline bool repack(scratch<T> &space, operand &x, int64_t batch, int64_t rows, int64_t columns) {
    if (!space) return false;
    const int64_t copies = x.batch ? batch : 1, each = x.batch ? rows * columns : 0;
    const char *data = reinterpret_cast<const char *>(space.data);
    if (x.row == 1 && x.column != 1 && rows > 1) {
        pack<T, S>(space.data, {x.data, x.column, x.row, x.batch}, copies, columns, rows);
        x = {data, 1, rows, each};
    } else {
        pack<T, S>(space.data, x, copies, rows, columns);
        x = {data, columns, 1, each};
    }
    return true;
}

/* the first `block` of `all` bytes, again and again */
PT_NOINLINE void repeat(char *to, int64_t block, int64_t all) {
    if (block == all) return;
    parallel_for(ceil_div(all, block) - 1, grain_rows(block / 4), [&](int64_t begin, int64_t end) {
        for (int64_t u = begin + 1; u <= end; ++u)
            memcpy(to + u * block, to, size_t(min64(block, all - u * block)));
    });
}

/* out = beta c, broadcast; false if there is no c to add */
template <class T, class S>
inline bool start_from_c(const task &t, T *out) {
    const T beta = t.beta ? scalar<T>(*t.beta) : convert<T>(1);
    if (!t.c.data || (t.beta && t.beta->d == 0 && t.beta->im == 0)) return false;
    const int64_t rows = t.batch * t.n, block = !t.c.row && !t.c.batch ? min64(rows, 64) : rows;
    pack<T, S>(out, t.c, block < rows ? 1 : t.batch, block < rows ? block : t.n, t.m);
    repeat(reinterpret_cast<char *>(out), block * t.m * int64_t(sizeof(T)),
           rows * t.m * int64_t(sizeof(T)));
    if (t.beta && !(t.beta->d == 1 && t.beta->im == 0)) {
        const int64_t count = t.batch * t.n * t.m;
        for (int64_t i = 0; i < count; ++i) out[i] = times(beta, out[i]);
    }
    return true;
}

template <class T>
inline product<T> item(const task &t, T *out, int64_t i, T alpha, bool accumulate) {
    const T *a = reinterpret_cast<const T *>(t.a.data) + i * t.a.batch,
            *b = reinterpret_cast<const T *>(t.b.data) + i * t.b.batch;
    return {t.n,
            t.m,
            t.k,
            {a, t.a.row, t.a.column},
            {b, t.b.row, t.b.column},
            {out + i * t.n * t.m, t.m, 1},
            alpha,
            accumulate};
}

template <class T>
inline void run_own(const task &t, T *out, T alpha, bool accumulate) {
    const bool wide = t.m >= t.n;
    const int64_t per_line = max64(1, (wide ? t.n : t.m) * t.k), lines = wide ? t.m : t.n;
    if (t.batch == 1 && lines <= 192) {         /* a single block, whatever the numbers below say */
        product<T> q = item(t, out, 0, alpha, accumulate);
        return own_gemm(q);
    }
    const int64_t block = max64(1, ceil_div(524288 / per_line, 192)) * 192,
                  blocks = ceil_div(lines, block);
    parallel_for(t.batch * blocks, max64(1, 524288 / (per_line * min64(lines, block))),
                 [&](int64_t begin, int64_t end) {
                     for (int64_t u = begin; u < end; ++u) {
                         const int64_t first = u % blocks * block,
                                       count = min64(block, lines - first);
                         product<T> q = item(t, out, u / blocks, alpha, accumulate);
                         (wide ? q.m : q.n) = count;
                         q.a = wide ? q.a : q.a.block(first, 0);
                         q.b = wide ? q.b.block(0, first) : q.b;
                         q.c = wide ? q.c.block(0, first) : q.c.block(first, 0);
                         own_gemm(q);
                     }
                 });
}

template <class T>
inline int run_blas(pt_call *call, task t, T *out, T alpha, bool accumulate) {
    constexpr int64_t LIMIT = int64_t(1) << 30;
    const bool pack_a = !fits_blas<T>({nullptr, t.a.row, t.a.column}, t.n, t.k);
    /* A BLAS takes twice the time for many rows times a small transposed B, as of a linear layer */
    const bool turned = t.b.row == 1 && t.m > 1 && t.n >= 512 && t.k * t.m <= 4096;
    const bool pack_b = turned || !fits_blas<T>({nullptr, t.b.row, t.b.column}, t.k, t.m);
    scratch<T> a(pack_a ? (t.a.batch ? t.batch : 1) * t.n * t.k : 0),
        b(pack_b ? (t.b.batch ? t.batch : 1) * t.k * t.m : 0);
    if (turned && b) {
        const int64_t each = t.k * t.m;
        pack<T, T>(b.data, t.b, t.b.batch ? t.batch : 1, t.k, t.m);
        t.b = {reinterpret_cast<const char *>(b.data), t.m, 1, t.b.batch ? each : 0};
    }
    if ((pack_a && !repack<T, T>(a, t.a, t.batch, t.n, t.k)) ||
        (pack_b && !turned && !repack<T, T>(b, t.b, t.batch, t.k, t.m)) || (turned && !b))
        return no_memory(call, int64_t(sizeof(T)) * t.batch * (t.n * t.k + t.k * t.m));
    const int64_t tile_n = t.n > 384 ? 256 : t.n, tile_m = t.m > 1536 ? 1024 : t.m;
    const int64_t down = ceil_div(t.n, tile_n), across = ceil_div(t.m, tile_m);
    one_blas_thread guard;
    auto body = [&](int64_t begin, int64_t end) {
        for (int64_t u = begin; u < end; ++u) {
            const int64_t i = u % down * tile_n, j = u / down % across * tile_m;
            const product<T> q = item(t, out, u / down / across, alpha, accumulate);
            for (int64_t p = 0; p < t.k; p += LIMIT)
                blas_tile(q, accumulate || p > 0, q.a.block(i, p), q.b.block(p, j), q.c.block(i, j),
                          min64(tile_n, t.n - i), min64(tile_m, t.m - j), min64(LIMIT, t.k - p));
        }
    };
    const int64_t tiles = t.batch * down * across;
    if (pt_blas.set_threads)
        parallel_for(tiles, max64(1, (1 << 20) / max64(1, tile_n * tile_m * t.k)),
                     [&](int64_t begin, int64_t end) { body(begin, end); });
    else body(0, tiles);
    return PT_OK;
}

/* T: the type of the computation; S: the type stored. */
template <class T, class S>
inline int multiply_as(pt_call *call, task t) {
    if (t.batch * t.n * t.m == 0) return PT_OK;
    if (t.m == 1 && t.n > 1) { /* a column: computed as a row of the transposed product */
        auto flip = [](operand x) { return operand{x.data, x.column, x.row, x.batch}; };
        const operand a = t.a;
        t.a = flip(t.b);
        t.b = flip(a);
        t.c = flip(t.c);
        t.m = t.n;
        t.n = 1;
    }
    if (t.n == 1)
        t.a.row = t.k * t.a.column; /* strides of single rows and columns have no meaning */
    if (t.k == 1) {
        t.a.column = 1;
        t.b.row = t.m * t.b.column;
    }
    const bool blas = wants_blas<T>(t);
    if constexpr (has_blas<T>)
        if (blas && !blas_gemm<T>()) return PT_NEED_BLAS;
    if (t.beta && !has_scalar<T>(*t.beta)) return no_scalar(call, "beta", *t.beta);
    if (t.alpha && !has_scalar<T>(*t.alpha)) return no_scalar(call, "alpha", *t.alpha);
    const T alpha = t.alpha ? scalar<T>(*t.alpha) : convert<T>(1);
    S *stored = output<S>(call);
    const int64_t count = t.batch * t.n * t.m;
    constexpr bool narrow = !is_same<T, S>;
    scratch<T> a(narrow ? (t.a.batch ? t.batch : 1) * t.n * t.k : 0),
        b(narrow ? (t.b.batch ? t.batch : 1) * t.k * t.m : 0);
    scratch<T> wide(narrow ? count : 0);
    T *out;
    if constexpr (narrow) {
        if (!wide || !repack<T, S>(a, t.a, t.batch, t.n, t.k) ||
            !repack<T, S>(b, t.b, t.batch, t.k, t.m))
            return no_memory(call,
                             int64_t(sizeof(T)) * (count + t.batch * (t.n * t.k + t.k * t.m)));
        out = wide.data;
    }
    else
        out = stored;
    const bool accumulate = start_from_c<T, S>(t, out);
    int status = PT_OK;
    if (t.k == 0 || alpha == convert<T>(0)) {   /* does not read a and b, like the BLAS */
        for (int64_t i = 0; !accumulate && i < count; ++i) out[i] = T{};
    }
    else if constexpr (has_blas<T>) {
        if (blas) status = run_blas(call, t, out, alpha, accumulate);
        else run_own(t, out, alpha, accumulate);
    }
    else
        run_own(t, out, alpha, accumulate);
    if (status) return status;
    if constexpr (narrow)
        parallel_for(count, GRAIN, [&](int64_t begin, int64_t end) {
            store(stored + begin, out + begin, end - begin);
        });
    return PT_OK;
}

inline int multiply(pt_call *call, const task &t) {
    const int dtype = call->out[0].dtype;
    for (int i = 0; i < call->nin; ++i)
        if (call->in[i].dtype != dtype && call->in[i].dtype != PT_NONE)
            return fail(call, PT_RUNTIME_ERROR, "expected operands of one dtype, got %s and %s",
                        DTYPE_NAME[dtype],
                        call->in[i].dtype < PT_NDTYPES ? DTYPE_NAME[call->in[i].dtype] : "?");
    return visit<INTEGERS | FLOATS | COMPLEXES>(call, dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        /* integers wrap: the unsigned type of the same size serves both signs */
        if constexpr (std::is_integral<T>::value)
            return multiply_as<std::make_unsigned_t<T>, std::make_unsigned_t<T>>(call, t);
        else return multiply_as<compute<T>, T>(call, t);
    });
}

/* ---- the kernels ------------------------------------------------------------------------- */

/* the last two dims of a view, and the batch in front of them if there are three */
inline operand operand_of(const pt_view &v) {
    const int d = v.ndim;
    return {v.data, d > 1 ? v.strides[d - 2] : 0, d > 0 ? v.strides[d - 1] : 0,
            d > 2 ? v.strides[0] : 0};
}
/* c seen as (n, m): dims of size 1 and missing dims are broadcast */
inline operand broadcast_operand(const pt_view &v, int64_t n, int64_t m) {
    operand x;
    if (v.dtype == PT_NONE) return x;
    x.data = v.data;
    if (v.ndim > 0 && v.sizes[v.ndim - 1] == m) x.column = v.strides[v.ndim - 1];
    if (v.ndim > 1 && v.sizes[v.ndim - 2] == n) x.row = v.strides[v.ndim - 2];
    if (m == 1) x.column = 0;
    if (n == 1) x.row = 0;
    return x;
}
inline int expect(pt_call *call, int input, int ndim) {
    if (call->in[input].ndim == ndim) return PT_OK;
    return fail(call, PT_RUNTIME_ERROR, "expected input %d with %d dimensions, got %d", input, ndim,
                call->in[input].ndim);
}

/* checks a (n, k) b (k, m), the inputs ia and ib */
inline int matrix_task(pt_call *call, int ia, int ib, int ndim, task &t) {
    if (int status = expect(call, ia, ndim)) return status;
    if (int status = expect(call, ib, ndim)) return status;
    const pt_view &a = call->in[ia], &b = call->in[ib];
    t.a = operand_of(a);
    t.b = operand_of(b);
    t.batch = ndim == 3 ? a.sizes[0] : 1;
    t.n = a.sizes[ndim - 2];
    t.k = a.sizes[ndim - 1];
    t.m = b.sizes[ndim - 1];
    if (b.sizes[ndim - 2] != t.k || (ndim == 3 && b.sizes[0] != t.batch))
        return fail(call, PT_RUNTIME_ERROR, "shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                    (long long)t.n, (long long)t.k, (long long)b.sizes[ndim - 2], (long long)t.m);
    return PT_OK;
}
int mm_kernel(pt_call *call) {
    task t;
    if (int status = matrix_task(call, 0, 1, 2, t)) return status;
    return multiply(call, t);
}
int bmm_kernel(pt_call *call) {
    task t;
    if (int status = matrix_task(call, 0, 1, 3, t)) return status;
    return multiply(call, t);
}
int addmm_kernel(pt_call *call) {
    task t;
    if (int status = matrix_task(call, 1, 2, 2, t)) return status;
    t.c = broadcast_operand(call->in[0], t.n, t.m);
    t.beta = &call->params[0];
    t.alpha = &call->params[1];
    return multiply(call, t);
}
int mv_kernel(pt_call *call) {
    if (int status = expect(call, 0, 2)) return status;
    if (int status = expect(call, 1, 1)) return status;
    const pt_view &a = call->in[0], &b = call->in[1];
    task t;
    t.a = operand_of(a);
    t.b = {b.data, b.strides[0], 0, 0};
    t.n = a.sizes[0];
    t.k = a.sizes[1];
    if (b.sizes[0] != t.k)
        return fail(call, PT_RUNTIME_ERROR, "size mismatch, got %lldx%lld and %lld", (long long)t.n,
                    (long long)t.k, (long long)b.sizes[0]);
    return multiply(call, t);
}

template <class T>
inline void copy_rows(T *to, const pt_view &x, const space<1> &outer, int64_t rows, int64_t columns,
                      int64_t stride) {
    parallel_for(rows, grain_rows(columns), [&](int64_t begin, int64_t end) {
        cursor<1> at(outer, begin);
        for (int64_t r = begin; r < end; ++r, at.next())
            load(to + r * columns, reinterpret_cast<const T *>(x.data) + at.offset[0], stride,
                 columns);
    });
}
int linear_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &w = call->in[1], &bias = call->in[2];
    const bool vector = w.ndim == 1;    /* one output feature; the result has no dim for it */
    if (!vector)
        if (int status = expect(call, 1, 2)) return status;
    const int64_t k = w.sizes[w.ndim - 1], m = vector ? 1 : w.sizes[0];
    if (x.ndim == 0 || x.sizes[x.ndim - 1] != k)
        return fail(call, PT_RUNTIME_ERROR, "expected input with last dimension %lld, got %lld",
                    (long long)k, (long long)(x.ndim ? x.sizes[x.ndim - 1] : 0));
    if (bias.dtype != PT_NONE && (bias.ndim != w.ndim - 1 || bias.numel != m))
        return fail(call, PT_RUNTIME_ERROR, "expected bias with %lld elements", (long long)m);
    task t;
    space<1> outer;
    for (int d = 0; d < x.ndim - 1; ++d) outer.push(x.sizes[d], {x.strides[d]});
    t.n = outer.numel();
    t.k = k;
    t.m = m;
    t.a = {x.data, outer.ndim ? outer.stride[0][0] : 0, x.strides[x.ndim - 1], 0};
    t.b = {w.data, w.strides[w.ndim - 1], vector ? 0 : w.strides[0], 0};
    t.c = broadcast_operand(bias, t.n, t.m);
    if (outer.ndim <= 1) return multiply(call, t);
    /* leading dims that one stride cannot describe */
    if (x.dtype >= PT_NDTYPES) return bad_dtype(call, x.dtype);
    scratch<char> packed(x.numel * ITEMSIZE[x.dtype]);
    if (!packed) return no_memory(call, x.numel * ITEMSIZE[x.dtype]);
    int status = visit_size(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        copy_rows(reinterpret_cast<T *>(packed.data), x, outer, t.n, t.k, t.a.column);
        return int(PT_OK);
    });
    if (status) return status;
    t.a = {packed.data, t.k, 1, 0};
    return multiply(call, t);
}

/* dot: chunks of 32768 elements, folded in lanes; floats are added in float64 beyond a tile */
int dot_kernel(pt_call *call) {
    if (int status = expect(call, 0, 1)) return status;
    if (int status = expect(call, 1, 1)) return status;
    const pt_view &x = call->in[0], &y = call->in[1];
    const int64_t n = x.sizes[0], chunks = ceil_div(n, GRAIN);
    if (y.sizes[0] != n || x.dtype != y.dtype)
        return fail(call, PT_RUNTIME_ERROR,
                    "expected two vectors of one size and dtype, got sizes %lld and %lld",
                    (long long)n, (long long)y.sizes[0]);
    return visit<INTEGERS | FLOATS | COMPLEXES>(call, x.dtype, [&](auto tag) {
        using T = PT_TYPE(tag);
        using E = std::conditional_t<std::is_integral<T>::value, uint64_t, compute<T>>;
        using W =
            std::conditional_t<is_complex<T>, complex128,
                               std::conditional_t<std::is_integral<T>::value, uint64_t, double>>;
        scratch<W> partial(chunks);
        if (!partial) return no_memory(call, chunks * int64_t(sizeof(W)));
        parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
            constexpr int64_t STEP = 1024;
            E a[STEP], b[STEP];
            for (int64_t c = begin; c < end; ++c) {
                W sum{};
                for (int64_t i = c * GRAIN; i < min64(n, (c + 1) * GRAIN); i += STEP) {
                    const int64_t count = min64(STEP, n - i);
                    load(a, input<T>(call, 0) + i * x.strides[0], x.strides[0], count);
                    load(b, input<T>(call, 1) + i * y.strides[0], y.strides[0], count);
                    for (int64_t j = 0; j < count; ++j) a[j] = a[j] * b[j];
                    if constexpr (is_complex<T>)
                        for (int64_t j = 0; j < count; ++j) sum = sum + convert<W>(a[j]);
                    else if constexpr (std::is_integral<T>::value)
                        sum += W(fold<add_fold>(a, count, E(0)));
                    else sum += sum_of(a, count);
                }
                partial[c] = sum;
            }
        });
        W sum{};
        for (int64_t c = 0; c < chunks; ++c) sum = sum + partial[c];
        *output<T>(call) = convert<T>(sum);
        return int(PT_OK);
    });
}

} // namespace

extern "C" void (*PT_CAT(pt_outer_tile_, PT_ISA)(int wide, int rows, int vectors))(void) {
    constexpr auto all = std::make_integer_sequence<int, OUTER_VECTORS>{};
    return wide ? reinterpret_cast<void (*)(void)>(outer_of<double>(rows, vectors, all))
                : reinterpret_cast<void (*)(void)>(outer_of<float>(rows, vectors, all));
}

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_matmul_, PT_ISA)[] = {
    {"mm", mm_kernel},   {"bmm", bmm_kernel}, {"addmm", addmm_kernel}, {"linear", linear_kernel},
    {"mv", mv_kernel},   {"dot", dot_kernel}, {nullptr, nullptr},
};

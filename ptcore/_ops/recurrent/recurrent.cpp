/* One layer of a recurrent network in one direction, over all steps, and its derivative.
 *
 *    recurrent_layer(gates, hx, cx?, weight, bias?, projection?; batch_sizes, mode, reverse)
 *        -> out, cells, kept
 *    recurrent_layer_backward(g, g_cells?, out, cells, kept, hx, cx?, weight, projection?; ...)
 *        -> gates, hidden, previous, hx, cx, projected
 *
 * `gates` holds the products of the inputs of all steps, one step below the other. Step t has
 * batch_sizes[t] rows, never more than the step before. The product of a state and the weight
 * is added here, with a copy of the weight that is packed once for all steps. Rows are
 * independent: they are cut into blocks by shape, and each block goes through all steps by
 * itself. Half types are computed in float.
 *
 * kept: the activated gates that the derivative reads (lstm i f g o; gru r z n and the
 * state's part of n). `previous` is the state from which each row started, so that the
 * weight's gradient is one product. `hidden` is the gradient of the state's product, where it
 * differs from that of `gates` (gru).
 *
 * The state of an lstm may be projected from the width n of the cells to a smaller width:
 * `projection` is (width, n), and `projected` is the gradient of the projected states.
 */
#include "common.hpp"
#include "gemm.hpp"

#include <atomic>

namespace {

enum : int { MODE_TANH = 0, MODE_RELU, MODE_LSTM, MODE_GRU };

inline int64_t gates_of(int mode) { return mode == MODE_LSTM ? 4 : mode == MODE_GRU ? 3 : 1; }
inline int64_t kept_of(int mode) { return mode == MODE_LSTM || mode == MODE_GRU ? 4 : 0; }

/* A matrix (k, m) in panels of one width; the last panel is padded with zeros. */
template <class E>
struct panels {
    static constexpr int64_t WIDTH = OUTER_VECTORS * simd<E>::width;
    int64_t k, m, count;
    scratch<E> space;
    panels(int64_t k_, int64_t m_)
        : k(k_), m(m_), count(ceil_div(m_, WIDTH)),
          space(max64(1, k_ * ceil_div(m_, WIDTH) * WIDTH)) {}
    int64_t columns() const { return count * WIDTH; }
    static outer_kernel<E> tile(int64_t rows) {
        return rows == OUTER_ROWS ? outer_tile<E, OUTER_ROWS, OUTER_VECTORS>
               : rows == 4        ? outer_tile<E, 4, OUTER_VECTORS>
               : rows == 2        ? outer_tile<E, 2, OUTER_VECTORS>
                                  : outer_tile<E, 1, OUTER_VECTORS>;
    }
};
template <class E>
PT_NOINLINE void fill(const panels<E> &to, const matrix<const E> &b) {
    constexpr int64_t WIDTH = panels<E>::WIDTH;
    for (int64_t p = 0; p < to.count; ++p)
        pack_panel(to.space.data + p * to.k * WIDTH, b.block(0, p * WIDTH), to.k,
                   min64(WIDTH, to.m - p * WIDTH), WIDTH);
}
/* c (n, columns) = or += a (n, k) times the matrix */
template <class E>
PT_NOINLINE void multiply(const panels<E> &right, const E *a, int64_t lda, E *c, int64_t n,
                          bool accumulate) {
    constexpr int64_t WIDTH = panels<E>::WIDTH;
    const int64_t k = right.k, ldc = right.columns();
    for (int64_t p0 = 0; p0 < k || p0 == 0; p0 += GEMM_DEPTH) {
        const int64_t depth = min64(GEMM_DEPTH, k - p0);
        for (int64_t p = 0; p < right.count; ++p)
            for (int64_t i = 0, rows; i < n; i += rows) {
                rows = n - i >= OUTER_ROWS ? OUTER_ROWS : n - i >= 4 ? 4 : n - i >= 2 ? 2 : 1;
                panels<E>::tile(rows)(depth, a + i * lda + p0, lda, 1,
                                      right.space.data + p * k * WIDTH + p0 * WIDTH, WIDTH,
                                      c + i * ldc + p * WIDTH, ldc, E(1), accumulate || p0 > 0);
            }
    }
}

PT_NOINLINE void load_half(float *to, const pt_view &v) {
    if (v.dtype == PT_FLOAT16) load(to, reinterpret_cast<const half *>(v.data), 1, v.numel);
    else load(to, reinterpret_cast<const bfloat16 *>(v.data), 1, v.numel);
}
/* The elements of a contiguous input as E: in place, or converted. */
template <class E>
struct operand_as {
    scratch<E> copy;
    const E *data;
    static bool direct(const pt_view &v) {
        return v.dtype == (is_same<E, float> ? PT_FLOAT32 : PT_FLOAT64);
    }
    explicit operand_as(const pt_view &v)
        : copy(present(v) && !direct(v) ? max64(1, v.numel) : 0), data(nullptr) {
        if (!present(v)) return;
        data = direct(v) ? reinterpret_cast<const E *>(v.data) : copy.data;
        if constexpr (is_same<E, float>)
            if (!direct(v) && copy) load_half(copy.data, v);
    }
    explicit operator bool() const { return bool(copy); }
};

PT_NOINLINE void store_half(const pt_view &v, const float *from) {
    if (v.dtype == PT_FLOAT16) store(reinterpret_cast<half *>(v.data), from, v.numel);
    else store(reinterpret_cast<bfloat16 *>(v.data), from, v.numel);
}
/* An output that is computed as E: in place if it has the dtype of E. */
template <class E>
struct result_as {
    const pt_view *view;
    scratch<E> space;
    E *data;
    static bool direct(const pt_view &v) {
        return v.dtype == (is_same<E, float> ? PT_FLOAT32 : PT_FLOAT64);
    }
    explicit result_as(const pt_view &v)
        : view(&v), space(present(v) && !direct(v) ? max64(1, v.numel) : 0), data(nullptr) {
        if (present(v)) data = direct(v) ? reinterpret_cast<E *>(v.data) : space.data;
    }
    explicit operator bool() const { return bool(space); }
    void finish() const {
        if constexpr (is_same<E, double>) return;
        else if (present(*view) && !direct(*view)) store_half(*view, space.data);
    }
};

struct walk {
    const int64_t *sizes;       /* rows of each step */
    int64_t steps, batch, total;
    bool reverse;
    const int64_t *start;       /* the first row of each step */
    /* the row of the step before step t that continues in row r, or -1: the initial state */
    int64_t before(int64_t t, int64_t r) const {
        if (!reverse) return t == 0 ? -1 : start[t - 1] + r;
        return t + 1 < steps && r < sizes[t + 1] ? start[t + 1] + r : -1;
    }
    int64_t grain(int64_t work) const {
        return work * batch < (1 << 16) ? max64(1, batch) : batch >= 64 ? 32 : 16;
    }
};

inline bool given(const pt_view &v) { return v.dtype != PT_NONE; }
inline bool fits(const pt_view &v, int64_t rows, int64_t columns) {
    return given(v) && v.ndim == 2 && v.sizes[0] == rows && v.sizes[1] == columns;
}
inline bool fits_if_given(const pt_view &v, int64_t rows, int64_t columns) {
    return !given(v) || fits(v, rows, columns);
}

inline int check(pt_call *call, const pt_param &sizes, int64_t batch, int64_t total,
                 scratch<int64_t> &start) {
    int64_t sum = 0;
    for (int t = 0; t < sizes.count; ++t) {
        const int64_t n = sizes.list[t];
        if (n < 0 || n > (t ? sizes.list[t - 1] : batch))
            return fail(call, PT_RUNTIME_ERROR,
                        "batch_sizes must not rise and be at most %lld, got %lld at step %d",
                        (long long)batch, (long long)n, t);
        start[t] = sum;
        sum += n;
    }
    if (sum != total)
        return fail(call, PT_RUNTIME_ERROR, "expected %lld rows, got %lld", (long long)sum,
                    (long long)total);
    return PT_OK;
}

PT_NOINLINE int misfit(pt_call *call) {
    return fail(call, PT_RUNTIME_ERROR, "states, gates and weights do not fit together");
}

/* ---- one row of one step ------------------------------------------------------------------- */

template <class E>
PT_NOINLINE void lstm_row(const E *PT_RESTRICT x, const E *PT_RESTRICT p, int64_t n,
                          E *PT_RESTRICT kept, E *PT_RESTRICT c, E *PT_RESTRICT h) {
    PT_IVDEP
    for (int64_t j = 0; j < n; ++j) {
        const E i = pt::sigmoid(x[j] + p[j]), f = pt::sigmoid(x[n + j] + p[n + j]);
        const E g = pt::tanh(x[2 * n + j] + p[2 * n + j]),
                o = pt::sigmoid(x[3 * n + j] + p[3 * n + j]);
        kept[j] = i;
        kept[n + j] = f;
        kept[2 * n + j] = g;
        kept[3 * n + j] = o;
        const E cell = f * c[j] + i * g;
        c[j] = cell;
        h[j] = o * pt::tanh(cell);
    }
}
template <class E>
PT_NOINLINE void gru_row(const E *PT_RESTRICT x, const E *PT_RESTRICT p, int64_t n,
                         E *PT_RESTRICT kept, E *PT_RESTRICT h) {
    PT_IVDEP
    for (int64_t j = 0; j < n; ++j) {
        const E r = pt::sigmoid(x[j] + p[j]), z = pt::sigmoid(x[n + j] + p[n + j]),
                s = p[2 * n + j];
        const E q = pt::tanh(x[2 * n + j] + r * s);
        kept[j] = r;
        kept[n + j] = z;
        kept[2 * n + j] = q;
        kept[3 * n + j] = s;
        h[j] = q + z * (h[j] - q);
    }
}
template <class E>
PT_NOINLINE void plain_row(const E *PT_RESTRICT x, const E *PT_RESTRICT p, int64_t n, bool relu,
                           E *PT_RESTRICT h) {
    if (relu)
        for (int64_t j = 0; j < n; ++j) {
            const E v = x[j] + p[j];
            h[j] = v != v ? v : v > 0 ? v : E(0);
        }
    else
        for (int64_t j = 0; j < n; ++j) h[j] = pt::tanh(x[j] + p[j]);
}

/* d: the state's gradient; dc: the cell's gradient, from after the step to before it */
template <class E>
PT_NOINLINE void lstm_back(const E *PT_RESTRICT kept, const E *PT_RESTRICT cell,
                           const E *PT_RESTRICT before, const E *PT_RESTRICT d, int64_t n,
                           E *PT_RESTRICT dc, E *PT_RESTRICT out) {
    PT_IVDEP
    for (int64_t j = 0; j < n; ++j) {
        const E i = kept[j], f = kept[n + j], g = kept[2 * n + j], o = kept[3 * n + j],
                t = pt::tanh(cell[j]);
        const E c = dc[j] + d[j] * o * (1 - t * t);
        out[j] = c * g * i * (1 - i);
        out[n + j] = c * before[j] * f * (1 - f);
        out[2 * n + j] = c * i * (1 - g * g);
        out[3 * n + j] = d[j] * t * o * (1 - o);
        dc[j] = c * f;
    }
}
/* d becomes the part of the gradient that goes straight to the previous state */
template <class E>
PT_NOINLINE void gru_back(const E *PT_RESTRICT kept, const E *PT_RESTRICT before, int64_t n,
                          E *PT_RESTRICT d, E *PT_RESTRICT out, E *PT_RESTRICT hidden) {
    PT_IVDEP
    for (int64_t j = 0; j < n; ++j) {
        const E r = kept[j], z = kept[n + j], q = kept[2 * n + j], s = kept[3 * n + j];
        const E dq = d[j] * (1 - z) * (1 - q * q), dr = dq * s * r * (1 - r),
                dz = d[j] * (before[j] - q) * z * (1 - z);
        out[j] = hidden[j] = dr;
        out[n + j] = hidden[n + j] = dz;
        out[2 * n + j] = dq;
        hidden[2 * n + j] = dq * r;
        d[j] = d[j] * z;
    }
}
template <class E>
PT_NOINLINE void plain_back(const E *PT_RESTRICT h, const E *PT_RESTRICT d, int64_t n, bool relu,
                            E *PT_RESTRICT out) {
    if (relu)                                   /* as from relu itself, NaN passes the gradient */
        for (int64_t j = 0; j < n; ++j) out[j] = h[j] <= 0 ? E(0) : d[j];
    else
        for (int64_t j = 0; j < n; ++j) out[j] = d[j] * (1 - h[j] * h[j]);
}

/* ---- forward ------------------------------------------------------------------------------- */

template <class E>
int forward(pt_call *call) {
    const pt_view &x = call->in[0], &hx = call->in[1], &cx = call->in[2], &w = call->in[3],
                  &b = call->in[4], &project = call->in[5];
    const pt_param &sizes = call->params[0];
    const int mode = int(call->params[1].i);
    const bool projects = given(project), lstm = mode == MODE_LSTM;
    if (hx.ndim != 2 || (projects && (project.ndim != 2 || !lstm))) return misfit(call);
    const int64_t width = hx.sizes[1], n = projects ? project.sizes[1] : width, batch = hx.sizes[0],
                  m = gates_of(mode) * n, kept_width = kept_of(mode) * n;
    if (x.ndim != 2 || x.sizes[1] != m || !fits(w, m, width) || (given(b) && b.numel != m) ||
        given(cx) != lstm || !fits_if_given(cx, batch, n) || !fits_if_given(project, width, n))
        return misfit(call);
    scratch<int64_t> start(sizes.count);
    if (!start) return no_memory(call, 8 * int64_t(sizes.count));
    if (int status = check(call, sizes, batch, x.sizes[0], start)) return status;
    const walk steps{sizes.list, sizes.count, batch, x.sizes[0], call->params[2].i != 0,
                     start.data};
    if (x.sizes[0] == 0) return PT_OK;
    operand_as<E> gates(x), h0(hx), c0(cx), weight(w), bias(b), projection(project);
    result_as<E> out(call->out[0]), cells(call->out[1]), kept(call->out[2]);
    panels<E> right(width, m), down(projects ? n : 0, projects ? width : 0);
    if (!gates || !h0 || !c0 || !weight || !bias || !projection || !out || !cells || !kept ||
        !right.space || !down.space)
        return no_memory(call, x.numel * int64_t(sizeof(E)));
    fill(right, matrix<const E>{weight.data, 1, width});
    if (projects) fill(down, matrix<const E>{projection.data, 1, n});
    std::atomic<bool> starved{false};
    const int64_t columns = right.columns(), narrow = down.columns();
    parallel_for(batch, steps.grain(n * m), [&](int64_t begin, int64_t end) {
        const int64_t rows = end - begin;
        scratch<E> h(rows * width), c(lstm ? rows * n : 0), product(rows * columns),
            wide(projects ? rows * n : 0), low(rows * narrow);
        if (!h || !c || !product || !wide || !low) {
            starved = true;
            return;
        }
        memcpy(h.data, h0.data + begin * width, size_t(rows * width) * sizeof(E));
        if (lstm) memcpy(c.data, c0.data + begin * n, size_t(rows * n) * sizeof(E));
        for (int64_t s = 0; s < steps.steps; ++s) {
            const int64_t t = steps.reverse ? steps.steps - 1 - s : s,
                          active = min64(steps.sizes[t], end) - begin;
            if (active <= 0) continue;
            if (bias.data)
                for (int64_t r = 0; r < active; ++r) {
                    memcpy(product.data + r * columns, bias.data, size_t(m) * sizeof(E));
                    for (int64_t j = m; j < columns; ++j) product[r * columns + j] = E(0);
                }
            multiply(right, h.data, width, product.data, active, bias.data != nullptr);
            for (int64_t r = 0; r < active; ++r) {
                const int64_t row = steps.start[t] + begin + r;
                const E *from = gates.data + row * m, *p = product.data + r * columns;
                E *state = projects ? wide.data + r * n : h.data + r * n;
                if (lstm) {
                    lstm_row(from, p, n, kept.data + row * kept_width, c.data + r * n, state);
                    memcpy(cells.data + row * n, c.data + r * n, size_t(n) * sizeof(E));
                }
                else if (mode == MODE_GRU) gru_row(from, p, n, kept.data + row * kept_width, state);
                else plain_row(from, p, n, mode == MODE_RELU, state);
                if (!projects) memcpy(out.data + row * n, state, size_t(n) * sizeof(E));
            }
            if (!projects) continue;
            multiply(down, wide.data, n, low.data, active, false);
            for (int64_t r = 0; r < active; ++r)
                for (E *to : {h.data + r * width, out.data + (steps.start[t] + begin + r) * width})
                    memcpy(to, low.data + r * narrow, size_t(width) * sizeof(E));
        }
    });
    if (starved) return no_memory(call, batch * (columns + narrow + 3 * n) * int64_t(sizeof(E)));
    out.finish();
    cells.finish();
    kept.finish();
    return PT_OK;
}

/* ---- backward ------------------------------------------------------------------------------ */

/* One function: a step backwards in time reads and writes all fifteen operands of the call. */
template <class E>
int backward(pt_call *call) {
    const pt_param &sizes = call->params[0];
    const int mode = int(call->params[1].i);
    const pt_view &hx = call->in[5], &project = call->in[8];
    const bool projects = given(project), lstm = mode == MODE_LSTM, gru = mode == MODE_GRU;
    if (hx.ndim != 2 || call->in[0].ndim != 2 || (projects && (project.ndim != 2 || !lstm)))
        return misfit(call);
    const int64_t width = hx.sizes[1], n = projects ? project.sizes[1] : width, batch = hx.sizes[0],
                  total = call->in[0].sizes[0];
    const int64_t m = gates_of(mode) * n, kept_width = kept_of(mode) * n;
    if (!fits(call->in[0], total, width) || !fits_if_given(call->in[1], total, n) ||
        !fits(call->in[2], total, width) || !fits(call->in[7], m, width) ||
        !fits_if_given(project, width, n) ||
        (kept_width && !fits(call->in[4], total, kept_width)) ||
        (lstm && (!fits(call->in[3], total, n) || !fits(call->in[6], batch, n))))
        return misfit(call);
    scratch<int64_t> start(sizes.count);
    if (!start) return no_memory(call, 8 * int64_t(sizes.count));
    if (int status = check(call, sizes, batch, total, start)) return status;
    const walk steps{sizes.list, sizes.count, batch, total, call->params[2].i != 0, start.data};
    operand_as<E> g(call->in[0]), g_cells(call->in[1]), out(call->in[2]), cells(call->in[3]),
        kept(call->in[4]), h0(hx), c0(call->in[6]), weight(call->in[7]), projection(project);
    result_as<E> d_gates(call->out[0]), d_hidden(call->out[1]), previous(call->out[2]),
        d_hx(call->out[3]), d_cx(call->out[4]), projected(call->out[5]);
    panels<E> right(m, width), up(projects ? width : 0, projects ? n : 0);
    if (!g || !g_cells || !out || !cells || !kept || !h0 || !c0 || !weight || !projection ||
        !d_gates || !d_hidden || !previous || !d_hx || !d_cx || !projected || !right.space ||
        !up.space)
        return no_memory(call, total * m * int64_t(sizeof(E)));
    if (batch == 0) return PT_OK;
    fill(right, matrix<const E>{weight.data, width, 1});
    if (projects) fill(up, matrix<const E>{projection.data, n, 1});
    std::atomic<bool> starved{false};
    const int64_t columns = right.columns(), broad = up.columns();
    parallel_for(batch, steps.grain(n * m), [&](int64_t begin, int64_t end) {
        const int64_t rows = end - begin;
        scratch<E> d(rows * columns), dc(lstm ? rows * n : 0), wide(rows * broad);
        if (!d || !dc || !wide) {
            starved = true;
            return;
        }
        for (int64_t j = 0; j < rows * columns; ++j) d[j] = E(0);
        if (lstm)
            for (int64_t j = 0; j < rows * n; ++j) dc[j] = E(0);
        for (int64_t s = 0; s < steps.steps; ++s) {
            const int64_t t = steps.reverse ? s : steps.steps - 1 - s,
                          active = min64(steps.sizes[t], end) - begin;
            if (active <= 0) continue;
            const int64_t first = steps.start[t] + begin;
            for (int64_t r = 0; r < active; ++r) {
                E *state = d.data + r * columns;
                const E *in = g.data + (first + r) * width;
                for (int64_t j = 0; j < width; ++j) state[j] += in[j];
                if (projects)
                    memcpy(projected.data + (first + r) * width, state, size_t(width) * sizeof(E));
            }
            if (projects)
                multiply(up, projected.data + first * width, width, wide.data, active, false);
            for (int64_t r = 0; r < active; ++r) {
                const int64_t row = first + r, from = steps.before(t, begin + r);
                E *state = projects ? wide.data + r * broad : d.data + r * columns,
                  *to = d_gates.data + row * m;
                const E *before =
                    from < 0 ? h0.data + (begin + r) * width : out.data + from * width;
                memcpy(previous.data + row * width, before, size_t(width) * sizeof(E));
                if (lstm) {
                    E *cell = dc.data + r * n;
                    if (g_cells.data)
                        for (int64_t j = 0; j < n; ++j) cell[j] += g_cells.data[row * n + j];
                    lstm_back(kept.data + row * kept_width, cells.data + row * n,
                              from < 0 ? c0.data + (begin + r) * n : cells.data + from * n, state,
                              n, cell, to);
                } else if (gru)
                    gru_back(kept.data + row * kept_width, before, n, state, to,
                             d_hidden.data + row * m);
                else plain_back(out.data + row * n, state, n, mode == MODE_RELU, to);
            }
            multiply(right, (gru ? d_hidden.data : d_gates.data) + first * m, m, d.data, active,
                     gru);
        }
        for (int64_t r = 0; r < rows; ++r) {
            memcpy(d_hx.data + (begin + r) * width, d.data + r * columns,
                   size_t(width) * sizeof(E));
            if (lstm) memcpy(d_cx.data + (begin + r) * n, dc.data + r * n, size_t(n) * sizeof(E));
        }
    });
    if (starved) return no_memory(call, batch * (columns + broad + n) * int64_t(sizeof(E)));
    d_gates.finish();
    d_hidden.finish();
    previous.finish();
    d_hx.finish();
    d_cx.finish();
    projected.finish();
    return PT_OK;
}

int one_dtype(pt_call *call) {
    const int dtype = call->in[0].dtype;
    if (!pt_is(dtype, FLOATS)) return bad_dtype(call, dtype);
    for (int i = 0; i < call->nin; ++i)
        if (present(call->in[i]) && !call->in[i].contiguous)
            return fail(call, PT_RUNTIME_ERROR, "expected contiguous operands");
    for (int i = 1; i < call->nin; ++i)
        if (call->in[i].dtype != dtype && call->in[i].dtype != PT_NONE)
            return fail(call, PT_RUNTIME_ERROR, "expected operands of one dtype, got %s and %s",
                        DTYPE_NAME[dtype],
                        call->in[i].dtype < PT_NDTYPES ? DTYPE_NAME[call->in[i].dtype] : "?");
    return PT_OK;
}
int forward_kernel(pt_call *call) {
    if (int status = one_dtype(call)) return status;
    return call->in[0].dtype == PT_FLOAT64 ? forward<double>(call) : forward<float>(call);
}
int backward_kernel(pt_call *call) {
    if (int status = one_dtype(call)) return status;
    return call->in[0].dtype == PT_FLOAT64 ? backward<double>(call) : backward<float>(call);
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_recurrent_, PT_ISA)[] = {
    {"recurrent_layer", forward_kernel},
    {"recurrent_layer_backward", backward_kernel},
    {nullptr, nullptr},
};

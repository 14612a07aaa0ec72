// The host halves of recurrent layers, with the calls of _ops/recurrent/recurrent.cpp: for each
// step, a product of the states and the weight, and a kernel for all cells. Products of half
// types stay in float32, as do the cells of an lstm and, backward, the gradients of states and
// cells.
#include <climits>

#include "dense.hpp"
#include "driver.hpp"
#include "families.hpp"
#include "matmul.hpp"
#include "recurrent_args.h"

namespace pt_cuda {
namespace {

enum { THREADS = 256 };
const Kernel FORWARD = {"recurrent", "recurrent_forward"},
             BACKWARD = {"recurrent", "recurrent_backward"}, SUM = {"recurrent", "recurrent_sum"};

// The rows of one step, and those rows of the layer's previous step that continue in this
// step.
struct Step {
    int64_t start, rows, earlier, earlier_rows;
};

// A call's sizes, and its steps in the order in which the layer takes them.
struct Layer {
    int dtype, wide_dtype, item, wide_item, mode;
    int64_t batch, total, width, n, gates, kept;        // width: of a state, n: of cells
    bool projects, lstm, gru;

    Layer(const pt_call *c, const pt_view &hx, const pt_view &projection)
        : dtype(c->in[0].dtype), wide_dtype(moment_dtype(dtype)), item(item_size(dtype)),
          wide_item(item_size(wide_dtype)), mode((int)c->params[1].i),
          batch(hx.ndim == 2 ? hx.sizes[0] : 0), total(c->in[0].sizes[0]),
          width(hx.ndim == 2 ? hx.sizes[1] : 0), projects(projection.dtype != PT_NONE),
          lstm(mode == PT_RNN_LSTM), gru(mode == PT_RNN_GRU), sizes(c->params[0]),
          reverse(c->params[2].i != 0) {
        n = projects && projection.ndim == 2 ? projection.sizes[1] : width;
        gates = (lstm ? 4 : gru ? 3 : 1) * n, kept = lstm || gru ? 4 * n : 0;
    }

    // Calls f(step) for all steps that have rows, in the order in which the layer takes them or, if
    // `back`, in reverse.
    template <class F> int each(bool back, F f) const {
        const bool down = reverse != back;              // by falling numbers
        int64_t start = down ? total : 0;
        for (int s = 0; s < sizes.count; s++) {
            const int t = down ? sizes.count - 1 - s : s, last = reverse ? t + 1 : t - 1;
            const int64_t rows = sizes.list[t];
            if (down) start -= rows;
            if (rows) {
                const bool any = last >= 0 && last < sizes.count && sizes.list[last] > 0;
                const int64_t before =
                    any ? (reverse ? start + rows : start - sizes.list[last]) : 0;
                const int64_t common = !any ? 0 : sizes.list[last] < rows ? sizes.list[last] : rows;
                const int status = f(Step{start, rows, before, common});
                if (status) return status;
            }
            if (!down) start += rows;
        }
        return PT_OK;
    }
    int check(pt_call *c) const {
        int64_t sum = 0;
        for (int t = 0; t < sizes.count; t++) {
            if (sizes.list[t] < 0 || sizes.list[t] > (t ? sizes.list[t - 1] : batch))
                return failed(c, PT_RUNTIME_ERROR,
                              "batch_sizes must not rise and be at most the number of states");
            sum += sizes.list[t];
        }
        if (sum != total)
            return failed(c, PT_RUNTIME_ERROR, "batch_sizes do not sum to the number of rows");
        if (!is_floating(dtype)) return failed(c, PT_TYPE_ERROR, "dtype must be floating point");
        for (int i = 0; i < c->nin; i++)
            if (c->in[i].dtype != PT_NONE && (c->in[i].dtype != dtype || !c->in[i].contiguous))
                return failed(c, PT_RUNTIME_ERROR, "expected contiguous operands of one dtype");
        return batch * gates > INT_MAX || batch * width > INT_MAX ? (int)PT_DECOMPOSE : (int)PT_OK;
    }
    RecurrentArgs args(int64_t rows) const {
        RecurrentArgs a = {};
        a.count = (uint32_t)(rows * n), a.n = (uint32_t)n, a.mode = mode;
        return a;
    }

private:
    const pt_param &sizes;
    bool reverse;
};

bool fits(const pt_view &v, int64_t rows, int64_t columns) {
    return v.ndim == 2 && v.sizes[0] == rows && v.sizes[1] == columns;
}
bool given(const pt_view &v) { return v.dtype != PT_NONE; }
int misfit(pt_call *c) {
    return failed(c, PT_RUNTIME_ERROR, "states, gates and weights do not fit together");
}

char *row_of(const pt_view &v, int64_t row, int64_t width, int item) {
    return v.data + row * width * item;
}

int start(pt_call *c, const Kernel &kernel, const Layer &l, const RecurrentArgs &a) {
    return a.count ? launch(c, kernel, types(l.dtype), blocks_for(c, a.count, THREADS), THREADS, a)
                   : (int)PT_OK;
}

// out (rows, m) = a (rows, k) times matrix (k, m), or its transposed (m, k), [+ out].
int times(pt_call *c, const Layer &l, int64_t rows, int64_t k, int64_t m, const void *a,
          const pt_view &matrix, bool transposed, void *out, int out_dtype, bool adds = false) {
    Product p;
    p.n = rows, p.k = k, p.m = m;
    p.a = {static_cast<const char *>(a), k, 1, 0};
    p.b = {matrix.data, transposed ? 1 : m, transposed ? k : 1, 0};
    p.beta[0] = adds;
    p.out = out, p.dtype = l.dtype, p.out_dtype = out_dtype;
    return multiply(c, p);
}

int copy_bytes(pt_call *c, void *to, const void *from, int64_t nbytes) {
    if (nbytes == 0) return PT_OK;
    int result = driver.set_device(c->out[0].device_index);
    if (!result) result = driver.copy(to, from, (size_t)nbytes, c->stream);
    return status_of(result, "recurrent_layer", c->error);
}

// to = from, (rows, columns) of these dtypes.
int converted(pt_call *c, void *to, int to_dtype, const void *from, int from_dtype, int64_t rows,
              int64_t columns) {
    if (rows * columns == 0) return PT_OK;
    if (to_dtype == from_dtype)
        return copy_bytes(c, to, from, rows * columns * item_size(to_dtype));
    const int64_t sizes[2] = {rows, columns}, strides[2] = {columns, 1};
    pt_view src = c->out[0];
    src.data = static_cast<char *>(const_cast<void *>(from)), src.dtype = (uint8_t)from_dtype;
    src.sizes = sizes, src.strides = strides, src.numel = rows * columns, src.ndim = 2,
    src.contiguous = 1;
    pt_view dst = src;
    dst.data = static_cast<char *>(to), dst.dtype = (uint8_t)to_dtype;
    return copy(c, &dst, &src);
}

// in: gates, hx, cx, weight, bias, projection; out: out, cells, kept
int forward(pt_call *c) {
    const pt_view &x = c->in[0], &hx = c->in[1], &cx = c->in[2], &w = c->in[3], &b = c->in[4];
    const pt_view &project = c->in[5];
    const Layer l(c, hx, project);
    if (!fits(x, l.total, l.gates) || !fits(hx, l.batch, l.width) || !fits(w, l.gates, l.width) ||
        given(cx) != l.lstm || (l.lstm && !fits(cx, l.batch, l.n)) ||
        (l.projects && (!l.lstm || !fits(project, l.width, l.n))) ||
        (given(b) && b.numel != l.gates))
        return misfit(c);
    int status = l.check(c);
    if (status || l.total == 0) return status;
    const Scratch product(c, l.batch * l.gates * l.wide_item), state(c, l.batch * l.width * l.item),
        high(c, l.projects ? l.batch * l.n * l.item : 0),
        cell(c, l.lstm ? l.batch * l.n * l.wide_item : 0);
    if (c->error[0]) return PT_MEMORY_ERROR;
    status = copy_bytes(c, state.data, hx.data, l.batch * l.width * l.item);
    if (!status && l.lstm)
        status = converted(c, cell.data, l.wide_dtype, cx.data, l.dtype, l.batch, l.n);
    if (status) return status;
    return l.each(false, [&](const Step &t) {
        int status =
            times(c, l, t.rows, l.width, l.gates, state.data, w, true, product.data, l.wide_dtype);
        if (status) return status;
        RecurrentArgs a = l.args(t.rows);
        void *const out = row_of(c->out[0], t.start, l.width, l.item);
        a.gates = row_of(x, t.start, l.gates, l.item), a.product = product.data,
        a.bias = given(b) ? b.data : nullptr;
        a.kept = row_of(c->out[2], t.start, l.kept, l.item);
        a.cells = row_of(c->out[1], t.start, l.lstm ? l.n : 0, l.item), a.cell = cell.data;
        a.state = l.projects ? high.data : state.data, a.out = l.projects ? nullptr : out;
        status = start(c, FORWARD, l, a);
        if (status || !l.projects) return status;
        status = times(c, l, t.rows, l.n, l.width, high.data, project, true, out, l.dtype);
        return status ? status : copy_bytes(c, state.data, out, t.rows * l.width * l.item);
    });
}

// Fills `to` with the states from which the rows of each step started; runs of consecutive rows are
// copied at once.
int previous_states(pt_call *c, const Layer &l, const pt_view &states, const pt_view &hx,
                    const pt_view &to) {
    const char *from = nullptr;
    char *to_bytes = nullptr;
    int64_t nbytes = 0;
    const int64_t row = l.width * l.item;
    const auto add = [&](char *next_to, const char *next, int64_t rows) {
        if (rows == 0) return (int)PT_OK;
        if (next_to == to_bytes + nbytes && next == from + nbytes) {
            nbytes += rows * row;
            return (int)PT_OK;
        }
        const int status = copy_bytes(c, to_bytes, from, nbytes);
        to_bytes = next_to, from = next, nbytes = rows * row;
        return status;
    };
    const int status = l.each(false, [&](const Step &t) {
        char *const first = to.data + t.start * row;
        const int status = add(first, states.data + t.earlier * row, t.earlier_rows);
        const int64_t at = t.earlier_rows * row;
        return status ? status : add(first + at, hx.data + at, t.rows - t.earlier_rows);
    });
    return status ? status : copy_bytes(c, to_bytes, from, nbytes);
}

// in: g, g_cells, out, cells, kept, hx, cx, weight, projection; out: gates, hidden, previous, hx,
// cx, projected
int backward(pt_call *c) {
    const pt_view &g = c->in[0], &g_cells = c->in[1], &states = c->in[2], &cells = c->in[3],
                  &kept = c->in[4];
    const pt_view &hx = c->in[5], &cx = c->in[6], &w = c->in[7], &project = c->in[8];
    const pt_view &d_gates = c->out[0], &hidden = c->out[1], &previous = c->out[2],
                  &projected = c->out[5];
    if (g.ndim != 2) return misfit(c);
    const Layer l(c, hx, project);
    if (!fits(g, l.total, l.width) || !fits(states, l.total, l.width) ||
        !fits(w, l.gates, l.width) || (given(g_cells) && !fits(g_cells, l.total, l.n)) ||
        (l.kept && !fits(kept, l.total, l.kept)) ||
        (l.lstm && (!fits(cells, l.total, l.n) || !fits(cx, l.batch, l.n))) ||
        (l.projects && (!l.lstm || !fits(project, l.width, l.n))) || !fits(hx, l.batch, l.width))
        return misfit(c);
    int status = l.check(c);
    if (status) return status;
    const bool narrow =
        l.dtype != l.wide_dtype;    // gradients of states and cells are made in scratch memory
    const int64_t state_bytes = l.batch * l.width * l.wide_item,
                  cell_bytes = l.lstm ? l.batch * l.n * l.wide_item : 0;
    const Scratch wide_d(c, narrow ? state_bytes : 0), wide_cell(c, narrow ? cell_bytes : 0),
        high(c, l.projects ? l.batch * l.n * l.wide_item : 0);
    if (c->error[0]) return PT_MEMORY_ERROR;
    void *const d = narrow ? wide_d.data : c->out[3].data;
    void *const cell = narrow ? wide_cell.data : c->out[4].data;
    status = clear(c, d, state_bytes);
    if (!status) status = clear(c, cell, cell_bytes);
    if (!status) status = previous_states(c, l, states, hx, previous);
    if (status) return status;
    status = l.each(true, [&](const Step &t) {
        RecurrentArgs a = l.args(t.rows);
        const auto rows_of = [&](const pt_view &v, int64_t width) {
            return row_of(v, t.start, width, l.item);
        };
        a.d = d, a.g = rows_of(g, l.width);
        int status = PT_OK;
        if (l.projects) {
            a.count = (uint32_t)(t.rows * l.width), a.sum = rows_of(projected, l.width);
            status = start(c, SUM, l, a);
            if (!status)
                status = times(c, l, t.rows, l.width, l.n, a.sum, project, false, high.data,
                               l.wide_dtype);
            if (status) return status;
            a.count = (uint32_t)(t.rows * l.n), a.d = high.data, a.g = nullptr;
        }
        a.g_cells = given(g_cells) ? rows_of(g_cells, l.n) : nullptr;
        a.kept = rows_of(kept, l.kept),
        a.values = l.lstm ? rows_of(cells, l.n) : rows_of(states, l.width);
        a.previous = rows_of(previous, l.width), a.cell = cell;
        a.before = (uint32_t)t.earlier_rows, a.first = cx.data;
        if (l.lstm) a.earlier = row_of(cells, t.earlier, l.n, l.item);
        a.d_gates = rows_of(d_gates, l.gates);
        if (l.gru) a.hidden = rows_of(hidden, l.gates);
        status = start(c, BACKWARD, l, a);
        if (status) return status;
        return times(c, l, t.rows, l.gates, l.width, l.gru ? a.hidden : a.d_gates, w, false, d,
                     l.wide_dtype, l.gru);
    });
    if (!status && narrow)
        status = converted(c, c->out[3].data, l.dtype, d, l.wide_dtype, l.batch, l.width);
    if (!status && narrow && l.lstm)
        status = converted(c, c->out[4].data, l.dtype, cell, l.wide_dtype, l.batch, l.n);
    return status;
}

}  // namespace

const pt_kernel_entry recurrent_kernels[] = {
    {"recurrent_layer", forward}, {"recurrent_layer_backward", backward}, {nullptr, nullptr}};

}  // namespace pt_cuda

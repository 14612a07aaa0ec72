// The host halves of attention (kernels/attention_base.cuh), with the calls of
// _ops/attention/attention.cpp. Heads for which shared memory has no room for a tile are left to
// the decomposition.
#include <climits>
#include <cmath>

#include "attention_args.h"
#include "cublas.hpp"
#include "cudnn.hpp"
#include "dense.hpp"
#include "divisor.hpp"
#include "families.hpp"

namespace pt_cuda {
namespace {

// The gradients of narrow and of wide results are separate programs, as they take long to compile.
#define PT_BOTH(which)                                     \
    {{"attention_backward", "attention_" which "_narrow"}, \
     {"attention_backward_wide", "attention_" which "_wide"}}
const Kernel FORWARD[2] = {{"attention", "attention_narrow"}, {"attention", "attention_wide"}},
             FEW[2] = {{"attention", "attention_few"}, {"attention", "attention_few"}},
             COMBINE = {"attention", "attention_combine"},
             DELTA[2] = PT_BOTH("delta"), QUERY[2] = PT_BOTH("query"), KEY[2] = PT_BOTH("key"),
             VALUE[2] = PT_BOTH("value");
#undef PT_BOTH

bool has_shape(const pt_view &v, int64_t n, int64_t h, int64_t rows, int64_t columns) {
    return v.ndim == 4 && v.sizes[0] == n && v.sizes[1] == h && v.sizes[2] == rows &&
           v.sizes[3] == columns;
}

// A view of four dims as the kernels read it: in place if its last dim is dense, else a copy.
class Operand {
public:
    Operand(pt_call *c, const pt_view &v) : dense(c, claimed(v)) {
        const pt_view &x = dense.view;
        const int64_t pack = 16 / item_size(x.dtype);
        args = {x.data, x.strides[0], x.strides[1], x.strides[2], 1};
        if ((uintptr_t)x.data % 16 || x.sizes[3] % pack) args.packed = 0;
        for (int d = 0; d < 3; d++)
            if (x.sizes[d] > 1 && x.strides[d] % pack) args.packed = 0;
    }
    bool ok() const { return dense.ok(); }
    AttentionOperand args;

private:
    static pt_view claimed(pt_view v) {
        if (v.sizes[3] <= 1 || v.strides[3] == 1) v.contiguous = 1;
        return v;
    }
    Contiguous dense;
};

// Reads query, key, value, mask, keep and state, which are the inputs from `first` on.
int read(pt_call *c, int first, AttentionArgs &a) {
    const pt_view *in = c->in + first;
    const pt_view &q = in[0], &k = in[1], &v = in[2], &state = in[5];
    const int dtype = c->out[0].dtype;
    if (q.ndim != 4 || k.ndim != 4 || v.ndim != 4)
        return failed(c, PT_RUNTIME_ERROR, "expected tensors of 4 dimensions");
    const int64_t n = q.sizes[0], most = INT_MAX / 2;
    a.heads = q.sizes[1], a.held = k.sizes[1], a.l = q.sizes[2], a.s = k.sizes[2];
    a.by_l = divisor(a.l), a.by_heads = divisor(a.heads);
    if (!has_shape(k, n, a.held, a.s, q.sizes[3]) || !has_shape(v, n, a.held, a.s, v.sizes[3]) ||
        (a.heads && (!a.held || a.heads % a.held)))
        return failed(c, PT_RUNTIME_ERROR, "shapes of query, key and value do not agree");
    for (int i = 0; i < 4; i++)
        if (in[i].dtype != PT_NONE && in[i].dtype != dtype)
            return failed(c, PT_RUNTIME_ERROR, "expected tensors of one dtype");
    if (!floating(c->out[0])) return failed(c, PT_TYPE_ERROR, "dtype must be floating point");
    if (q.sizes[3] > most || v.sizes[3] > most) return PT_DECOMPOSE;
    a.e = (int32_t)q.sizes[3], a.v = (int32_t)v.sizes[3];
    a.group = a.held ? a.heads / a.held : 1;
    a.by_group = divisor(a.group);
    for (int i = 3; i < 5; i++) {
        if (in[i].dtype == PT_NONE) continue;
        if (!has_shape(in[i], n, a.heads, a.l, a.s))
            return failed(c, PT_RUNTIME_ERROR, "expected a mask of shape (N, H, L, S)");
        if (i == 4 && in[i].dtype != PT_BOOL)
            return failed(c, PT_TYPE_ERROR, "expected a mask of dtype bool");
        for (int d = 0; d < 4; d++) (i == 3 ? a.mask_step : a.keep_step)[d] = in[i].strides[d];
    }
    if (in[3].dtype != PT_NONE) a.mask = in[3].data;
    if (in[4].dtype != PT_NONE) a.keep = reinterpret_cast<const uint8_t *>(in[4].data);
    a.causal = c->params[0].i != 0;
    a.scale = c->params[1].d;
    const double p = c->params[2].d;
    if (!(p >= 0 && p <= 1)) return failed(c, PT_VALUE_ERROR, "dropout_p must be in [0, 1]");
    if (p > 0) {
        if (state.dtype != PT_INT64 || state.ndim != 1 || state.numel != 2)
            return failed(c, PT_RUNTIME_ERROR, "expected a random state of two int64");
        a.state = reinterpret_cast<const int64_t *>(state.data), a.state_step = state.strides[0];
        a.threshold = (uint64_t)std::ceil(p * 4294967296.0);
        a.survivor = p == 1 ? 0 : 1 / (1 - p);
    }
    return PT_OK;
}

// A kernel for `heads` heads of `count` lines each; a block owns `own` lines.
struct Part {
    const Kernel *kernels;      // for results of one stage of columns, and of more
    int64_t heads, count;
    int own, width;             // width: columns of the result
    bool slope;                 // a block holds lines of values beside those of keys
};
// With `run` false, start() only says whether the kernel can be started.
int start(pt_call *c, const Part &p, AttentionArgs &a, void *out, bool run) {
    const int dtype = c->out[0].dtype, pack = dtype == PT_FLOAT64 ? 2 : 4;
    const int64_t tile = PT_ATTENTION_TILE / pack, e = ceil_div(a.e, pack), v = ceil_div(a.v, pack);
    const int64_t pairs =
        PT_ATTENTION_PAIR(e) + (p.slope ? PT_ATTENTION_PAIR(v) : 0) + PT_ATTENTION_PAIR(tile);
    const int64_t shared = (p.own / 2 * pairs + PT_ATTENTION_TILE * PT_ATTENTION_ODD(tile)) * 16;
    a.blocks = ceil_div(p.count, p.own);
    a.parts = p.width ? ceil_div(p.width, PT_ATTENTION_TILE * 2) : 1;
    a.out = out;
    const int64_t all = a.blocks * a.parts * p.heads;
    if (shared > shared_limit(c) || all > INT_MAX) return PT_DECOMPOSE;
    if (!run || all == 0) return PT_OK;
    return launch(c, p.kernels[p.width > PT_ATTENTION_TILE], types(dtype),
                  Grid{(unsigned)all, 1, 1}, PT_ATTENTION_THREADS, a, (unsigned)shared);
}

// Kernels by tensor cores, for heads of at most 64 and of at most 128 elements, without and with
// masks, dropout or a scale that is not above 0.
struct TensorPart {
    Kernel kernels[2][2];
    int own[2], others[2],
        float_others[2];    // lines of a tile; others: half types, float_others: floats
    bool slope, key;
};
#define PT_TENSOR(program, name) \
    {{{program, name "_64", 80}, {program, name "_128", 80}}, \
     {{program "_masked", name "_64_masked", 80}, {program "_masked", name "_128_masked", 80}}}
const TensorPart TENSOR_FORWARD = {PT_TENSOR("attention_tensor", "attention_tensor"),
                                   {128, 64}, {64, 64}, {64, 32}, false, false},
                 TENSOR_QUERY = {PT_TENSOR("attention_tensor_backward", "attention_query_tensor"),
                                 {64, 64}, {64, 32}, {64, 16}, true, false},
                 TENSOR_KEY = {PT_TENSOR("attention_tensor_backward", "attention_key_tensor"),
                               {64, 64}, {64, 32}, {64, 16}, true, true};
#undef PT_TENSOR

// No mask, no dropout, and scores that grow with the products.
bool is_plain(const AttentionArgs &a) { return !a.mask && !a.keep && !a.threshold && a.scale > 0; }

bool fits_tensors(const pt_call *c, const AttentionArgs &a, bool backward) {
    const int dtype = c->out[0].dtype;
    if (dtype == PT_FLOAT64 || (dtype == PT_FLOAT32 && !blas_settings.tf32)) return false;
    if (!runs_on(c, TENSOR_FORWARD.kernels[0][0])) return false;
    return a.e > 0 && a.v > 0 && a.e <= 128 && a.v <= 128 && a.query.packed && a.key.packed &&
           a.value.packed && (!backward || a.g.packed);
}

// `heads` heads of `count` lines; with `run` false, start() only says whether it can be started.
int start(pt_call *c, const TensorPart &p, AttentionArgs &a, int64_t heads, int64_t count,
          bool run) {
    const bool wide = a.e > 64 || a.v > 64;
    const int head = wide ? 128 : 64, own = p.own[wide], item = item_size(c->out[0].dtype);
    const int others = (item == 4 ? p.float_others : p.others)[wide];
    // The numbers of queries behind the tiles (shifts and deltas of two stages and, with masks,
    // shares) take whole lines, so that the memory, which begins at a multiple of a line, also ends
    // at one.
    const int line = item * head, numbers = 8 * (is_plain(a) ? 2 : 3) * others;
    const int shared = line * (own * (p.slope ? 2 : 1) + 4 * others) +
                       (p.key ? (int)ceil_div(numbers, line) * line : 0);
    a.blocks = ceil_div(count, own);
    const int64_t all = a.blocks * heads;
    if (shared > shared_limit(c) || all > INT_MAX) return PT_DECOMPOSE;
    if (!run || all == 0) return PT_OK;
    return launch(c, p.kernels[!is_plain(a)][wide], types(c->out[0].dtype),
                  Grid{(unsigned)all, 1, 1}, PT_ATTENTION_THREADS, a, (unsigned)shared);
}

int rows_of(int dtype) { return PT_ATTENTION_FEW * (dtype == PT_FLOAT64 ? 4 : 8); }

// Ranges of `chunk` keys, so many that the device has enough blocks where queries are few.
int64_t ranges(const pt_call *c, AttentionArgs &a) {
    enum { SHORTEST = 4 * PT_ATTENTION_TILE, MOST = 64 };
    const int64_t blocks = a.all * ceil_div(a.v, PT_ATTENTION_TILE * 2),
                  wanted = 2 * (int64_t)multiprocessors(c);
    const int64_t keys = a.causal && a.l < a.s ? a.l : a.s, longest = ceil_div(keys, SHORTEST);
    int64_t splits = blocks ? ceil_div(wanted, blocks) : 1;
    if (splits > longest) splits = longest;
    if (splits > MOST) splits = MOST;
    if (splits <= 1) return 1;
    a.chunk = ceil_div(ceil_div(keys, splits), PT_ATTENTION_TILE) * PT_ATTENTION_TILE;
    return ceil_div(keys, a.chunk);
}

int forward(pt_call *c) {
    AttentionArgs a = {};
    int status = read(c, 0, a);
    if (status) return status;
    const bool few = a.l <= PT_ATTENTION_FEW;
    if (!few && is_plain(a)) {
        status = attend_by_cudnn(c, 0, (float)a.scale, a.causal);
        if (status != DNN_DECLINES) return status;
    }
    const Operand q(c, c->in[0]), k(c, c->in[1]), v(c, c->in[2]);
    if (!q.ok() || !k.ok() || !v.ok()) return PT_MEMORY_ERROR;
    a.query = q.args, a.key = k.args, a.value = v.args;
    a.lse = c->out[1].data;
    if (!few && fits_tensors(c, a, false)) {
        a.out = c->out[0].data;
        status = start(c, TENSOR_FORWARD, a, c->in[0].sizes[0] * a.heads, a.l, true);
        if (status != PT_DECOMPOSE) return status;
    }
    a.all = c->in[0].sizes[0] * a.heads, a.chunk = a.s;
    a.splits = few ? ranges(c, a) : 1;
    const int64_t item = item_size(moment_dtype(c->out[0].dtype)),
                  results = a.splits > 1 ? a.splits * a.all * a.l : 0;
    const Scratch room(c, results * (a.v + 1) * item);
    if (results && !room.data) return PT_MEMORY_ERROR;
    a.split_lse = room.data, a.split_out = static_cast<char *>(room.data) + results * item;
    const Part part = {few ? FEW : FORWARD,
                       a.all * a.splits,
                       a.l,
                       few ? PT_ATTENTION_FEW : rows_of(c->out[0].dtype),
                       a.v,
                       false};
    status = start(c, part, a, c->out[0].data, true);
    if (status || !results) return status;
    return launch(c, COMBINE, types(c->out[0].dtype),
                  blocks_for(c, a.all * a.l * 32, PT_ATTENTION_THREADS), PT_ATTENTION_THREADS, a);
}

// in: gradient, query, key, value, mask, keep, state, result, lse; out: gradients of query, key,
// value, and of scores
int backward(pt_call *c) {
    AttentionArgs a = {};
    int status = read(c, 1, a);
    if (status) return status;
    const pt_view &g = c->in[0], &result = c->in[7], &lse = c->in[8];
    const int dtype = c->out[0].dtype, own = rows_of(dtype);
    const int64_t n = c->in[1].sizes[0], rows = n * a.heads * a.l;
    if (!has_shape(g, n, a.heads, a.l, a.v) || !has_shape(result, n, a.heads, a.l, a.v) ||
        lse.ndim != 3 || lse.numel != rows)
        return failed(c, PT_RUNTIME_ERROR,
                      "shapes of gradient, output and log-sum-exp do not agree");
    if (g.dtype != dtype || !floating(result) || !floating(lse))
        return failed(c, PT_RUNTIME_ERROR,
                      "dtypes of gradient, output and log-sum-exp do not agree");
    if (is_plain(a)) {
        status = attend_by_cudnn(c, 1, (float)a.scale, a.causal);
        if (status != DNN_DECLINES) return status;
    }
    const Part parts[3] = {{QUERY, n * a.heads, a.l, own, a.e, true},
                           {KEY, n * a.held, a.s, own, a.e, true},
                           {VALUE, n * a.held, a.s, own, a.v, false}};
    for (const Part &p : parts) {
        status = start(c, p, a, nullptr, false);
        if (status) return status;
    }
    const int moments = moment_dtype(dtype);
    const Operand dense_g(c, g), q(c, c->in[1]), k(c, c->in[2]), v(c, c->in[3]);
    const Dense y(c, result, result.dtype == dtype ? dtype : moments), top(c, lse, moments);
    const Scratch delta(c, 2 * rows * item_size(moments));      // and the shares
    if (!dense_g.ok() || !q.ok() || !k.ok() || !v.ok() || !y.ok() || !top.ok() ||
        (rows && !delta.data))
        return PT_MEMORY_ERROR;
    a.g = dense_g.args, a.query = q.args, a.key = k.args, a.value = v.args;
    a.wide_result = result.dtype != dtype;
    a.result = y.data, a.lse = const_cast<void *>(top.data), a.delta = delta.data;
    a.share = static_cast<char *>(delta.data) + rows * item_size(moments);
    if (rows) {
        a.blocks = rows;
        const Grid grid = blocks_for(c, rows * 32, PT_ATTENTION_THREADS, 16);
        status =
            launch(c, DELTA[a.e > PT_ATTENTION_TILE], types(dtype), grid, PT_ATTENTION_THREADS, a);
        if (status) return status;
    }
    const pt_view &scores = c->out[3];
    if (scores.numel) {
        a.scores = scores.data;
        if (a.causal)
            status = clear(c, scores.data,
                           scores.numel * item_size(dtype));    // for tiles that no query sees
    }
    if (!status && fits_tensors(c, a, true) &&
        start(c, TENSOR_QUERY, a, n * a.heads, a.l, false) == PT_OK &&
        start(c, TENSOR_KEY, a, n * a.held, a.s, false) == PT_OK) {
        a.out = c->out[0].data;
        status = start(c, TENSOR_QUERY, a, n * a.heads, a.l, true);
        a.out = c->out[2].data, a.key_out = c->out[1].data;
        return status ? status : start(c, TENSOR_KEY, a, n * a.held, a.s, true);
    }
    for (int i = 0; i < 3; i++)
        if (!status) status = start(c, parts[i], a, c->out[i].data, true);
    return status;
}

}  // namespace

const pt_kernel_entry attention_kernels[] = {
    {"attention", forward}, {"attention_backward", backward}, {nullptr, nullptr}};

}  // namespace pt_cuda

// The host halves of softmax, log_softmax and their gradients.
#include <cstring>

#include "divisor.hpp"
#include "families.hpp"
#include "row_plan.hpp"
#include "softmax_args.h"

namespace pt_cuda {
namespace {

struct Softmax {
    Kernel rows, wide, columns, parts, split, one, two, four;
};
#define PT_SOFTMAX(program) \
    { {program, program "_rows"}, {program, program "_wide"}, {program, program "_columns"}, \
      {program, program "_parts"}, {program, program "_split"}, \
      {program, program "_one"}, {program, program "_two"}, {program, program "_four"} }
const Softmax FORWARD = PT_SOFTMAX("softmax"), LOG_FORWARD = PT_SOFTMAX("log_softmax"),
              BACKWARD = PT_SOFTMAX("softmax_backward"),
              LOG_BACKWARD = PT_SOFTMAX("log_softmax_backward");

// Sets the dims except `dim` of all inputs, merged where this changes no input's walk; false if
// they are too many.
bool kept_dims(const pt_call *c, int64_t dim, SoftmaxArgs &a) {
    const pt_view &out = c->out[0];
    a.ndim = 0;
    for (int d = 0; d < out.ndim; d++) {
        if (d == dim || out.sizes[d] == 1) continue;
        const int last = a.ndim - 1;
        bool joins = last >= 0;
        for (int k = 0; joins && k < c->nin; k++)
            joins = a.strides[k][last] == c->in[k].strides[d] * out.sizes[d];
        if (!joins && a.ndim == PT_ROW_DIMS) return false;
        const int at = joins ? last : a.ndim++;
        a.dims.sizes[at] = joins ? a.dims.sizes[at] * out.sizes[d] : out.sizes[d];
        for (int k = 0; k < c->nin; k++) a.strides[k][at] = c->in[k].strides[d];
    }
    if (a.ndim == 0) {          // one row
        a.ndim = 1;
        a.dims.sizes[0] = 1;
        a.strides[0][0] = a.strides[1][0] = 0;
    }
    divide_by_sizes(a.dims, a.ndim);
    return true;
}

bool packed(const pt_call *c, const SoftmaxArgs &a, int vector) {
    if (vector == 1 || a.n % vector || (uintptr_t)a.out % 16) return false;
    for (int k = 0; k < c->nin; k++) {
        if (a.step[k] != 1 || (uintptr_t)a.in[k] % 16) return false;
        for (int d = 0; d < a.ndim; d++)
            if (a.strides[k][d] % vector) return false;
    }
    return true;
}

// A block has 2**a.log2 columns. If these blocks are too few to fill the device, the columns are
// cut into parts with many elements for each thread.
int by_columns(pt_call *c, const Softmax &op, uint64_t t, SoftmaxArgs &a) {
    const int64_t blocks = ceil_div(a.rows, (int64_t)1 << a.log2),
                  step = (int64_t)(PT_ROW_THREADS >> a.log2) * 16;
    int64_t parts = ceil_div((int64_t)multiprocessors(c) * 8, blocks);
    if (parts > a.n / step) parts = a.n / step;
    if (parts < 4) return launch(c, op.columns, t, blocks_for(c, blocks, 1, 32), PT_ROW_THREADS, a);
    a.chunk = ceil_div(a.n, parts);
    parts = ceil_div(a.n, a.chunk);
    Scratch states(c, parts * a.rows * 2 * (int64_t)sizeof(double));
    if (!states.data) return PT_MEMORY_ERROR;
    a.partial = states.data;
    const Grid grid{(unsigned)blocks, (unsigned)parts, 1};
    const int status = launch(c, op.parts, t, grid, PT_ROW_THREADS, a);
    return status ? status : launch(c, op.split, t, grid, PT_ROW_THREADS, a);
}

int softmax(pt_call *c, const Softmax &op);

// Works on copies of the inputs; the dims of copies merge.
int of_copies(pt_call *c, const Softmax &op) {
    const Contiguous first(c, c->in[0]), second(c, c->nin > 1 ? c->in[1] : first.view);
    if (!first.ok() || !second.ok()) return PT_MEMORY_ERROR;
    const pt_view copies[2] = {first.view, second.view};
    pt_call of = *c;
    of.in = copies;
    const int status = softmax(&of, op);
    if (status) std::memcpy(c->error, of.error, sizeof(c->error));
    return status;
}

int softmax(pt_call *c, const Softmax &op) {
    const pt_view &out = c->out[0];
    int64_t dim = c->params[0].i;
    if (dim < 0) dim += out.ndim ? out.ndim : 1;
    if (dim < 0 || dim >= (out.ndim ? out.ndim : 1)) {
        std::snprintf(c->error, sizeof(c->error), "dim must be in [%d, %d], got %lld", -out.ndim,
                      out.ndim - 1, (long long)c->params[0].i);
        return PT_INDEX_ERROR;
    }
    if (out.numel == 0) return PT_OK;
    SoftmaxArgs a;
    a.n = out.ndim ? out.sizes[dim] : 1;
    a.rows = out.numel / a.n;
    int64_t inner = 1;
    for (int64_t d = dim + 1; d < out.ndim; d++) inner *= out.sizes[d];
    a.inner = divisor(inner);
    a.out = out.data;
    for (int k = 0; k < 2; k++) {
        a.in[k] = k < c->nin ? c->in[k].data : nullptr;
        a.step[k] = k < c->nin && a.n > 1 ? c->in[k].strides[dim] : 1;
    }
    if (!kept_dims(c, dim, a)) return of_copies(c, op);
    const uint64_t t = types(out.dtype);
    if (inner > 1) {
        a.count = a.packed = 0;
        a.log2 = inner >= 32 ? 5 : ceil_log2(inner);
        return by_columns(c, op, t, a);
    }
    const int item = item_size(out.dtype), vector = 16 / item;
    a.packed = packed(c, a, vector);
    const RowPlan p = plan_rows(c, a.rows, a.n, a.packed ? vector : 1, item == 8 ? 8 : 4, c->nin);
    a.log2 = p.log2;
    a.count = p.count;
    if (p.shared) {
        const Kernel *by[5] = {p.wide ? &op.wide : &op.rows, &op.one, &op.two, nullptr, &op.four};
        return launch(c, *by[p.registers], t, Grid{(unsigned)p.blocks, 1, 1},
                      p.wide ? WIDE_THREADS : ROW_THREADS, a, p.registers ? 0 : p.shared);
    }
    a.log2 = 0;
    return by_columns(c, op, t, a);
}

int forward(pt_call *c) { return softmax(c, FORWARD); }
int log_forward(pt_call *c) { return softmax(c, LOG_FORWARD); }
int backward(pt_call *c) { return softmax(c, BACKWARD); }
int log_backward(pt_call *c) { return softmax(c, LOG_BACKWARD); }

}  // namespace

const pt_kernel_entry softmax_kernels[] = {{"softmax", forward},
                                           {"log_softmax", log_forward},
                                           {"softmax_backward", backward},
                                           {"log_softmax_backward", log_backward},
                                           {nullptr, nullptr}};

}  // namespace pt_cuda

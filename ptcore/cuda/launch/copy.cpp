// Copies: within a device by the driver or a kernel, between host and device through dense memory,
// between devices.
#include <cstdlib>
#include <cstring>

#include "backend.hpp"
#include "copy_args.h"
#include "driver.hpp"
#include "view.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256, PER_THREAD = 4 };
const Kernel DENSE = {"copy", "copy_dense"}, PACKED = {"copy", "copy_packed"},
             STRIDED = {"copy", "copy_strided"}, TRANSPOSE = {"transpose", "transpose"};

// Equal dtypes are copied by their size alone.
uint64_t copy_types(int dst, int src) {
    if (dst != src) return types(dst, src);
    const int by = (int)(by_size(dst) & 255);
    return types(by, by);
}

// Whether the walk is a batch of matrices, by rows in dst and by columns in src; src is dense along
// dim d.
bool is_transpose(const Walk &w, int item, int &d) {
    if (w.ndim < 2 || w.ndim > 3 || w.strides[0][w.ndim - 1] != item) return false;
    for (d = 0; d < w.ndim - 1; d++)
        if (w.strides[1][d] == item) break;
    if (d == w.ndim - 1) return false;
    return w.sizes[d] >= 8 && w.sizes[w.ndim - 1] >= 8 && w.sizes[d] < INT32_MAX &&
           w.sizes[w.ndim - 1] < INT32_MAX && (w.ndim == 2 || w.sizes[1 - d] < 65536);
}

int transpose(pt_call *c, const Walk &w, int d, const pt_view *dst, const pt_view *src,
              uint64_t kinds) {
    const int item = item_size(dst->dtype), inner = w.ndim - 1;
    TransposeArgs a = {};
    a.dst = dst->data, a.src = src->data;
    a.rows = (uint32_t)w.sizes[d], a.columns = (uint32_t)w.sizes[inner];
    a.dst_row = w.strides[0][d] / item, a.src_column = w.strides[1][inner] / item;
    unsigned batch = 1;
    if (w.ndim == 3) {
        batch = (unsigned)w.sizes[1 - d];
        a.dst_batch = w.strides[0][1 - d] / item, a.src_batch = w.strides[1][1 - d] / item;
    }
    a.pairs = ((uintptr_t)a.dst % 4 | (uintptr_t)a.src % 4 | a.rows % 2 | a.columns % 2 |
               a.dst_row % 2 | a.src_column % 2 | a.dst_batch % 2 | a.src_batch % 2) == 0;
    const int64_t tile = PT_TRANSPOSE_TILE(item), tiles_down = ceil_div(a.rows, tile);
    if (tiles_down > 65535) return -1;
    const Grid grid{(unsigned)ceil_div(a.columns, tile), (unsigned)tiles_down, batch};
    return launch(c, TRANSPOSE, kinds | 0xff00u, grid, THREADS, a);
}

pt_call call_on(const pt_view *v) {
    pt_call c = {};
    c.nout = 1;
    c.out = const_cast<pt_view *>(v);
    c.stream = driver.stream(v->device_index);
    return c;
}

// A dense view with v's sizes; strides need room for its dims.
pt_view dense_like(const pt_view *v, char *data, int dtype, int64_t *strides) {
    pt_view r = *v;
    int64_t step = 1;
    for (int d = v->ndim - 1; d >= 0; d--) {
        strides[d] = step;
        step *= v->sizes[d];
    }
    r.data = data;
    r.strides = strides;
    r.dtype = (uint8_t)dtype;
    r.contiguous = 1;
    return r;
}

struct HostBuffer {
    explicit HostBuffer(int64_t n)
        : data(static_cast<char *>(std::malloc(n > 0 ? (size_t)n : 1))) {}
    ~HostBuffer() { std::free(data); }
    char *data;
};

// Whether the caller may go on before the driver has read or written `host`: if `host` is
// page-locked memory or, as a source, staged by the driver.
bool may_go_on(pt_call *c, bool async, const pt_view *host, const pt_view *there, bool source) {
    if (!async || !host->contiguous) return false;
    return driver.keep_host(host->data, there->device_index, c->stream) || (source && !captures(c));
}

// Called before a copy between host and device waits for the device.
int copy_waits(pt_call *c) {
    return waits(c, "a copy waits for the device, which cannot become part of a CUDA graph: read "
                    "and write values before the "
                    "capture or after it, or by page-locked memory with non_blocking=True");
}

int to_device(pt_call *c, const pt_view *dst, const pt_view *src, bool async) {
    const bool in_order = may_go_on(c, async, src, dst, true);
    if (!in_order && copy_waits(c)) return PT_RUNTIME_ERROR;
    int64_t strides[PT_MAX_DIM];
    const int64_t nbytes = src->numel * item_size(src->dtype);
    const char *from = src->data;
    HostBuffer staged(src->contiguous ? 0 : nbytes);
    if (!src->contiguous) {
        if (!staged.data) return failed(c, PT_MEMORY_ERROR, "no host memory to stage a copy");
        pt_view dense = dense_like(src, staged.data, src->dtype, strides);
        int status = driver.host_copy(&dense, src);
        if (status) return status;
        from = staged.data;
    }
    const bool direct = dst->contiguous && dst->dtype == src->dtype;
    Scratch room(c, direct ? 0 : nbytes);
    if (!direct && !room.data) return PT_MEMORY_ERROR;
    char *to = direct ? dst->data : static_cast<char *>(room.data);
    int result = driver.set_device(dst->device_index);
    if (!result) result = driver.copy(to, from, (size_t)nbytes, c->stream);
    int status = status_of(result, "copy to the device", c->error);
    if (!status && !direct) {
        pt_view dense = dense_like(dst, to, src->dtype, strides);
        status = copy(c, dst, &dense);
    }
    if (!status && !in_order)
        status = status_of(driver.synchronize(c->stream), "copy to the device", c->error);
    return status;
}

int to_host(pt_call *c, const pt_view *dst, const pt_view *src, bool async) {
    const bool in_order = may_go_on(c, async, dst, src, false);
    if (!in_order && copy_waits(c)) return PT_RUNTIME_ERROR;
    int64_t strides[PT_MAX_DIM], host_strides[PT_MAX_DIM];
    const int64_t nbytes = dst->numel * item_size(dst->dtype);
    const bool direct = src->contiguous && dst->dtype == src->dtype;
    Scratch room(c, direct ? 0 : nbytes);
    if (!direct) {
        if (!room.data) return PT_MEMORY_ERROR;
        pt_view dense = dense_like(src, static_cast<char *>(room.data), dst->dtype, strides);
        int status = copy(c, &dense, src);
        if (status) return status;
    }
    HostBuffer staged(dst->contiguous ? 0 : nbytes);
    if (!staged.data) return failed(c, PT_MEMORY_ERROR, "no host memory to stage a copy");
    char *to = dst->contiguous ? dst->data : staged.data;
    int result = driver.set_device(src->device_index);
    if (!result)
        result = driver.copy(to, direct ? src->data : room.data, (size_t)nbytes, c->stream);
    if (!result && in_order) return PT_OK;
    if (!result) result = driver.synchronize(c->stream);
    int status = status_of(result, "copy to the host", c->error);
    if (!status) status = take_fault(src->device_index, c->error);
    if (!status && !dst->contiguous) {
        pt_view dense = dense_like(dst, staged.data, dst->dtype, host_strides);
        status = driver.host_copy(dst, &dense);
    }
    return status;
}

// The copy runs on the source's stream, after the work that both streams have been given, and
// before the next work of either stream.
int to_peer(pt_call *c, const pt_view *dst, const pt_view *src) {
    int64_t strides[PT_MAX_DIM], there[PT_MAX_DIM];
    const int to = dst->device_index, from = src->device_index;
    const int64_t nbytes = dst->numel * item_size(dst->dtype);
    const bool direct = src->contiguous && dst->dtype == src->dtype;
    pt_call d = call_on(dst);
    Scratch packed(c, direct ? 0 : nbytes), landed(&d, dst->contiguous ? 0 : nbytes);
    if ((!direct && !packed.data) || (!dst->contiguous && !landed.data))
        return failed(c, PT_MEMORY_ERROR, "no device memory to stage a copy between devices");
    if (!direct) {
        pt_view dense = dense_like(src, static_cast<char *>(packed.data), dst->dtype, strides);
        int status = copy(c, &dense, src);
        if (status) return status;
    }
    char *landing = dst->contiguous ? dst->data : static_cast<char *>(landed.data);
    int result = driver.wait(c->stream, from, d.stream, to);
    if (!result) result = driver.set_device(from);
    if (!result)
        result = driver.copy_peer(landing, to, direct ? src->data : packed.data, from,
                                  (size_t)nbytes, c->stream);
    if (!result) result = driver.wait(d.stream, to, c->stream, from);
    int status = status_of(result, "copy between devices", c->error);
    if (!status && !dst->contiguous) {
        pt_view dense = dense_like(dst, landing, dst->dtype, there);
        status = copy(&d, dst, &dense);
        if (status) std::memcpy(c->error, d.error, sizeof(c->error));
    }
    return status;
}

}  // namespace

int copy(pt_call *c, const pt_view *dst, const pt_view *src) {
    if (dst->numel == 0) return PT_OK;
    const pt_view *views[2] = {dst, src};
    Walk w = walk_of(views, 2);
    const int to = item_size(dst->dtype), from = item_size(src->dtype);
    const bool dense =
        w.ndim == 0 || (w.ndim == 1 && w.strides[0][0] == to && w.strides[1][0] == from);
    if (dense && dst->dtype == src->dtype) {
        if (dst->data == src->data) return PT_OK;
        int result = driver.set_device(dst->device_index);
        if (!result)
            result = driver.copy(dst->data, src->data, (size_t)(w.count() * to), c->stream);
        int status = status_of(result, "copy", c->error);
        return status ? status : wait_if_blocking(c, "copy");
    }
    const uint64_t kinds = copy_types(dst->dtype, src->dtype);
    int across;
    if (dst->dtype == src->dtype && is_transpose(w, to, across)) {
        int status = transpose(c, w, across, dst, src, kinds);
        if (status >= 0) return status;
    }
    CopyArgs a = {};
    a.dst = dst->data, a.src = src->data;
    if (dense) {
        a.n = w.count();
        a.aligned = (uintptr_t)a.dst % 16 == 0 && (uintptr_t)a.src % 16 == 0;
        const int64_t each = (int64_t)THREADS * PER_THREAD * 4;         // four elements at a time
        return launch(c, DENSE, kinds, Grid{(unsigned)ceil_div(a.n, each), 1, 1}, THREADS, a);
    }
    return by_parts(w, nullptr, [&](const Walk &part, const int64_t *at) {
        CopyArgs b = a;
        b.n = part.count();
        b.dst += at[0], b.src += at[1];
        char *const data[2] = {b.dst, const_cast<char *>(b.src)};
        const int items[2] = {to, from}, width = 16 / (to > from ? to : from);
        if (width > 1 && has_packs(part, width, data, items)) {
            const Walk packs = by_packs(part, width);
            b.n = packs.count();
            pack(packs, b.walk);
            const int64_t each = THREADS * PER_THREAD;
            return launch(c, PACKED, kinds, Grid{(unsigned)ceil_div(b.n, each), 1, 1}, THREADS, b);
        }
        pack(part, b.walk);
        const Grid grid{(unsigned)((b.n + THREADS * PER_THREAD - 1) / (THREADS * PER_THREAD)), 1,
                        1};
        return launch(c, STRIDED, kinds, grid, THREADS, b);
    });
}

static int copy_any(const pt_view *dst, const pt_view *src, bool async) {
    last_error[0] = 0;
    if (dst->numel == 0) return PT_OK;
    pt_call c = call_on(src->device ? src : dst);
    int status;
    if (!src->device) status = to_device(&c, dst, src, async);
    else if (!dst->device) status = to_host(&c, dst, src, async);
    else if (dst->device_index != src->device_index) status = to_peer(&c, dst, src);
    else status = copy(&c, dst, src);
    if (status) std::memcpy(last_error, c.error, sizeof(c.error));
    return status;
}

int copy_views(const pt_view *dst, const pt_view *src) { return copy_any(dst, src, false); }
int copy_views_async(const pt_view *dst, const pt_view *src) { return copy_any(dst, src, true); }

}  // namespace pt_cuda

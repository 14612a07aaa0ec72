// Copies and fills. What a copy reads from pageable host memory it reads at the call, from pinned
// memory when it runs; one that writes to pageable memory returns when it has run.
#include "standin.hpp"

#include <cstring>

namespace standin {

namespace {

enum Wait { ASYNC, SYNC };

unsigned device_bit(const Range &r) { return r.kind == DEVICE ? 1u << r.device : 0u; }

// rows of `width` bytes; a plain copy is one row.
struct Copy {
    uint64_t to, from, width, rows = 1, to_pitch = 0, from_pitch = 0;
    uint64_t extent(uint64_t pitch) const { return rows ? (rows - 1) * pitch + width : 0; }
};

void run_copy(const Copy &c, const char *from, uint64_t from_pitch) {
    for (uint64_t i = 0; i < c.rows; i++)
        memmove((char *)c.to + i * c.to_pitch, from + i * from_pitch, c.width);
}

void count(const Range &to, const Range &from) {
    Counters &n = state->counters;
    if (to.kind == DEVICE && from.kind == DEVICE)
        (to.device == from.device ? n.device_to_device : n.peer)++;
    else if (to.kind == DEVICE) n.host_to_device++;
    else if (from.kind == DEVICE) n.device_to_host++;
    else n.host_to_host++;
}

// `expected`: the kinds that the function's name says, PAGEABLE for any host memory, -1 for
// anything.
int copy(Call &call, const Copy &c, const StreamRef &stream, Wait wait, int to_kind,
         int from_kind) {
    if (!c.width || !c.rows) return OK;
    const Range to = range_of(c.to), from = range_of(c.from);
    if (to_kind == DEVICE && to.kind == PAGEABLE) return INVALID_VALUE;
    if (from_kind == DEVICE && from.kind == PAGEABLE) return INVALID_VALUE;
    if (to_kind == PAGEABLE && to.kind == DEVICE) return INVALID_VALUE;
    if (from_kind == PAGEABLE && from.kind == DEVICE) return INVALID_VALUE;
    if (to.kind == DEVICE && !holds(to, c.to, c.extent(c.to_pitch))) return INVALID_VALUE;
    if (from.kind == DEVICE && !holds(from, c.from, c.extent(c.from_pitch))) return INVALID_VALUE;
    count(to, from);
    Work work;
    work.devices = device_bit(to) | device_bit(from);
    size_t staged = 0;
    const bool pinned = from.kind == PINNED && holds(from, c.from, c.extent(c.from_pitch));
    if (from.kind == DEVICE || pinned) {
        work.run = [c] {
            run_copy(c, (const char *)c.from, c.from_pitch);
            return Failure();
        };
    } else {
        staged = c.width * c.rows;
        auto bytes = std::make_shared<std::vector<char>>(staged);
        for (uint64_t i = 0; i < c.rows; i++)
            memcpy(bytes->data() + i * c.width, (const char *)c.from + i * c.from_pitch, c.width);
        work.run = [c, bytes] {
            run_copy(c, bytes->data(), c.width);
            return Failure();
        };
    }
    enqueue(stream, std::move(work), staged);
    const bool on_device = to.kind == DEVICE && from.kind == DEVICE;
    const bool to_pageable = to.kind == PAGEABLE ||
                             (to.kind == PINNED && !holds(to, c.to, c.extent(c.to_pitch)));
    if ((wait == SYNC && !on_device) || to_pageable || (to.kind != DEVICE && from.kind != DEVICE))
        finish(stream, call.lock);
    else
        after_enqueue(call.lock);
    return stream->context->failed;
}

Copy plain(uint64_t to, uint64_t from, size_t bytes) {
    Copy c;
    c.to = to;
    c.from = from;
    c.width = bytes;
    return c;
}

}  // namespace

#define STREAM(handle) \
    StreamRef stream = stream_of(handle, call.context); \
    if (!stream) return INVALID_HANDLE

STANDIN_API int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
    STANDIN_CALL("cuMemcpyHtoD", CONTEXT);
    return copy(call, plain(to, (uint64_t)from, bytes), call.context->legacy, SYNC, DEVICE,
                PAGEABLE);
}
STANDIN_API int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
    STANDIN_CALL("cuMemcpyDtoH", CONTEXT);
    return copy(call, plain((uint64_t)to, from, bytes), call.context->legacy, SYNC, PAGEABLE,
                DEVICE);
}
STANDIN_API int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) {
    STANDIN_CALL("cuMemcpyDtoD", CONTEXT);
    return copy(call, plain(to, from, bytes), call.context->legacy, SYNC, DEVICE, DEVICE);
}
STANDIN_API int cuMemcpy(uint64_t to, uint64_t from, size_t bytes) {
    STANDIN_CALL("cuMemcpy", CONTEXT);
    return copy(call, plain(to, from, bytes), call.context->legacy, SYNC, -1, -1);
}
STANDIN_API int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *handle) {
    STANDIN_CALL("cuMemcpyHtoDAsync", CONTEXT);
    STREAM(handle);
    return copy(call, plain(to, (uint64_t)from, bytes), stream, ASYNC, DEVICE, PAGEABLE);
}
STANDIN_API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *handle) {
    STANDIN_CALL("cuMemcpyDtoHAsync", CONTEXT);
    STREAM(handle);
    return copy(call, plain((uint64_t)to, from, bytes), stream, ASYNC, PAGEABLE, DEVICE);
}
STANDIN_API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *handle) {
    STANDIN_CALL("cuMemcpyDtoDAsync", CONTEXT);
    STREAM(handle);
    return copy(call, plain(to, from, bytes), stream, ASYNC, DEVICE, DEVICE);
}
STANDIN_API int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *handle) {
    STANDIN_CALL("cuMemcpyAsync", CONTEXT);
    STREAM(handle);
    return copy(call, plain(to, from, bytes), stream, ASYNC, -1, -1);
}
STANDIN_API int cuMemcpyPeerAsync(uint64_t to, void *, uint64_t from, void *, size_t bytes,
                                  void *handle) {
    STANDIN_CALL("cuMemcpyPeerAsync", CONTEXT);
    STREAM(handle);
    return copy(call, plain(to, from, bytes), stream, ASYNC, DEVICE, DEVICE);
}
// In order with all work of the three contexts.
STANDIN_API int cuMemcpyPeer(uint64_t to, void *to_context, uint64_t from, void *from_context,
                             size_t bytes) {
    STANDIN_CALL("cuMemcpyPeer", CONTEXT);
    for (int i = 0; i < state->devices; i++) {
        Context *c = &state->device[i].context;
        if (c == call.context || c == to_context || c == from_context) finish(c, call.lock);
    }
    const StreamRef stream = call.context->legacy;
    const int status = copy(call, plain(to, from, bytes), stream, SYNC, DEVICE, DEVICE);
    finish(stream, call.lock);
    return status ? status : call.context->failed;
}

struct Copy2D {         // CUDA_MEMCPY2D
    size_t from_x, from_y;
    unsigned from_type;
    const void *from_host;
    uint64_t from_device;
    void *from_array;
    size_t from_pitch, to_x, to_y;
    unsigned to_type;
    void *to_host;
    uint64_t to_device;
    void *to_array;
    size_t to_pitch, width, height;
};

namespace {

int copy_2d(Call &call, const Copy2D *d, const StreamRef &stream, Wait wait) {
    if (!d || d->from_type == 3 || d->to_type == 3) return INVALID_VALUE;
    Copy c;
    c.from_pitch = d->from_pitch ? d->from_pitch : d->width;
    c.to_pitch = d->to_pitch ? d->to_pitch : d->width;
    if (c.from_pitch < d->width || c.to_pitch < d->width) return INVALID_VALUE;
    c.from = (d->from_type == 1 ? (uint64_t)d->from_host : d->from_device) +
             d->from_y * c.from_pitch + d->from_x;
    c.to = (d->to_type == 1 ? (uint64_t)d->to_host : d->to_device) + d->to_y * c.to_pitch + d->to_x;
    c.width = d->width;
    c.rows = d->height;
    const int kinds[] = {-1, PAGEABLE, DEVICE, -1, -1};
    return copy(call, c, stream, wait, d->to_type > 4 ? -1 : kinds[d->to_type],
                d->from_type > 4 ? -1 : kinds[d->from_type]);
}

}  // namespace

STANDIN_API int cuMemcpy2D_v2(const Copy2D *d) {
    STANDIN_CALL("cuMemcpy2D", CONTEXT);
    return copy_2d(call, d, call.context->legacy, SYNC);
}
STANDIN_API int cuMemcpy2DUnaligned_v2(const Copy2D *d) { return cuMemcpy2D_v2(d); }
STANDIN_API int cuMemcpy2DAsync_v2(const Copy2D *d, void *handle) {
    STANDIN_CALL("cuMemcpy2DAsync", CONTEXT);
    STREAM(handle);
    return copy_2d(call, d, stream, ASYNC);
}

// ------------------------------------------------------------------------------------------- fills

namespace {

template <class T> int fill(Call &call, uint64_t to, size_t pitch, T value, size_t width,
                            size_t rows, void *handle) {
    STREAM(handle);
    if (!width || !rows) return OK;
    const uint64_t bytes = (rows - 1) * pitch + width * sizeof(T);
    const Range r = range_of(to);
    if (r.kind == PAGEABLE || !holds(r, to, bytes) || to % sizeof(T)) return INVALID_VALUE;
    if (rows > 1 && (pitch < width * sizeof(T) || pitch % sizeof(T))) return INVALID_VALUE;
    state->counters.fills++;
    Work work;
    work.devices = device_bit(r);
    work.run = [=] {
        for (size_t i = 0; i < rows; i++) {
            T *p = (T *)(to + i * pitch);
            for (size_t k = 0; k < width; k++) p[k] = value;
        }
        return Failure();
    };
    enqueue(stream, std::move(work));
    after_enqueue(call.lock);
    return OK;
}

}  // namespace

#define FILL(bits, T)                                                                          \
    STANDIN_API int cuMemsetD##bits##_v2(uint64_t to, T value, size_t n) {                     \
        STANDIN_CALL("cuMemsetD" #bits, CONTEXT);                                              \
        return fill<T>(call, to, 0, value, n, 1, nullptr);                                     \
    }                                                                                          \
    STANDIN_API int cuMemsetD##bits##Async(uint64_t to, T value, size_t n, void *stream) {     \
        STANDIN_CALL("cuMemsetD" #bits "Async", CONTEXT);                                      \
        return fill<T>(call, to, 0, value, n, 1, stream);                                      \
    }                                                                                          \
    STANDIN_API int cuMemsetD2D##bits##_v2(uint64_t to, size_t pitch, T value, size_t width,   \
                                           size_t rows) {                                      \
        STANDIN_CALL("cuMemsetD2D" #bits, CONTEXT);                                            \
        return fill<T>(call, to, pitch, value, width, rows, nullptr);                          \
    }                                                                                          \
    STANDIN_API int cuMemsetD2D##bits##Async(uint64_t to, size_t pitch, T value, size_t width, \
                                             size_t rows, void *stream) {                      \
        STANDIN_CALL("cuMemsetD2D" #bits "Async", CONTEXT);                                    \
        return fill<T>(call, to, pitch, value, width, rows, stream);                           \
    }
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)

}  // namespace standin

// A stand-in device for the tests: its memory is host memory behind addresses that the host
// must not touch (shifted by a large constant), so a CPU path that takes one by mistake crashes.
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ptcore/backend.h"

// The layouts of PT_ABI 3 where a pointer has 8 bytes: kernels index arrays of these two, so their
// size never changes under one version; pt_call may grow at its end.
static_assert(PT_ABI == 3 && sizeof(void *) == 8, "another version has other numbers");
static_assert(
    sizeof(pt_view) == 48 && offsetof(pt_view, numel) == 24 && offsetof(pt_view, layout) == 40, "");
static_assert(sizeof(pt_param) == 40 && offsetof(pt_param, list) == 32, "");
static_assert(offsetof(pt_call, stream) == 56 && offsetof(pt_call, error) == 64 &&
                  sizeof(pt_call) >= 320,
              "");
static_assert(offsetof(pt_backend, allocate) == 8 && offsetof(pt_backend, error) == 56, "");

static const uintptr_t SHIFT = uintptr_t(1) << 62;
static std::atomic<long> live_bytes{0};
static std::atomic<long> transfers{0};

static char *host(const pt_view *v) {
    return v->device ? (char *)((uintptr_t)v->data - SHIFT) : v->data;
}

static void *stub_allocate(int64_t nbytes, int) {
    if (nbytes > (1 << 24)) return nullptr;
    live_bytes += nbytes;
    return (void *)((uintptr_t)std::malloc(nbytes) + SHIFT);
}

static void stub_release(void *data, int64_t nbytes, int) {
    live_bytes -= nbytes;
    std::free((void *)((uintptr_t)data - SHIFT));
}

static double load(const char *p, int dtype) {
    switch (dtype) {
    case PT_BOOL: return *(const uint8_t *)p;
    case PT_INT64: return (double)*(const int64_t *)p;
    case PT_FLOAT32: return *(const float *)p;
    default: return *(const double *)p;
    }
}

static void store(char *p, int dtype, double value) {
    switch (dtype) {
    case PT_BOOL: *(uint8_t *)p = value != 0; break;
    case PT_INT64: *(int64_t *)p = (int64_t)value; break;
    case PT_FLOAT32: *(float *)p = (float)value; break;
    default: *(double *)p = value;
    }
}

static int size_of(int dtype) { return dtype == PT_BOOL ? 1 : dtype == PT_FLOAT32 ? 4 : 8; }

static bool known(int dtype) {
    return dtype == PT_BOOL || dtype == PT_INT64 || dtype == PT_FLOAT32 || dtype == PT_FLOAT64;
}

// The place of the i-th element in row-major order.
static char *at(const pt_view *v, int64_t i) {
    int64_t offset = 0;
    for (int d = v->ndim - 1; d >= 0; d--) {
        offset += i % v->sizes[d] * v->strides[d];
        i /= v->sizes[d];
    }
    return host(v) + offset * size_of(v->dtype);
}

static int stub_copy(const pt_view *dst, const pt_view *src) {
    if (!known(dst->dtype) || !known(src->dtype)) return PT_TYPE_ERROR;
    if (dst->device != src->device) transfers++;
    for (int64_t i = 0; i < dst->numel; i++)
        store(at(dst, i), dst->dtype, load(at(src, i), src->dtype));
    return PT_OK;
}

static const char *failure = nullptr;

static int stub_elementwise(int op, const char *name, int, int, const pt_view *out,
                            const pt_view *in, int nin, const void *) {
    static std::atomic<const char *> names[4096];       // by the ops' numbers
    const char *before = nullptr;
    if (op < 0 || op >= 4096 ||
        (!names[op].compare_exchange_strong(before, name) && before != name)) {
        failure = "an op has another number or name than before";
        return PT_RUNTIME_ERROR;
    }
    for (int64_t i = 0; i < out->numel; i++) {
        double x = load(at(&in[0], i), in[0].dtype);
        double y = nin > 1 ? load(at(&in[1], i), in[1].dtype) : 0, r;
        if (!std::strcmp(name, "add")) r = x + y;
        else if (!std::strcmp(name, "sub")) r = x - y;
        else if (!std::strcmp(name, "mul")) r = x * y;
        else if (!std::strcmp(name, "div")) r = x / y;
        else if (!std::strcmp(name, "neg")) r = -x;
        else if (!std::strcmp(name, "exp")) r = std::exp(x);
        else if (!std::strcmp(name, "relu")) r = x > 0 ? x : 0;
        else if (!std::strcmp(name, "relu__d0")) r = y > 0 ? x : 0;   // the fused g * d relu
        else if (!std::strcmp(name, "gt")) r = x > y;
        else if (!std::strcmp(name, "assign")) r = y;
        else if (!std::strcmp(name, "sqrt")) {
            failure = "the stub was unplugged";
            return PT_RUNTIME_ERROR;
        } else
            return PT_TYPE_ERROR;
        store(at(out, i), out->dtype, r);
    }
    return PT_OK;
}

// It has the counted step of one formula alone, and says which it was asked for.
static std::string asked;

static int stub_counted(pt_call *) { return PT_RUNTIME_ERROR; }

static pt_kernel stub_kernel(const char *name) {
    asked += std::string(name) + " ";
    return std::strcmp(name, "step_counted:adam") ? nullptr : stub_counted;
}

static int the_stream;

static void *stub_stream(int index) { return index == 0 ? &the_stream : nullptr; }

static const char *stub_error() { return failure; }

extern "C" {
__attribute__((visibility("default"))) pt_backend stub_backend = {
    PT_ABI,      sizeof(pt_backend), stub_allocate, stub_release, stub_copy, stub_elementwise,
    nullptr,     stub_stream,        stub_error,    nullptr,      nullptr,   nullptr,
    nullptr,     nullptr,            nullptr,       nullptr,      nullptr,   stub_kernel};
__attribute__((visibility("default"))) pt_backend other_abi = {
    PT_ABI - 1, sizeof(pt_backend), stub_allocate, stub_release,
    stub_copy,  stub_elementwise,   nullptr,       nullptr,
    nullptr};
__attribute__((visibility("default"))) pt_backend too_small = {
    PT_ABI,           16,      stub_allocate, stub_release, stub_copy,
    stub_elementwise, nullptr, nullptr,       nullptr};
__attribute__((visibility("default"))) pt_backend no_copy = {
    PT_ABI,  sizeof(pt_backend), stub_allocate, stub_release,
    nullptr, stub_elementwise,   nullptr,       nullptr,
    nullptr};
__attribute__((visibility("default"))) const char *stub_asked() { return asked.c_str(); }
__attribute__((visibility("default"))) long stub_live_bytes() { return live_bytes; }
__attribute__((visibility("default"))) long stub_transfers() { return transfers; }

// Structured kernels: sum over all of the listed dims (here: everything), and 2-d mm.
__attribute__((visibility("default"))) int stub_sum_all(pt_call *c) {
    double s = 0;
    if (c->out[0].numel != 1) {
        std::strcpy(c->error, "the stub sums over everything only");
        return PT_RUNTIME_ERROR;
    }
    for (int64_t i = 0; i < c->in[0].numel; i++) s += load(at(&c->in[0], i), c->in[0].dtype);
    store(at(&c->out[0], 0), c->out[0].dtype, s);
    return PT_OK;
}

// Its output starts as a copy of the input (the row's `prefill`): adds 1 to the first element.
__attribute__((visibility("default"))) int stub_index_accumulate(pt_call *c) {
    store(at(&c->out[0], 0), c->out[0].dtype, load(at(&c->out[0], 0), c->out[0].dtype) + 1);
    return PT_OK;
}

// Leaves every call to the op's decomposition.
__attribute__((visibility("default"))) int stub_decline(pt_call *) { return PT_DECOMPOSE; }

__attribute__((visibility("default"))) int stub_mm(pt_call *c) {
    if (c->stream != &the_stream || c->in[0].device_index != 0) {
        std::strcpy(c->error, "not the stream of device 0");
        return PT_RUNTIME_ERROR;
    }
    const pt_view *a = &c->in[0], *b = &c->in[1];
    int64_t n = b->sizes[1], k = a->sizes[1];
    for (int64_t i = 0; i < c->out[0].numel; i++) {
        double s = 0;
        for (int64_t j = 0; j < k; j++)
            s += load(at(a, i / n * k + j), a->dtype) * load(at(b, j * n + i % n), b->dtype);
        store(at(&c->out[0], i), c->out[0].dtype, s);
    }
    return PT_OK;
}
}

// What the host half of a CUDA kernel calls: find a kernel, start it, take scratch memory. No CUDA
// header is needed: driver/runtime.pyx implements these functions over cuda.bindings.
//
// The host half of an op is a pt_kernel (ptcore/kernel.h): it reads the call's views, whose data
// are device addresses, fills the kernel's struct of arguments and launches on the call's stream.
// It runs with or without the GIL, never waits for the device and touches no Python object.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "fault.h"
#include "ptcore/backend.h"

namespace pt_cuda {

// A kernel of a program: kernels/<program>.cuh, compiled once for each tuple of types. Its address
// is its identity. `since`: the least capability of the devices that it is written for, such as 80
// if it needs instructions of sm_80. Where several kernels do the same for ever newer devices, a
// host half takes the last one that runs_on the call's device.
struct Kernel {
    const char *program, *name;
    int since = 0;
};
bool runs_on(const pt_call *c, const Kernel &kernel);

struct Grid {
    unsigned x = 1, y = 1, z = 1;
};

// Up to eight dtype codes, the first in the lowest byte: PT_T, PT_U, PT_V, ... of the program.
// Unused ones are 255.
inline uint64_t types(int t, int u = 255, int v = 255, int w = 255) {
    return (uint64_t)t | (uint64_t)u << 8 | (uint64_t)v << 16 | (uint64_t)w << 24 |
           0xffffffff00000000u;
}

// Starts a kernel; compiles and loads it before its first start. Returns PT_OK, or a status with a
// text in c->error. `args` are `nargs` bytes, copied before this returns. `shared` are bytes of
// dynamic shared memory.
int launch(pt_call *c, const Kernel &kernel, uint64_t types, Grid grid, unsigned threads,
           unsigned shared, const void *args, size_t nargs);
template <class A>
int launch(pt_call *c, const Kernel &kernel, uint64_t types, Grid grid, unsigned threads,
           const A &args, unsigned shared = 0) {
    static_assert(sizeof(A) <= 4000, "a kernel's arguments travel by value");
    return launch(c, kernel, types, grid, threads, shared, &args, sizeof(A));
}

inline bool is_integral(int dtype) { return pt_is(dtype, PT_KIND_INTEGRAL); }
inline bool is_floating(int dtype) { return pt_is(dtype, PT_KIND_FLOATING & ~PT_KIND_STORED); }
inline bool is_complex(int dtype) { return pt_is(dtype, PT_KIND_COMPLEX & ~PT_KIND_STORED); }

// The place for faults that the call's device finds; never NULL once the device is open.
::Fault *fault_of(const pt_call *c);

// Properties of the call's device.
int device_of(const pt_call *c);
int multiprocessors(const pt_call *c);
// Sets the fields `base`, `seed` and `offset` of a kernel's arguments: the call's place in the
// stream of random numbers.
void draw_from(const pt_call *c, const uint64_t *&base, uint64_t &seed, uint64_t &offset);
int shared_limit(const pt_call *c);         // bytes of dynamic shared memory that a block may have

// Memory of the call's device that the next kernels on its stream may use, until this object ends;
// if no memory is left, data is NULL and c->error has a text. Nothing waits: freed memory is reused
// in the stream's order.
class Scratch {
public:
    Scratch(pt_call *c, int64_t nbytes);
    ~Scratch();
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    void *data;
private:
    int64_t nbytes;
    int device;
};

// Fills with zero bytes in the stream's order.
int clear(pt_call *c, void *data, int64_t nbytes);

// dst = src with conversion of dtype, any strides, both on the call's device, in the stream's
// order.
int copy(pt_call *c, const pt_view *dst, const pt_view *src);

// A view of src's elements in row-major order: src itself, or a copy in scratch memory. ok() is
// false if there was no memory.
class Contiguous {
public:
    Contiguous(pt_call *c, const pt_view &src);
    bool ok() const { return good; }
    pt_view view;
private:
    Scratch scratch;
    int64_t strides[PT_MAX_DIM];
    bool good;
};

inline int failed(pt_call *c, int status, const char *text) {
    std::snprintf(c->error, sizeof(c->error), "%s", text);
    return status;
}

// A factor beside integers, which is one of them; a fraction is cut off.
inline int whole_factor(pt_call *c, const char *name, const pt_param &p, int64_t &to) {
    if (p.kind != PT_PARAM_INT && !(p.d > -9223372036854775808. && p.d < 9223372036854775808.)) {
        std::snprintf(c->error, sizeof c->error,
                      "%s: value %g cannot be converted to an integer without overflow", name, p.d);
        return PT_RUNTIME_ERROR;
    }
    to = p.kind == PT_PARAM_INT ? p.i : (int64_t)p.d;
    return PT_OK;
}
inline int bad(pt_call *c, const char *text) { return failed(c, PT_RUNTIME_ERROR, text); }
inline int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }

// A grid for n elements: blocks of `threads` threads, at most `per` blocks for each multiprocessor;
// kernels go on in steps of the grid.
inline Grid blocks_for(const pt_call *c, int64_t n, int threads, int per = 8) {
    int64_t blocks = ceil_div(n, threads), most = (int64_t)multiprocessors(c) * per;
    return Grid{(unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most), 1, 1};
}

}  // namespace pt_cuda

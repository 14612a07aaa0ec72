// Fourier transforms: cuFFT's plans over at most three dims, which have to be innermost in memory;
// other tensors are copied.
//
// A transform of more dims is made of several. cuFFT neither divides nor conjugates: fft_scale does
// both. A plan serves one thread at a time; its work area is taken for the call, in the stream's
// order.
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "cublas.hpp"
#include "cufft.hpp"
#include "driver.hpp"
#include "families.hpp"
#include "fft_args.h"
#include "libraries.hpp"
#include "view.hpp"

namespace pt_cuda {

Fft fft;

namespace {

enum { RANK = 3, THREADS = 256 };
enum { DEFAULT_PLANS = 1023 };
const Kernel SCALE = {"fft", "fft_scale"};

// -- plans ----------------------------------------------------------------------------------------

// Everything that a plan depends on, as integers without padding, so that bytes compare.
struct Key {
    int64_t in_type, out_type, rank, n[RANK], batch;
    bool operator<(const Key &o) const { return std::memcmp(this, &o, sizeof(Key)) < 0; }
};

struct Plan {
    ~Plan() {
        if (made) fft.destroy(handle);
    }
    std::mutex lock;                            // guards the handle's settings
    bool made = false;
    int handle = 0, status = 0;
    size_t work = 0;
    uint64_t used = 0;
};

struct Plans {
    std::map<Key, std::shared_ptr<Plan>> of;
    int64_t most = DEFAULT_PLANS;
};
std::mutex lock;    // guards `plans` and `calls`; never destroyed, as threads may outlive main
Plans *plans = new Plans[MAX_DEVICES];
uint64_t calls;

void make_room(Plans &p, int64_t most) {
    while ((int64_t)p.of.size() > most) {
        auto oldest = p.of.begin();
        for (auto i = p.of.begin(); i != p.of.end(); ++i)
            if (i->second->used < oldest->second->used) oldest = i;
        p.of.erase(oldest);
    }
}

int make(Plan &plan, const Key &key) {
    int status = fft.create(&plan.handle);
    if (status) return status;
    plan.made = true;
    long long n[RANK];
    for (int i = 0; i < key.rank; i++) n[i] = key.n[i];
    status = fft.set_auto_allocation(plan.handle, 0);
    // Without embedding the numbers are dense, and cuFFT ignores strides and distances.
    return status
               ? status
               : fft.make_plan(plan.handle, (int)key.rank, n, nullptr, 1, 1, (int)key.in_type,
                               nullptr, 1, 1, (int)key.out_type, key.batch, &plan.work,
                               (int)(key.in_type == R_32F || key.in_type == R_64F ? key.out_type
                                                                                  : key.in_type));
}

// NULL under a capture where the plan would have to be made: that allocates memory and may wait.
std::shared_ptr<Plan> plan_of(int device, const Key &key, bool capturing) {
    std::lock_guard<std::mutex> guard(lock);
    Plans &p = plans[device];
    auto found = p.of.find(key);
    std::shared_ptr<Plan> plan = found == p.of.end() ? nullptr : found->second;
    if (!plan) {
        if (capturing) return nullptr;
        plan = std::make_shared<Plan>();
        plan->status = make(*plan, key);
        if (!plan->status && p.most > 0) {      // another call may succeed where this failed
            make_room(p, p.most - 1);
            p.of[key] = plan;
        }
    }
    plan->used = ++calls;
    return plan;
}

int fft_failed(pt_call *c, int status) {
    static const char *const names[] = {"success",
                                        "invalid plan",
                                        "allocation failed",
                                        "invalid type",
                                        "invalid value",
                                        "internal error",
                                        "execution failed",
                                        "setup failed",
                                        "invalid size",
                                        "unaligned data",
                                        "",
                                        "invalid device",
                                        "",
                                        "no workspace",
                                        "not implemented",
                                        "",
                                        "not supported",
                                        "missing dependency"};
    std::snprintf(c->error, sizeof(c->error), "cuFFT: %s (status %d)",
                  status > 0 && status < 18 ? names[status] : "failed", status);
    return PT_RUNTIME_ERROR;
}

int execute(pt_call *c, const Key &key, void *in, void *out, bool forward) {
    const int device = device_of(c);
    if (!fft.destroy) {                         // the last pointer of the table
        const int status = load_library(LIBRARY_FFT, c->error);
        if (status) return status;
    }
    const int result = driver.set_device(device);
    if (result) return status_of(result, "fft", c->error);
    const std::shared_ptr<Plan> plan = plan_of(device, key, captures(c));
    if (!plan)
        return failed(c, PT_RUNTIME_ERROR,
                      "cuFFT makes no plan while a graph is captured; run a transform of these "
                      "sizes and dtype once before the capture");
    if (plan->status) return fft_failed(c, plan->status);
    Scratch work(c, (int64_t)plan->work);
    if (plan->work && !work.data) return PT_MEMORY_ERROR;
    std::lock_guard<std::mutex> guard(plan->lock);
    int status = fft.set_stream(plan->handle, c->stream);
    if (!status && plan->work) status = fft.set_work_area(plan->handle, work.data);
    if (!status) status = fft.execute(plan->handle, in, out, forward ? FFT_FORWARD : FFT_INVERSE);
    return status ? fft_failed(c, status) : wait_if_blocking(c, "fft");
}

// -- where numbers lie ----------------------------------------------------------------------------

// An order of dims in which those of a transform are innermost, as they are listed.
struct Order {
    Order(int ndim, const int64_t *dims, int count) : ndim(ndim), count(count) {
        bool listed[PT_MAX_DIM] = {};
        for (int i = 0; i < count; i++) listed[dims[i]] = true, at[ndim - count + i] = (int)dims[i];
        for (int d = 0, to = 0; d < ndim; d++)
            if (!listed[d]) at[to++] = d;
    }
    // A dense view of the same sizes in this order, at `data`.
    View dense(const pt_view &sizes, void *data, int dtype) const {
        View r(sizes);
        int64_t step = 1;
        for (int i = ndim - 1; i >= 0; i--) r.strides[at[i]] = step, step *= r.sizes[at[i]];
        r.v.data = static_cast<char *>(data), r.v.dtype = (uint8_t)dtype;
        r.settle();
        return r;
    }
    // Whether a view is dense in this order, at an address that cuFFT accepts for complex numbers.
    bool is(const pt_view &v, int complex_dtype) const {
        int64_t step = 1;
        for (int i = ndim - 1; i >= 0; i--) {
            if (v.sizes[at[i]] != 1 && v.strides[at[i]] != step) return false;
            step *= v.sizes[at[i]];
        }
        return reinterpret_cast<uintptr_t>(v.data) % (uintptr_t)item_size(complex_dtype) == 0;
    }
    int ndim, count, at[PT_MAX_DIM];
};

// A view's elements in an order, as numbers of a dtype: in place if possible, else in memory of its
// own (`apart`: always).
struct Arranged {
    Arranged(pt_call *c, const Order &order, const pt_view &v, int dtype, int complex_dtype,
             bool apart = false)
        : there(!apart && v.dtype == dtype && order.is(v, complex_dtype)),
          room(there ? nullptr : new Scratch(c, v.numel * item_size(dtype))),
          view(order.dense(v, there ? v.data : room->data, dtype)) {}
    bool ok() const { return there || room->data; }
    int load(pt_call *c, const pt_view &v) const {
        return there ? (int)PT_OK : ok() ? copy(c, &view.v, &v) : (int)PT_MEMORY_ERROR;
    }
    int store(pt_call *c, const pt_view &v) const {
        return there ? (int)PT_OK : copy(c, &v, &view.v);
    }

    const bool there;
    std::unique_ptr<Scratch> room;
    View view;
};

int real_of(int dtype) { return dtype == PT_COMPLEX128 ? PT_FLOAT64 : PT_FLOAT32; }
int type_of(int dtype) {
    return dtype == PT_FLOAT32     ? R_32F
           : dtype == PT_FLOAT64   ? R_64F
           : dtype == PT_COMPLEX64 ? C_32F
                                   : C_64F;
}

// `sizes` are the sizes of the transform: those of the real numbers, if there are any.
Key key_of(int in_dtype, int out_dtype, const Order &order, const pt_view &sizes) {
    Key key = {type_of(in_dtype), type_of(out_dtype), order.count, {0, 0, 0}, 1};
    for (int i = 0; i < order.ndim; i++) {
        const int64_t n = sizes.sizes[order.at[i]];
        if (i < order.ndim - order.count) key.batch *= n;
        else key.n[i - (order.ndim - order.count)] = n;
    }
    return key;
}

int scale(pt_call *c, const pt_view &v, double factor, bool conjugate) {
    if (factor == 1 && !conjugate) return PT_OK;
    const int pair = is_complex(v.dtype) ? 2 : 1, dtype = pair == 2 ? real_of(v.dtype) : v.dtype;
    const FftScaleArgs a = {v.data, v.numel * pair, factor, conjugate};
    return launch(c, SCALE, types(dtype),
                  blocks_for(c, a.n / (16 / item_size(dtype)) + 1, THREADS, 32), THREADS, a);
}

double factor_of(int64_t normalization, double n) {
    return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(n) : 1 / n;
}

// -- transforms -----------------------------------------------------------------------------------

// Transforms `from`, complex or real, along dims into `to`, times a factor. The memory in `own`, if
// it is given, may be overwritten.
int transform(pt_call *c, const pt_view &from, const pt_param &dims, int count, bool forward,
              const pt_view &to, double factor, bool conjugate,
              std::unique_ptr<Scratch> own = nullptr) {
    const int dtype = to.dtype;
    const int64_t nbytes = to.numel * item_size(dtype);
    View source(from);
    for (int left = count; left > 0;) {
        const int group = left < RANK ? left : RANK;
        left -= group;
        const Order order(to.ndim, dims.list + left, group);
        Arranged arranged(c, order, source.v, dtype, dtype);
        if (!arranged.there) {
            const int status = arranged.load(c, source.v);
            if (status) return status;
            std::memcpy(source.strides, arranged.view.strides, sizeof(source.strides));
            source.v.data = arranged.view.v.data, source.v.dtype = (uint8_t)dtype;
            source.settle();
            own = std::move(arranged.room);
        }
        void *target = source.v.data;
        if (!left && order.is(to, dtype)) target = to.data;
        else if (!own) {
            own.reset(new Scratch(c, nbytes));
            if (!own->data) return PT_MEMORY_ERROR;
            target = own->data;
        }
        const int status =
            execute(c, key_of(dtype, dtype, order, to), source.v.data, target, forward);
        if (status) return status;
        source.v.data = static_cast<char *>(target);
    }
    const int status = scale(c, source.v, factor, conjugate);
    return status || source.v.data == to.data ? status : copy(c, &to, &source.v);
}

double points(const pt_param &dims, const pt_view &v) {
    double n = 1;
    for (int i = 0; i < dims.count; i++) n *= (double)v.sizes[dims.list[i]];
    return n;
}

int c2c(pt_call *c) {
    const pt_view &x = c->in[0], &out = c->out[0];
    const pt_param &dims = c->params[0];
    if (out.numel == 0) return PT_OK;
    const bool forward = c->params[c->nparams - 1].i != 0;
    return transform(c, x, dims, dims.count, forward, out,
                     factor_of(c->params[1].i, points(dims, x)), false);
}

// Half a spectrum by transforms of real numbers (the inverse is the conjugate of the forward); a
// whole spectrum by transforms of complex numbers.
int r2c(pt_call *c) {
    const pt_view &x = c->in[0], &out = c->out[0];
    const pt_param &dims = c->params[0];
    if (!c->params[2].i) return c2c(c);
    if (out.numel == 0) return PT_OK;
    const bool conjugate = !c->params[3].i;
    const double factor = factor_of(c->params[1].i, points(dims, x));
    const int group = dims.count < RANK ? dims.count : RANK, left = dims.count - group,
              dtype = out.dtype;
    const Order order(x.ndim, dims.list + left, group);
    const Arranged from(c, order, x, x.dtype, dtype);
    Arranged spectrum(c, order, out, dtype, dtype, left > 0);
    if (!spectrum.ok()) return PT_MEMORY_ERROR;
    int status = from.load(c, x);
    if (!status)
        status = execute(c, key_of(x.dtype, dtype, order, x), from.view.v.data,
                         spectrum.view.v.data, true);
    if (status) return status;
    if (left)
        return transform(c, spectrum.view.v, dims, left, true, out, factor, conjugate,
                         std::move(spectrum.room));
    status = scale(c, spectrum.view.v, factor, conjugate);
    return status ? status : spectrum.store(c, out);
}

// Only the last dim is transformed to real numbers: if the input is not half of a
// conjugate-symmetric spectrum, cuFFT's transform of several dims differs from transforms of one
// dim after the other.
int c2r(pt_call *c) {
    const pt_view &x = c->in[0], &out = c->out[0];
    const pt_param &dims = c->params[0];
    if (out.numel == 0) return PT_OK;
    const int others = dims.count - 1, dtype = x.dtype;
    const bool forward = c->params[3].i != 0;
    const int64_t last = dims.list[others];
    if (x.sizes[last] != out.sizes[last] / 2 + 1)
        return failed(c, PT_RUNTIME_ERROR, "the half of a spectrum has another size");
    const Order order(x.ndim, dims.list + others, 1);
    const Arranged half(c, order, x, dtype, dtype, true);               // cuFFT overwrites it
    const Arranged real(c, order, out, out.dtype, dtype);
    if (!half.ok() || !real.ok()) return PT_MEMORY_ERROR;
    const pt_view &spectrum = half.view.v;
    int status =
        others ? transform(c, x, dims, others, forward, spectrum, 1, false) : half.load(c, x);
    if (!status) status = scale(c, spectrum, 1, forward);
    if (!status)
        status = execute(c, key_of(dtype, out.dtype, order, out), spectrum.data, real.view.v.data,
                         false);
    if (!status)
        status = scale(c, real.view.v, factor_of(c->params[1].i, points(dims, out)), false);
    return status ? status : real.store(c, out);
}

}  // namespace

int64_t fft_plans(int device) {
    std::lock_guard<std::mutex> guard(lock);
    return (int64_t)plans[device].of.size();
}
int64_t fft_plan_limit(int device) {
    std::lock_guard<std::mutex> guard(lock);
    return plans[device].most;
}
void set_fft_plan_limit(int device, int64_t most) {
    std::lock_guard<std::mutex> guard(lock);
    plans[device].most = most;
    make_room(plans[device], most);
}
void forget_fft_plans(int device) {
    std::lock_guard<std::mutex> guard(lock);
    plans[device].of.clear();
}

const pt_kernel_entry fft_kernels[] = {
    {"pocketfft:c2c", c2c}, {"pocketfft:r2c", r2c}, {"pocketfft:c2r", c2r}, {nullptr, nullptr}};

}  // namespace pt_cuda

// Handles and workspaces of cuBLAS, and the products with a bias that cuBLASLt computes in one
// kernel.
//
// Work of one stream runs in order, so all handles that are set to it share one workspace; the
// kernels of one call are enqueued together (blas_turn).
#include "cublas.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "state.hpp"
#include "handles.hpp"
#include "libraries.hpp"

namespace pt_cuda {

Blas blas;
BlasLt blas_lt;
BlasSettings blas_settings;
int (*load_library)(int library, char *error);

namespace {

enum { ARCH_MISMATCH = 8, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { EPILOGUE_BIAS = 4, REDUCTION_COMPUTE_TYPE = 2 };
enum {
    OPERATION_TRANSA = 3,
    OPERATION_TRANSB = 4,
    OPERATION_EPILOGUE = 7,
    OPERATION_BIAS_POINTER = 8
};
enum { PREFERENCE_WORKSPACE = 1, PREFERENCE_REDUCTIONS = 3, PREFERENCE_ALIGNMENT_A = 5 };

struct Workspace {
    void *data;
    int64_t nbytes;
};
struct Owned {
    int device;
    void *stream;
    uint64_t pool;                              // of the capture that uses it; 0: no capture
    Workspace memory;
};
std::mutex lock;    // guards what follows; never destroyed, as threads may outlive main
std::vector<Owned> &workspaces = *new std::vector<Owned>;

// NVIDIA's advice: 32 MiB from Hopper on, 4 MiB before. Without memory for it the product runs
// without a workspace. A graph has a workspace of its own in the graph's pool; any other is in the
// common pool, whatever pool the thread has chosen, because the workspace stays.
Workspace workspace_of(const pt_call *c) {
    const int device = c->out[0].device_index;
    const uint64_t pool = captures(c) ? driver.devices[device].capture_pool : 0;
    std::lock_guard<std::mutex> guard(lock);
    for (const Owned &w : workspaces)
        if (w.device == device && w.stream == c->stream && w.pool == pool) return w.memory;
    int64_t nbytes = blas_settings.workspace;
    if (nbytes < 0) nbytes = (int64_t)(driver.devices[device].capability >= 90 ? 32 : 4) << 20;
    uint64_t &chosen = thread_state().pools[device], before = chosen;
    chosen = 0;
    void *data = nbytes ? driver.allocate(nbytes, device) : nullptr;
    chosen = before;
    if (!data) return {nullptr, 0};
    workspaces.push_back({device, c->stream, pool, {data, nbytes}});
    return workspaces.back().memory;
}

}  // namespace

void forget_workspaces(int device, uint64_t pool) {
    std::lock_guard<std::mutex> guard(lock);
    for (size_t i = workspaces.size(); i-- > 0;)
        if (workspaces[i].device == device && workspaces[i].pool == pool) {
            driver.release(workspaces[i].memory.data, workspaces[i].memory.nbytes, device);
            workspaces.erase(workspaces.begin() + (long)i);
        }
}

namespace {

struct Handle {
    void *handle = nullptr, *stream = nullptr, *workspace = nullptr;
    bool is_set = true;                 // the stream and the workspace are those of the handle
    int math_mode = 0;
};
thread_local Handles<Handle> handles;

// This thread's handle for the call's device and stream, with the stream's workspace.
int handle_of(pt_call *c, Handle **found, Workspace *memory) {
    const int device = c->out[0].device_index;
    if (!blas.gemm_batched) {                           // the last pointer of the table
        int status = load_library(LIBRARY_BLAS, c->error);
        if (status) return status;
    }
    int status = 0, result = driver.set_device(device);
    if (result) return status_of(result, "matmul", c->error);
    Handle &h = handles.at(device);
    if (!h.handle) {
        Relaxed mode;
        status = blas.create(&h.handle);
    }
    *memory = workspace_of(c);
    // cuBLAS drops the workspace when a stream is set.
    if (!status && (!h.is_set || h.stream != c->stream || h.workspace != memory->data)) {
        status = blas.set_stream(h.handle, c->stream);
        if (!status && memory->data)
            status = blas.set_workspace(h.handle, memory->data, (size_t)memory->nbytes);
        // After an error both are set again by the next call.
        h.stream = c->stream, h.workspace = memory->data, h.is_set = !status;
    }
    *found = &h;
    return status ? blas_failed(c, status) : PT_OK;
}

// -- cuBLASLt -------------------------------------------------------------------------------------

int alignment_of(const void *p) {
    return (int)std::min((uintptr_t)256, (uintptr_t)p & (~(uintptr_t)p + 1));
}

// Everything that the choice of an algorithm depends on, as integers, so that bytes compare.
struct Key {
    int device, type, compute, turn_a, turn_b, m, n, k, lead_a, lead_b, lead_out, reduced;
    int alignment[3], bias_alignment;
    int64_t workspace;
};
static_assert(sizeof(Key) == 18 * 4, "no padding");

struct Plan {
    explicit Plan(const Key &k) : key(k) {}
    ~Plan() {
        if (operation) blas_lt.operation_destroy(operation);
        for (void *layout : layouts)
            if (layout) blas_lt.layout_destroy(layout);
    }
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;
    Key key;
    void *operation = nullptr, *layouts[3] = {};        // a, b, out
    uint64_t algorithm[8] = {};
    int status = 0;                                     // the library's status for this plan
};

// A thread's plans: a full slot is overwritten, so that changing shapes do not add up.
struct Plans {
    std::unique_ptr<Plan> slots[256];
};
thread_local std::unique_ptr<Plans> plans;

std::unique_ptr<Plan> &slot_of(const Key &key) {
    uint64_t h = 0xcbf29ce484222325u;
    const int *words = reinterpret_cast<const int *>(&key);
    for (size_t i = 0; i < sizeof(Key) / sizeof(int); i++)
        h = (h ^ (unsigned)words[i]) * 0x9E3779B97F4A7C15u;
    if (!plans) plans.reset(new Plans);
    return plans->slots[h >> 56];
}

// Makes the descriptors and takes the first algorithm of the library's heuristic.
int make(Plan &plan, void *handle, const void *bias) {
    struct Result {                                     // cublasLtMatmulHeuristicResult_t
        uint64_t algorithm[8];
        size_t workspace;
        int state;
        float waves;
        int reserved[4];
    } result = {};
    const Key &k = plan.key;
    const int epilogue = EPILOGUE_BIAS, reductions = REDUCTION_COMPUTE_TYPE;
    int found = 0, status = blas_lt.operation_create(&plan.operation, k.compute,
                                                     k.compute == COMPUTE_64F ? R_64F : R_32F);
    auto set = [&](int attribute, const void *value, size_t nbytes) {
        if (!status) status = blas_lt.operation_set(plan.operation, attribute, value, nbytes);
    };
    set(OPERATION_TRANSA, &k.turn_a, 4);
    set(OPERATION_TRANSB, &k.turn_b, 4);
    set(OPERATION_EPILOGUE, &epilogue, 4);
    set(OPERATION_BIAS_POINTER, &bias, sizeof(bias));   // the heuristic looks at its alignment
    auto layout = [&](int i, int rows, int columns, int leading) {
        if (!status)
            status = blas_lt.layout_create(&plan.layouts[i], k.type, (uint64_t)rows,
                                           (uint64_t)columns, leading);
    };
    layout(0, k.turn_a ? k.k : k.m, k.turn_a ? k.m : k.k, k.lead_a);
    layout(1, k.turn_b ? k.n : k.k, k.turn_b ? k.k : k.n, k.lead_b);
    layout(2, k.m, k.n, k.lead_out);
    void *preference = nullptr;
    if (!status) status = blas_lt.preference_create(&preference);
    auto prefer = [&](int attribute, const void *value, size_t nbytes) {
        if (!status) status = blas_lt.preference_set(preference, attribute, value, nbytes);
    };
    prefer(PREFERENCE_WORKSPACE, &k.workspace, 8);
    if (!k.reduced) prefer(PREFERENCE_REDUCTIONS, &reductions, 4);
    for (int i = 0; i < 4; i++) prefer(PREFERENCE_ALIGNMENT_A + i, &k.alignment[i < 2 ? i : 2], 4);
    if (!status)
        status =
            blas_lt.heuristic(handle, plan.operation, plan.layouts[0], plan.layouts[1],
                              plan.layouts[2], plan.layouts[2], preference, 1, &result, &found);
    if (!status) status = found ? result.state : NOT_SUPPORTED;
    if (preference) blas_lt.preference_destroy(preference);
    std::memcpy(plan.algorithm, result.algorithm, sizeof(plan.algorithm));
    return status;
}

}  // namespace

int blas_failed(pt_call *c, int status) {
    static const char *const names[] = {"success",
                                        "not initialized",
                                        "",
                                        "allocation failed",
                                        "",
                                        "",
                                        "",
                                        "invalid value",
                                        "architecture mismatch",
                                        "",
                                        "",
                                        "mapping error",
                                        "",
                                        "execution failed",
                                        "internal error",
                                        "not supported"};
    std::snprintf(c->error, sizeof(c->error), "cuBLAS: %s (status %d)",
                  status > 0 && status < 16 ? names[status] : "failed", status);
    return PT_RUNTIME_ERROR;
}

std::mutex &blas_turn(const pt_call *c) {
    static std::mutex *const turns =
        new std::mutex[MAX_DEVICES];    // never destroyed, as the lock above
    return turns[device_of(c)];
}

int blas_handle(pt_call *c, int math_mode, void **handle) {
    Handle *h;
    Workspace memory;
    int status = handle_of(c, &h, &memory);
    if (status) return status;
    if (h->math_mode != math_mode) {
        status = blas.set_math_mode(h->handle, math_mode);
        if (!status) h->math_mode = math_mode;
    }
    *handle = h->handle;
    return status ? blas_failed(c, status) : PT_OK;
}

int product_with_bias(pt_call *c, const BiasProduct &p) {
    Handle *h;
    Workspace memory;
    int status = handle_of(c, &h, &memory);
    if (!status && !blas_lt.matmul) status = load_library(LIBRARY_BLAS_LT, c->error);
    if (status) return status;
    const Key key = {c->out[0].device_index,
                     p.type,
                     p.compute,
                     p.turn_a,
                     p.turn_b,
                     p.m,
                     p.n,
                     p.k,
                     p.lead_a,
                     p.lead_b,
                     p.lead_out,
                     p.reduced,
                     {alignment_of(p.a), alignment_of(p.b), alignment_of(p.out)},
                     alignment_of(p.bias),
                     memory.nbytes};
    std::unique_ptr<Plan> &plan = slot_of(key);
    // A handle of cuBLAS is also a handle of cuBLASLt.
    if (!plan || std::memcmp(&plan->key, &key, sizeof(key))) {
        plan.reset(new Plan(key));
        plan->status = make(*plan, h->handle, p.bias);
    } else if (!plan->status) {
        plan->status =
            blas_lt.operation_set(plan->operation, OPERATION_BIAS_POINTER, &p.bias, sizeof(p.bias));
    }
    std::lock_guard<std::mutex> turn(blas_turn(c));
    if (!plan->status)
        plan->status = blas_lt.matmul(h->handle, plan->operation, p.alpha, p.a, plan->layouts[0],
                                      p.b, plan->layouts[1], p.zero, p.out, plan->layouts[2], p.out,
                                      plan->layouts[2], plan->algorithm, memory.data,
                                      (size_t)memory.nbytes, c->stream);
    status = plan->status;
    if (!status) return PT_OK;
    if (status == NOT_SUPPORTED || status == INVALID_VALUE || status == ARCH_MISMATCH)
        return BLAS_DECLINES;
    plan.reset();                                       // another call may go well
    return blas_failed(c, status);
}

}  // namespace pt_cuda

// Initialisation, devices, primary contexts, names of errors, the look-up of functions, and what
// only tests call.
//
// Read at the first cuInit: PTCORE_STANDIN_DEVICES (2), PTCORE_STANDIN_MEMORY (bytes per device, 4
// GiB), PTCORE_STANDIN_SEED (0), PTCORE_STANDIN_STREAMS (lazy | eager), PTCORE_STANDIN_PROTECT (1),
// PTCORE_STANDIN_JUNK (the byte that fills new memory, 255), PTCORE_STANDIN_TIME (CPU seconds a
// kernel may run, 60). Read when asked: PTCORE_STANDIN_VERSION (of the driver, 13000),
// PTCORE_STANDIN_CAPABILITY (of the devices, 90).
#include "standin.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>

namespace standin {

State *const state = new State;
thread_local ContextStack current;
thread_local bool in_host_call;

namespace {

long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtol(text, nullptr, 0) : otherwise;
}

void initialise() {
    State &s = *state;
    if (s.initialised) return;
    s.devices =
        (int)std::max(0L, std::min((long)MOST_DEVICES, setting("PTCORE_STANDIN_DEVICES", 2)));
    const char *streams = getenv("PTCORE_STANDIN_STREAMS");
    s.lazy = !(streams && !strcmp(streams, "eager"));
    s.protect = setting("PTCORE_STANDIN_PROTECT", 1) != 0;
    junk = (unsigned char)setting("PTCORE_STANDIN_JUNK", 0xff);
    set_time_limit((double)setting("PTCORE_STANDIN_TIME", 60));
    const uint64_t seed = (uint64_t)setting("PTCORE_STANDIN_SEED", 0);
    s.rng.seed(seed);
    seed_schedules(seed);
    for (int i = 0; i < s.devices; i++) {
        s.device[i].context.device = i;
        s.device[i].total = (uint64_t)setting("PTCORE_STANDIN_MEMORY", (long)1 << 32);
        create_legacy(&s.device[i].context);
    }
    pthread_atfork(nullptr, nullptr, [] {
        state->forked = true;
        new (&state->lock) std::mutex;
    });
    s.initialised = true;
}

}  // namespace

void report(const std::string &text) {
    state->last_failure = text;
    fprintf(stderr, "stand-in driver: %s\n", text.c_str());
    fflush(stderr);
}

void fail(Context *context, const Failure &failure) {
    if (!context->failed) context->failed = failure.code;
    report(failure.text);
}

Call::Call(const char *name, Needs needs) : status(OK), lock(state->lock) {
    if (state->any_fault) {
        auto found = state->faults.find(name);
        if (found != state->faults.end() && found->second.first-- == 0) {
            status = found->second.second;
            state->faults.erase(found);
            state->any_fault = !state->faults.empty();
            return;
        }
    }
    if (in_host_call) {                                 // a host function may call nothing of CUDA
        status = NOT_PERMITTED;
        return;
    }
    if (needs == NOTHING) return;
    if (!state->initialised || state->forked) {         // a forked child cannot use CUDA
        status = NOT_INITIALIZED;
        return;
    }
    if (needs == INITIALISED) return;
    context = current.empty() ? nullptr : current.back();
    if (!context || !context->references) status = INVALID_CONTEXT;
    else status = context->failed;
}

// ----------------------------------------------------------------------------------------- devices

STANDIN_API int cuInit(unsigned flags) {
    STANDIN_CALL("cuInit", NOTHING);
    if (flags) return INVALID_VALUE;
    if (state->forked) return NOT_INITIALIZED;
    initialise();
    return state->devices ? OK : NO_DEVICE;
}

STANDIN_API int cuDriverGetVersion(int *version) {
    STANDIN_CALL("cuDriverGetVersion", NOTHING);
    if (!version) return INVALID_VALUE;
    *version = (int)setting("PTCORE_STANDIN_VERSION", 13000);
    return OK;
}

#define DEVICE_CALL(name, index) \
    STANDIN_CALL(name, INITIALISED); \
    if (index < 0 || index >= state->devices) return INVALID_DEVICE

STANDIN_API int cuDeviceGetCount(int *n) {
    STANDIN_CALL("cuDeviceGetCount", INITIALISED);
    *n = state->devices;
    return OK;
}
STANDIN_API int cuDeviceGet(int *device, int index) {
    DEVICE_CALL("cuDeviceGet", index);
    *device = index;
    return OK;
}
STANDIN_API int cuDeviceGetName(char *name, int n, int index) {
    DEVICE_CALL("cuDeviceGetName", index);
    if (n <= 0) return INVALID_VALUE;
    snprintf(name, (size_t)n, "Stand-in device %d", index);
    return OK;
}
STANDIN_API int cuDeviceTotalMem_v2(size_t *bytes, int index) {
    DEVICE_CALL("cuDeviceTotalMem", index);
    *bytes = state->device[index].total;
    return OK;
}
STANDIN_API int cuDeviceGetUuid_v2(unsigned char *uuid, int index) {
    DEVICE_CALL("cuDeviceGetUuid", index);
    for (int i = 0; i < 16; i++) uuid[i] = (unsigned char)(i * 17 + index);
    return OK;
}
STANDIN_API int cuDeviceGetPCIBusId(char *text, int n, int index) {
    DEVICE_CALL("cuDeviceGetPCIBusId", index);
    snprintf(text, (size_t)n, "0000:%02X:00.0", index + 1);
    return OK;
}
STANDIN_API int cuDeviceGetByPCIBusId(int *device, const char *text) {
    STANDIN_CALL("cuDeviceGetByPCIBusId", INITIALISED);
    unsigned domain, bus = 0;
    if (sscanf(text, "%x:%x", &domain, &bus) != 2 || bus < 1 || (int)bus > state->devices)
        return INVALID_DEVICE;
    *device = (int)bus - 1;
    return OK;
}
STANDIN_API int cuDeviceComputeCapability(int *major, int *minor, int index) {
    DEVICE_CALL("cuDeviceComputeCapability", index);
    *major = 9;
    *minor = 0;
    return OK;
}

STANDIN_API int cuDeviceGetAttribute(int *value, int attribute, int index) {
    DEVICE_CALL("cuDeviceGetAttribute", index);
    if (!value) return INVALID_VALUE;
    static const std::map<int, int> values = {
        // as an H100 answers
        {1, 1024},     {2, 1024},  {3, 1024},      {4, 64},         {5, 0x7fffffff},  {6, 65535},
        {7, 65535},    {8, 49152}, {9, 65536},     {10, 32},        {11, 0x7fffffff}, {12, 65536},
        {13, 1980000}, {14, 512},  {15, 1},        {16, 132},       {17, 0},          {18, 0},
        {19, 1},       {20, 0},    {31, 1},        {32, 1},         {34, 0},          {35, 0},
        {36, 2619000}, {37, 5120}, {38, 52428800}, {39, 2048},      {40, 3},          {41, 1},
        {50, 0},       {51, 32},   {78, 1},        {79, 1},         {80, 1},          {81, 233472},
        {82, 65536},   {83, 0},    {84, 0},        {86, 0},         {87, 2},          {88, 0},
        {89, 0},       {90, 1},    {91, 1},        {95, 1},         {97, 232448},     {99, 1},
        {100, 0},      {102, 0},   {106, 32},      {108, 32768000}, {111, 1024},      {113, 1},
        {115, 1},      {120, 1}};
    if (attribute == 33) {
        *value = index + 1;
        return OK;
    }
    if (attribute < 1 || attribute > 160) return INVALID_VALUE;
    if (attribute == 75 || attribute == 76) {
        const long capability = setting("PTCORE_STANDIN_CAPABILITY", 90);
        *value = (int)(attribute == 75 ? capability / 10 : capability % 10);
        return OK;
    }
    auto found = values.find(attribute);
    *value = found == values.end() ? 0 : found->second;
    return OK;
}

STANDIN_API int cuDeviceCanAccessPeer(int *can, int a, int b) {
    DEVICE_CALL("cuDeviceCanAccessPeer", a);
    if (b < 0 || b >= state->devices) return INVALID_DEVICE;
    *can = a != b;
    return OK;
}
STANDIN_API int cuDeviceGetP2PAttribute(int *value, int, int a, int b) {
    DEVICE_CALL("cuDeviceGetP2PAttribute", a);
    if (b < 0 || b >= state->devices || a == b) return INVALID_DEVICE;
    *value = 1;
    return OK;
}

// One pool per device, the default one; all of it is a name.
STANDIN_API int cuDeviceGetDefaultMemPool(void **pool, int index) {
    DEVICE_CALL("cuDeviceGetDefaultMemPool", index);
    *pool = &state->device[index];
    return OK;
}
STANDIN_API int cuDeviceGetMemPool(void **pool, int index) {
    return cuDeviceGetDefaultMemPool(pool, index);
}
STANDIN_API int cuDeviceSetMemPool(int index, void *) {
    DEVICE_CALL("cuDeviceSetMemPool", index);
    return OK;
}
STANDIN_API int cuMemPoolSetAttribute(void *, int, void *) { return OK; }
STANDIN_API int cuMemPoolGetAttribute(void *pool, int attribute, void *value) {
    STANDIN_CALL("cuMemPoolGetAttribute", INITIALISED);
    if (attribute <= 3) *(int *)value = 1;
    else *(uint64_t *)value = attribute == 4 ? 0 : ((Device *)pool)->used;
    return OK;
}
STANDIN_API int cuMemPoolTrimTo(void *, size_t) { return OK; }

// ---------------------------------------------------------------------------------------- contexts

namespace {

void reset_context(Context *c) {
    reset_streams(c);
    reset_memory(c->device);
    c->failed = 0;
    c->peers = 0;
}

}  // namespace

STANDIN_API int cuDevicePrimaryCtxRetain(void **context, int index) {
    DEVICE_CALL("cuDevicePrimaryCtxRetain", index);
    state->device[index].context.references++;
    *context = &state->device[index].context;
    return OK;
}
STANDIN_API int cuDevicePrimaryCtxRelease_v2(int index) {
    DEVICE_CALL("cuDevicePrimaryCtxRelease", index);
    Context &c = state->device[index].context;
    if (!c.references) return INVALID_CONTEXT;
    if (--c.references == 0) reset_context(&c);
    return OK;
}
STANDIN_API int cuDevicePrimaryCtxReset_v2(int index) {
    DEVICE_CALL("cuDevicePrimaryCtxReset", index);
    reset_context(&state->device[index].context);
    return OK;
}
STANDIN_API int cuDevicePrimaryCtxGetState(int index, unsigned *flags, int *active) {
    DEVICE_CALL("cuDevicePrimaryCtxGetState", index);
    *flags = state->device[index].context.flags;
    *active = state->device[index].context.references > 0;
    return OK;
}
STANDIN_API int cuDevicePrimaryCtxSetFlags_v2(int index, unsigned flags) {
    DEVICE_CALL("cuDevicePrimaryCtxSetFlags", index);
    state->device[index].context.flags = flags;
    return OK;
}

namespace {
bool known(void *context) {
    for (int i = 0; i < state->devices; i++)
        if (context == &state->device[i].context && state->device[i].context.references)
            return true;
    return false;
}
}  // namespace

STANDIN_API int cuCtxSetCurrent(void *context) {
    STANDIN_CALL("cuCtxSetCurrent", INITIALISED);
    if (context && !known(context)) return INVALID_CONTEXT;
    if (!current.empty()) current.pop_back();
    if (context) current.push_back((Context *)context);
    return OK;
}
STANDIN_API int cuCtxGetCurrent(void **context) {
    STANDIN_CALL("cuCtxGetCurrent", INITIALISED);
    *context = current.empty() ? nullptr : current.back();
    return OK;
}
STANDIN_API int cuCtxPushCurrent_v2(void *context) {
    STANDIN_CALL("cuCtxPushCurrent", INITIALISED);
    if (!known(context)) return INVALID_CONTEXT;
    current.push_back((Context *)context);
    return OK;
}
STANDIN_API int cuCtxPopCurrent_v2(void **context) {
    STANDIN_CALL("cuCtxPopCurrent", INITIALISED);
    if (current.empty()) return INVALID_CONTEXT;
    if (context) *context = current.back();
    current.pop_back();
    return OK;
}
STANDIN_API int cuCtxGetDevice(int *device) {
    STANDIN_CALL("cuCtxGetDevice", INITIALISED);
    if (current.empty()) return INVALID_CONTEXT;
    *device = current.back()->device;
    return OK;
}
STANDIN_API int cuCtxGetFlags(unsigned *flags) {
    STANDIN_CALL("cuCtxGetFlags", CONTEXT);
    *flags = call.context->flags;
    return OK;
}
STANDIN_API int cuCtxGetApiVersion(void *, unsigned *version) {
    *version = 13000;
    return OK;
}
STANDIN_API int cuCtxGetLimit(size_t *value, int) {
    STANDIN_CALL("cuCtxGetLimit", CONTEXT);
    *value = 1024;
    return OK;
}
STANDIN_API int cuCtxSetLimit(int, size_t) { return OK; }
STANDIN_API int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    STANDIN_CALL("cuCtxGetStreamPriorityRange", CONTEXT);
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return OK;
}
STANDIN_API int cuCtxSynchronize() {
    STANDIN_CALL("cuCtxSynchronize", CONTEXT);
    if (const int status = refused()) return status;
    state->counters.synchronisations++;
    finish(call.context, call.lock);
    return call.context->failed;
}
STANDIN_API int cuCtxEnablePeerAccess(void *peer, unsigned flags) {
    STANDIN_CALL("cuCtxEnablePeerAccess", CONTEXT);
    if (!known(peer) || peer == call.context) return INVALID_CONTEXT;
    if (flags) return INVALID_VALUE;
    const unsigned bit = 1u << ((Context *)peer)->device;
    if (call.context->peers & bit) return PEER_ALREADY_ENABLED;
    call.context->peers |= bit;
    return OK;
}
STANDIN_API int cuCtxDisablePeerAccess(void *peer) {
    STANDIN_CALL("cuCtxDisablePeerAccess", CONTEXT);
    if (!known(peer)) return INVALID_CONTEXT;
    const unsigned bit = 1u << ((Context *)peer)->device;
    if (!(call.context->peers & bit)) return PEER_NOT_ENABLED;
    finish(call.context, call.lock);
    call.context->peers &= ~bit;
    return OK;
}

// ------------------------------------------------------------------------------ errors and look-up

namespace {

struct ErrorName {
    int code;
    const char *name, *text;
};
const ErrorName ERRORS[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {301, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {710, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const ErrorName *error_of(int code) {
    for (const ErrorName &e : ERRORS)
        if (e.code == code) return &e;
    return nullptr;
}

}  // namespace

STANDIN_API int cuGetErrorName(int code, const char **name) {
    const ErrorName *e = error_of(code);
    *name = e ? e->name : nullptr;
    return e ? OK : INVALID_VALUE;
}
STANDIN_API int cuGetErrorString(int code, const char **text) {
    const ErrorName *e = error_of(code);
    *text = e ? e->text : nullptr;
    return e ? OK : INVALID_VALUE;
}

// The newest form of a function that there is: name_v4 ... name_v2, name.
STANDIN_API int cuGetProcAddress_v2(const char *name, void **function, int, uint64_t flags,
                                    int *found) {
    if (flags & 2) default_stream_of_thread = true;
    static void *self;
    if (!self) {
        Dl_info info;
        if (dladdr((void *)&cuGetProcAddress_v2, &info))
            self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
        if (!self) self = RTLD_DEFAULT;
    }
    *function = nullptr;
    for (const char *suffix : {"_v4", "_v3", "_v2", ""})
        if (!*function) *function = dlsym(self, (std::string(name) + suffix).c_str());
    if (found) *found = *function ? 0 : 1;          // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
    return *function ? OK : NOT_FOUND;
}

STANDIN_API int cuProfilerStart() { return OK; }
STANDIN_API int cuProfilerStop() { return OK; }

// --------------------------------------------------------------------------------------- for tests

STANDIN_API void standin_seed(uint64_t n) {
    std::lock_guard<std::mutex> lock(state->lock);
    state->rng.seed(n);
    seed_schedules(n);
}

// What is allocated already stays.
STANDIN_API int standin_set_memory_limit(int device, uint64_t bytes) {
    std::lock_guard<std::mutex> lock(state->lock);
    if (device < 0 || device >= state->devices) return INVALID_DEVICE;
    state->device[device].total = bytes;
    return OK;
}

STANDIN_API uint64_t standin_memory_used(int device) {
    std::lock_guard<std::mutex> lock(state->lock);
    return device < 0 || device >= state->devices ? 0 : state->device[device].used;
}

// The fields of Counters, as many as n; returns how many there are.
STANDIN_API int standin_counters(uint64_t *out, int n) {
    std::lock_guard<std::mutex> lock(state->lock);
    const int all = (int)(sizeof(Counters) / sizeof(uint64_t));
    memcpy(out, &state->counters, (size_t)std::max(0, std::min(n, all)) * sizeof(uint64_t));
    return all;
}

STANDIN_API uint64_t standin_launched(const char *name) {
    std::lock_guard<std::mutex> lock(state->lock);
    auto found = state->launched.find(name);
    return found == state->launched.end() ? 0 : found->second;
}

// How many blocks the largest launch of a kernel had since the last call for it, executed or not;
// 0: there was none.
STANDIN_API uint64_t standin_blocks(const char *name) {
    std::lock_guard<std::mutex> lock(state->lock);
    auto found = state->blocks.find(name);
    const uint64_t blocks = found == state->blocks.end() ? 0 : found->second;
    if (blocks) state->blocks.erase(found);
    return blocks;
}

// Names of all kernels launched so far, one a line; returns how many bytes that takes.
STANDIN_API size_t standin_launched_names(char *out, size_t n) {
    std::lock_guard<std::mutex> lock(state->lock);
    std::string all;
    for (auto &entry : state->launched) all += entry.first + "\n";
    if (n) {
        strncpy(out, all.c_str(), n - 1);
        out[n - 1] = 0;
    }
    return all.size() + 1;
}

// The next call of `function` (without _v2), after `skip` others, returns `code` and does nothing.
STANDIN_API void standin_fail_after(const char *function, int skip, int code) {
    std::lock_guard<std::mutex> lock(state->lock);
    state->faults[function] = {skip, code};
    state->any_fault = true;
}
STANDIN_API void standin_fail_next(const char *function, int code) {
    standin_fail_after(function, 0, code);
}

STANDIN_API void standin_eager(int eager) {
    std::lock_guard<std::mutex> lock(state->lock);
    state->lazy = !eager;
}

// 0: streams take turns by age and only as needed, so that a run can be repeated exactly.
STANDIN_API void standin_random(int random) {
    std::lock_guard<std::mutex> lock(state->lock);
    state->random = random != 0;
}

// While idle, launches are checked and counted and that is all: what is left of an op's time is the
// library's own.
STANDIN_API void standin_idle(int idle) {
    std::lock_guard<std::mutex> lock(state->lock);
    state->idle = idle != 0;
}

STANDIN_API void standin_time_limit(double seconds) {
    std::lock_guard<std::mutex> lock(state->lock);
    set_time_limit(seconds);
}

// How many allocations have been written to outside of their bounds; reported on stderr.
STANDIN_API int standin_check() {
    std::lock_guard<std::mutex> lock(state->lock);
    int n = 0;
    std::string text;
    for (int i = 0; i < state->devices; i++) n += check_canaries(i, &text);
    if (n) report(text);
    return n;
}

STANDIN_API const char *standin_last_failure() {
    std::lock_guard<std::mutex> lock(state->lock);
    static thread_local std::string text;
    text = state->last_failure;
    return text.c_str();
}

// Forgets failures, injected faults and counters; memory, streams and libraries stay, queued work
// is dropped.
STANDIN_API void standin_clear() {
    std::lock_guard<std::mutex> lock(state->lock);
    reset_streams(nullptr);
    for (int i = 0; i < state->devices; i++) state->device[i].context.failed = 0;
    state->faults.clear();
    state->any_fault = false;
    state->counters = Counters{};
    state->launched.clear();
    state->last_failure.clear();
}

// And frees all memory and libraries: every address and handle but contexts and streams is void.
STANDIN_API void standin_reset() {
    standin_clear();
    std::lock_guard<std::mutex> lock(state->lock);
    for (int i = 0; i < state->devices; i++) reset_context(&state->device[i].context);
    reset_host_memory();
    drop_libraries();
}

}  // namespace standin

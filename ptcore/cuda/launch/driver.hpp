// The driver and the interpreter as the C++ half of the backend sees them: functions that
// driver/runtime.pyx fills in over cuda.bindings. All return a CUresult (0: done) unless said
// otherwise; none needs the GIL.
#pragma once
#include <cstddef>
#include <cstdint>

#include "launch.hpp"

namespace pt_cuda {

enum { MAX_DEVICES = 16 };

struct Device {
    int multiprocessors, shared_limit, capability;      // 90: sm_90
    Fault *fault;                                       // in host memory that the device writes to
    uint64_t capture_pool;    // the allocator's, for streams that capture a graph; 0: no capture
    const uint64_t *random_state;    // while a graph is captured: seed and offset of its launches
    uint64_t random_base;    // the generator's offset where the capture began
};

struct Driver {
    Device devices[MAX_DEVICES];
    int (*set_device)(int device);                      // its context becomes this thread's
    int (*launch)(void *function, Grid grid, unsigned threads, unsigned shared, void *stream,
                  const void *args);
    int (*copy)(void *dst, const void *src, size_t nbytes,
                void *stream);    // any direction on one device
    int (*copy_peer)(void *dst, int to, const void *src, int from, size_t nbytes, void *stream);
    int (*clear)(void *dst, size_t nbytes, void *stream);
    int (*synchronize)(void *stream);
    int (*synchronize_device)(int device);              // waits for nothing during a capture
    int (*wait)(void *waiting, int waiting_device, void *stream,
                int device);    // for the work enqueued so far
    int (*capturing)(void *stream);    // whether the stream's work becomes part of a graph
    int (*exchange)(int mode);         // sets the thread's capture mode; the mode before
    // Compiles and loads: a pt_status, with a text in error[256].
    int (*find)(const Kernel *kernel, uint64_t types, int device, void **function, char *error);
    int (*host_copy)(const pt_view *dst, const pt_view *src);   // pt_copy of loops.h: a pt_status
    void *(*stream)(int device);                        // this thread's current stream
    void *(*allocate)(int64_t nbytes, int device);      // NULL: none left
    void (*release)(void *data, int64_t nbytes, int device);
    int (*keep_host)(
        void *data, int device,
        void *stream);    // keeps page-locked memory for a stream's work; 0: it is not page-locked
    const char *(*text)(int result);                    // of a CUresult
    const char *(*op_name)(int op);
    int (*found_wait)(char *error);    // with sync_mode: warns or fails; a pt_status
    int blocking;                                       // CUDA_LAUNCH_BLOCKING
    int sync_mode;    // copies that wait: 0 nothing, 1 warn, 2 are refused
    int forked;    // this is a child of a process that had started the driver
};
extern Driver driver;

// The text of this thread's last failure, or "".
extern thread_local char last_error[1024];

// PT_INDEX_ERROR, with a text in `error`, if kernels of a device have reported a fault since the
// last call. Called after a synchronisation. `own`: the fault is of the calling op, which the text
// then leaves out.
int take_fault(int device, char *error, bool own = false);

// Whether the work that a call enqueues becomes part of a graph.
bool captures(const pt_call *c);

// While one lives, the thread may make calls that a capture of any thread would forbid because they
// allocate memory. They must not wait for the device.
class Relaxed {
public:
    Relaxed() : before(driver.exchange(2)) {}
    Relaxed(const Relaxed &) = delete;
    Relaxed &operator=(const Relaxed &) = delete;
    ~Relaxed() { driver.exchange(before); }

private:
    int before;
};

// Called before the host waits for the device: set_sync_debug_mode warns of the wait or refuses it,
// and a capture refuses it with `text`.
int waits(pt_call *c, const char *text);

// Called after work was enqueued: where CUDA_LAUNCH_BLOCKING is set, waits for the work and returns
// its failure.
int wait_if_blocking(pt_call *c, const char *what);

// The text that follows the message of a failure that an earlier kernel may have caused.
const char *hint_of(int result);

// A pt_status for a CUresult, with its text in `error` (256 bytes).
int status_of(int result, const char *what, char *error);

}  // namespace pt_cuda

// The stand-in driver's state and what its files offer each other. One lock guards all of it;
// kernels run under it too.
//
//   standin_cuda.cpp      initialisation, devices, contexts, names of errors, the functions that
//   only tests call standin_memory.cpp    arenas, allocations with canaries, page protection,
//   pointer attributes standin_virtual.cpp   reserved addresses and memory that is mapped behind
//   them standin_copies.cpp    copies and fills standin_streams.cpp   streams, events, the order in
//   which queued work runs standin_graphs.cpp    capturing streams, launches of graphs
//   standin_library.cpp   libraries, kernels, launches
//   run.cpp, scheduler.cpp, fibers.cpp   running one kernel
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "run.hpp"

namespace standin {

enum {          // CUresult
    OK = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    FILE_NOT_FOUND = 301,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    OUT_OF_RESOURCES = 701,
    PEER_ALREADY_ENABLED = 704,
    PEER_NOT_ENABLED = 705,
    ALREADY_REGISTERED = 712,
    NOT_REGISTERED = 713,
    LAUNCH_FAILED = 719,
    NOT_PERMITTED = 800,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_UNJOINED = 904,
    CAPTURE_ISOLATION = 905,
    CAPTURED_EVENT = 907,
    CAPTURE_WRONG_THREAD = 908
};
const int MOST_DEVICES = 8;

struct Stream;
struct Capture;
typedef std::shared_ptr<Stream> StreamRef;

// The primary context of a device: the only kind there is.
struct Context {
    int device = 0, references = 0;
    unsigned flags = 0;
    int failed = 0;                     // sticky: what every later call returns
    unsigned peers = 0;                 // devices whose memory kernels of this one may touch
    StreamRef legacy;
};

// A point in a stream's order that others wait for.
struct Marker {
    bool done = false;
    double time = 0;
    std::weak_ptr<Stream> stream;
    std::weak_ptr<Capture> capture;     // recorded there, as its node `number`
    uint64_t number = 0;
};
typedef std::shared_ptr<Marker> MarkerRef;

struct Work {
    Context *context = nullptr;
    unsigned devices = 0;    // whose memory it touches, beside the context's own and its peers'
    bool host = false;                  // calls user code, without the lock
    bool always = false;                // runs even when the context has failed
    std::function<Failure()> run;
    MarkerRef marker;                   // done when this has run
    uint64_t number = 0;
    std::vector<MarkerRef> events;      // must be done before
    std::vector<std::pair<StreamRef, uint64_t>> after;
};

struct Stream {
    Context *context;
    bool legacy = false, blocking = true, busy = false;
    unsigned flags = 0;
    int priority = 0;
    uint64_t id = 0;
    std::shared_ptr<Capture> capture;   // what the stream is given is kept there
    std::deque<Work> queue;             // front: the next one, or the running one while `busy`
};

struct Counters {           // the order is that of standin_counters
    uint64_t launches, host_to_device, device_to_host, device_to_device, peer, host_to_host, fills,
        allocations, frees, host_allocations, host_frees, synchronisations, waits, host_calls,
        libraries, graphs, pieces, pieces_released;
};

struct Device {
    Context context;
    uint64_t total = 0, used = 0;
};

struct State {
    std::mutex lock;
    bool initialised = false, forked = false, lazy = true, random = true, protect = true,
         idle = false;
    int devices = 2;
    Device device[MOST_DEVICES];
    Counters counters = {};
    std::map<std::string, uint64_t> launched,
        blocks;    // how often, and how many blocks the largest launch had
    std::map<std::string, std::pair<int, int>> faults;      // function: calls to let pass, code
    std::atomic<bool> any_fault{false};
    Random rng;
    std::string last_failure;
    size_t most_pending = 512, most_staged = 64 << 20;
};
extern State *const
    state;    // never destroyed, like all state of the driver: libraries call it at exit

// A thread's contexts; plain data, which lives as long as the thread.
struct ContextStack {
    Context *at[64];
    int depth;
    bool empty() const { return depth == 0; }
    Context *back() const { return at[depth - 1]; }
    void push_back(Context *c) { if (depth < 64) at[depth++] = c; }
    void pop_back() { depth--; }
};
extern thread_local ContextStack current;
extern thread_local bool in_host_call;    // inside a function given to cuLaunchHostFunc

// What each function of the driver begins with: the lock, an injected fault, initialisation, the
// context's failure.
class Call {
public:
    enum Needs { NOTHING, INITIALISED, CONTEXT };
    explicit Call(const char *name, Needs needs = CONTEXT);
    int status;
    Context *context = nullptr;         // the current one
    std::unique_lock<std::mutex> lock;
};
#define STANDIN_API extern "C" __attribute__((visibility("default")))
#define STANDIN_CALL(name, needs) Call call(name, Call::needs); if (call.status) return call.status

void report(const std::string &text);       // on stderr, and kept for standin_last_failure
void fail(Context *context, const Failure &failure);

// ------------------------------------------------------------------------------------------ memory
enum Kind { PAGEABLE, PINNED, DEVICE };
struct Range {                  // what lies at an address
    Kind kind = PAGEABLE;
    int device = -1;
    uint64_t start = 0, bytes = 0, id = 0;
    bool registered = false;    // pinned by cuMemHostRegister
};
Range range_of(uint64_t address);
bool holds(const Range &range, uint64_t address, uint64_t bytes);
int allocate(int device, uint64_t bytes, uint64_t *address);
int release(uint64_t address);                      // INVALID_VALUE if nothing was allocated there
void open_memory(unsigned devices);    // exactly these devices' memory may be touched from now on
void open_for(const Work &work);
inline void close_memory() { open_memory(0); }
int check_canaries(int device, std::string *text);  // how many allocations were overrun
void reset_memory(int device);                      // frees all
void reset_host_memory();
bool is_open(int device);
bool map_junk(uint64_t low, uint64_t pages);        // readable and writable
void unmap_pages(uint64_t low, uint64_t pages);     // they stay reserved
int device_behind(uint64_t address);                // of memory that is mapped there; -1: none
Range mapped_range(uint64_t address);
void protect_mapped(int device, bool open);
std::string describe_reserved(uint64_t address);
void reset_mapped(int device);

// ----------------------------------------------------------------------------------------- streams
StreamRef stream_of(void *handle, Context *current);        // null: no such stream
extern std::atomic<bool>
    default_stream_of_thread;    // somebody asked for functions to which NULL means that one
void enqueue(const StreamRef &stream, Work &&work, size_t staged_bytes = 0);
// These run work, and let the lock go where it calls user code.
void finish(const StreamRef &stream, std::unique_lock<std::mutex> &lock);
void finish(Context *context, std::unique_lock<std::mutex> &lock);
void some_progress(std::unique_lock<std::mutex> &lock);
void after_enqueue(std::unique_lock<std::mutex> &lock);     // eager mode, a long queue
StreamRef line_stream(Context *context);                    // without a handle, beside all others
void keep(const StreamRef &stream, Work &&work);            // in the stream's capture
int keep_wait(const StreamRef &stream, const MarkerRef &marker);
void keep_external(const StreamRef &stream, void *event,
                   bool waits);    // an event's record or wait of each launch
MarkerRef *newest_record(void *event);                      // null: there is no such event
int refused(
    const StreamRef &stream = nullptr);    // whether a capture forbids the call, and is invalid now
void reset_streams(Context *context);                       // drops queued work
void create_legacy(Context *context);
void drop_libraries();

}  // namespace standin

// Streams and events: work is queued and runs late, in any order that streams, events and the
// legacy stream allow.
//
// Work runs when somebody waits for it or asks about it, or when much is queued; which stream goes
// on is random, so that a wait that is missing shows. Two ways of waiting alternate at random: only
// what is needed runs, or anything that may. PTCORE_STANDIN_STREAMS=eager runs each piece at once.
#include "standin.hpp"

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <ctime>
#include <set>
#include <unistd.h>

namespace standin {

namespace {

auto &streams = *new std::vector<StreamRef>;        // all with a handle or with work
auto &handles = *new std::set<void *>;
auto &changed = *new std::condition_variable;       // a host call has returned
uint64_t last_number, last_id;
size_t pending, staged;
thread_local Stream *of_thread[MOST_DEVICES];        // handles too

double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

StreamRef create(Context *context) {
    StreamRef s = std::make_shared<Stream>();
    s->context = context;
    s->id = ++last_id;
    streams.push_back(s);
    return s;
}

bool finished(const Stream &s, uint64_t number) {
    return s.queue.empty() || s.queue.front().number > number;
}

bool runnable(const Stream &s) {
    if (s.queue.empty() || s.busy) return false;
    const Work &w = s.queue.front();
    for (auto &e : w.events)
        if (!e->done) return false;
    for (auto &a : w.after)
        if (!finished(*a.first, a.second)) return false;
    return true;
}

void forget_empty() {
    streams.erase(std::remove_if(streams.begin(), streams.end(), [](const StreamRef &s) {
        return s->queue.empty() && !s->legacy && !handles.count(s.get()) && s.use_count() == 1;
    }), streams.end());
}

void run_front(const StreamRef &s, std::unique_lock<std::mutex> &lock) {
    Work &w = s->queue.front();
    const uint64_t number = w.number;
    Failure failure;
    if (w.run && (w.always || !w.context->failed)) {
        if (w.host) {
            close_memory();
            s->busy = true;
            std::function<Failure()> run = std::move(w.run);
            lock.unlock();
            in_host_call = true;
            run();
            in_host_call = false;
            lock.lock();
            s->busy = false;
            changed.notify_all();
            if (s->queue.empty() || s->queue.front().number != number)
                return;     // dropped meanwhile
        } else {
            open_for(w);
            failure = w.run();
        }
    }
    Work &done = s->queue.front();
    if (done.marker) {
        done.marker->done = true;
        done.marker->time = now();
    }
    Context *context = done.context;
    s->queue.pop_front();
    pending--;
    if (!pending) staged = 0;
    if (failure.code) fail(context, failure);
}

bool run_any(std::unique_lock<std::mutex> &lock) {
    std::vector<StreamRef> ready;
    for (auto &s : streams)
        if (runnable(*s)) ready.push_back(s);
    if (ready.empty()) return false;
    run_front(ready[state->random ? state->rng.below((uint32_t)ready.size()) : 0], lock);
    return true;
}

// Runs s's work up to `number` and what that waits for.
void run_needed(const StreamRef &s, uint64_t number, std::unique_lock<std::mutex> &lock) {
    while (!finished(*s, number)) {
        if (s->busy) {
            changed.wait(lock);
        } else if (runnable(*s)) {
            run_front(s, lock);
        } else {
            StreamRef other;
            uint64_t until = 0;
            for (auto &e : s->queue.front().events)
                if (!e->done) {
                    other = e->stream.lock();
                    until = e->number;
                }
            for (auto &a : s->queue.front().after)
                if (!finished(*a.first, a.second)) {
                    other = a.first;
                    until = a.second;
                }
            if (!other) return;         // cannot be: what is waited for was queued before
            run_needed(other, until, lock);
        }
    }
}

void finish_number(const StreamRef &s, uint64_t number, std::unique_lock<std::mutex> &lock) {
    if (state->random && state->rng.below(2))
        while (!finished(*s, number)) {
            if (run_any(lock)) continue;
            if (finished(*s, number)) break;
            changed.wait(lock);         // a host call runs on another thread
        }
    run_needed(s, number, lock);
    close_memory();
    forget_empty();
}

}  // namespace

std::atomic<bool> default_stream_of_thread{false};

StreamRef stream_of(void *handle, Context *context) {
    const uintptr_t h = !handle && default_stream_of_thread ? 2 : (uintptr_t)handle;
    if (h <= 1) return context->legacy;
    if (h == 2) {
        Stream *&s = of_thread[context->device];
        if (!s) {
            s = create(context).get();
            handles.insert(s);
        }
        handle = s;
    }
    if (!handles.count(handle)) return nullptr;
    for (auto &s : streams)
        if (s.get() == handle) return s;
    return nullptr;
}

void create_legacy(Context *context) {
    if (context->legacy) return;
    context->legacy = create(context);
    context->legacy->legacy = true;
}

StreamRef line_stream(Context *context) {
    StreamRef s = create(context);
    s->blocking = false;
    return s;
}

void enqueue(const StreamRef &stream, Work &&work, size_t bytes) {
    if (stream->capture) return keep(stream, std::move(work));
    work.number = ++last_number;
    if (!work.context) work.context = stream->context;
    if (work.marker) {
        work.marker->stream = stream;
        work.marker->number = work.number;
    }
    // The legacy stream and the blocking ones of its context wait for each other.
    if (stream->legacy) {
        for (auto &s : streams)
            if (s != stream && s->blocking && s->context == stream->context && !s->queue.empty())
                work.after.emplace_back(s, s->queue.back().number);
    } else if (stream->blocking && !stream->context->legacy->queue.empty()) {
        work.after.emplace_back(stream->context->legacy,
                                stream->context->legacy->queue.back().number);
    }
    stream->queue.push_back(std::move(work));
    pending++;
    staged += bytes;
}

void after_enqueue(std::unique_lock<std::mutex> &lock) {
    const bool much = pending > state->most_pending || staged > state->most_staged;
    if (!state->lazy) {
        while (run_any(lock)) {}
    } else if (much) {
        const size_t until = state->most_pending / 2;
        while ((pending > until || staged > state->most_staged) && run_any(lock)) {}
    }
    if (!state->lazy || much) close_memory();
}

void some_progress(std::unique_lock<std::mutex> &lock) {
    for (uint32_t n = state->random ? state->rng.below(4) : 1; n-- && run_any(lock);) {}
    close_memory();
}

void finish(const StreamRef &stream, std::unique_lock<std::mutex> &lock) {
    if (!stream->queue.empty()) finish_number(stream, stream->queue.back().number, lock);
}

void finish(Context *context, std::unique_lock<std::mutex> &lock) {
    const std::vector<StreamRef> all = streams;
    for (auto &s : all)
        if (s->context == context) finish(s, lock);
}

void reset_streams(Context *context) {
    for (auto &s : streams) {
        if (context && s->context != context) continue;
        while (!s->queue.empty()) {
            Work &w = s->queue.front();
            if (w.marker) w.marker->done = true;
            s->queue.pop_front();
            pending--;
        }
    }
    changed.notify_all();
}

// ----------------------------------------------------------------------------------------- streams

STANDIN_API int cuStreamCreateWithPriority(void **out, unsigned flags, int priority) {
    STANDIN_CALL("cuStreamCreate", CONTEXT);
    if (!out || flags > 1) return INVALID_VALUE;
    StreamRef s = create(call.context);
    s->flags = flags;
    s->blocking = !(flags & 1u);
    s->priority = std::max(-5, std::min(0, priority));
    handles.insert(s.get());
    *out = s.get();
    return OK;
}
STANDIN_API int cuStreamCreate(void **out, unsigned flags) {
    return cuStreamCreateWithPriority(out, flags, 0);
}

// What is queued runs on, as CUDA does; only the handle ends here.
STANDIN_API int cuStreamDestroy_v2(void *handle) {
    STANDIN_CALL("cuStreamDestroy", INITIALISED);
    if (!handles.erase(handle)) return INVALID_HANDLE;
    forget_empty();
    return OK;
}

#define STREAM(handle) \
    StreamRef stream = stream_of(handle, call.context); \
    if (!stream) return INVALID_HANDLE

STANDIN_API int cuStreamSynchronize(void *handle) {
    STANDIN_CALL("cuStreamSynchronize", CONTEXT);
    STREAM(handle);
    if (const int status = refused(stream)) return status;
    state->counters.synchronisations++;
    finish(stream, call.lock);
    return stream->context->failed;
}

STANDIN_API int cuStreamQuery(void *handle) {
    STANDIN_CALL("cuStreamQuery", CONTEXT);
    STREAM(handle);
    if (const int status = refused(stream)) return status;
    some_progress(call.lock);
    return stream->context->failed ? stream->context->failed
           : stream->queue.empty() ? OK
                                   : NOT_READY;
}

STANDIN_API int cuStreamGetFlags(void *handle, unsigned *flags) {
    STANDIN_CALL("cuStreamGetFlags", CONTEXT);
    STREAM(handle);
    *flags = stream->flags;
    return OK;
}

STANDIN_API int cuStreamGetPriority(void *handle, int *priority) {
    STANDIN_CALL("cuStreamGetPriority", CONTEXT);
    STREAM(handle);
    *priority = stream->priority;
    return OK;
}

STANDIN_API int cuStreamGetId(void *handle, unsigned long long *id) {
    STANDIN_CALL("cuStreamGetId", CONTEXT);
    STREAM(handle);
    *id = stream->id;
    return OK;
}

STANDIN_API int cuStreamGetCtx(void *handle, void **context) {
    STANDIN_CALL("cuStreamGetCtx", CONTEXT);
    STREAM(handle);
    *context = stream->context;
    return OK;
}

STANDIN_API int cuStreamGetDevice(void *handle, int *device) {
    STANDIN_CALL("cuStreamGetDevice", CONTEXT);
    STREAM(handle);
    *device = stream->context->device;
    return OK;
}


STANDIN_API int cuLaunchHostFunc(void *handle, void (*f)(void *), void *argument) {
    STANDIN_CALL("cuLaunchHostFunc", CONTEXT);
    STREAM(handle);
    if (!f) return INVALID_VALUE;
    Work work;
    work.host = true;
    work.run = [f, argument] {
        f(argument);
        return Failure();
    };
    enqueue(stream, std::move(work));
    state->counters.host_calls++;
    after_enqueue(call.lock);
    return OK;
}

STANDIN_API int cuStreamAddCallback(void *handle, void (*f)(void *, int, void *), void *argument,
                                    unsigned) {
    STANDIN_CALL("cuStreamAddCallback", CONTEXT);
    STREAM(handle);
    if (!f) return INVALID_VALUE;
    Work work;
    work.host = work.always = true;             // told of a failure too
    Context *context = stream->context;
    work.run = [f, argument, handle, context] {
        f(handle, context->failed, argument);
        return Failure();
    };
    enqueue(stream, std::move(work));
    state->counters.host_calls++;
    after_enqueue(call.lock);
    return OK;
}

// Work of a stand-in library (standin_cublas.cpp), in the stream's order. It may touch what a
// kernel on this stream may, and its faults are a kernel's. `release` is called once f has run or
// was dropped.
STANDIN_API int standin_enqueue(void *handle, const char *name, void (*f)(void *), void *argument,
                                void (*release)(void *)) {
    STANDIN_CALL(name, CONTEXT);
    if (!handle) handle = (void *)1;            // a library means the legacy stream by NULL
    STREAM(handle);
    struct Host {
        std::string name;
        void (*f)(void *);
        std::shared_ptr<void> argument;
    };
    std::shared_ptr<Host> host(new Host{name, f, std::shared_ptr<void>(argument, release)});
    Work work;
    work.run = [host] {
        Launch l = {};
        l.name = host->name.c_str();
        l.entry = [](const void *p) {
            static_cast<const Host *>(p)->f(static_cast<const Host *>(p)->argument.get());
        };
        l.args = host.get();
        return run_kernel(l);
    };
    enqueue(stream, std::move(work));
    state->counters.launches++;
    state->launched[name]++;
    after_enqueue(call.lock);
    return OK;
}

// ------------------------------------------------------------------------------------------ events

struct Event {
    Context *context;
    unsigned flags;
    MarkerRef last;         // of the newest record; none if there was none
};

namespace {
auto &events = *new std::map<void *, std::unique_ptr<Event>>;
Event *event_of(void *handle) {
    auto found = events.find(handle);
    return found == events.end() ? nullptr : found->second.get();
}
}  // namespace

MarkerRef *newest_record(void *event) {
    Event *e = event_of(event);
    return e ? &e->last : nullptr;
}

STANDIN_API int cuEventCreate(void **out, unsigned flags) {
    STANDIN_CALL("cuEventCreate", CONTEXT);
    if (!out || flags > 7 || (flags & 6) == 4)
        return INVALID_VALUE;    // between processes there is no time
    std::unique_ptr<Event> e(new Event{call.context, flags, nullptr});
    *out = e.get();
    events[e.get()] = std::move(e);
    return OK;
}

STANDIN_API int cuEventDestroy_v2(void *handle) {
    STANDIN_CALL("cuEventDestroy", INITIALISED);
    return events.erase(handle) ? OK : INVALID_HANDLE;
}

#define EVENT(name, handle) \
    Event *name = event_of(handle); \
    if (!name) return INVALID_HANDLE

STANDIN_API int cuEventRecord(void *event, void *handle) {
    STANDIN_CALL("cuEventRecord", CONTEXT);
    EVENT(e, event);
    STREAM(handle);
    if (e->context != stream->context) return INVALID_HANDLE;
    Work work;
    work.marker = e->last = std::make_shared<Marker>();
    enqueue(stream, std::move(work));
    after_enqueue(call.lock);
    if (e->flags & 4)
        finish(stream, call.lock);    // another process cannot make this one's work go on
    return OK;
}
// The flag: the record, or the wait, is the graph's own, of each launch. There must be a capture.
STANDIN_API int cuEventRecordWithFlags(void *event, void *handle, unsigned flags) {
    if (!flags) return cuEventRecord(event, handle);
    STANDIN_CALL("cuEventRecord", CONTEXT);
    EVENT(e, event);
    STREAM(handle);
    if (flags != 1 || !stream->capture) return INVALID_VALUE;
    if (e->context != stream->context) return INVALID_HANDLE;
    keep_external(stream, event, false);
    return OK;
}

STANDIN_API int cuStreamWaitEvent(void *handle, void *event, unsigned flags) {
    STANDIN_CALL("cuStreamWaitEvent", CONTEXT);
    EVENT(e, event);
    STREAM(handle);
    state->counters.waits++;
    if (flags > 1 || (flags && !stream->capture)) return INVALID_VALUE;
    if (flags) return keep_external(stream, event, true), OK;
    if (e->last && !e->last->capture.expired()) return keep_wait(stream, e->last);
    if (stream->capture) return CAPTURE_ISOLATION;
    if (!e->last || e->last->done) return OK;
    Work work;
    work.events.push_back(e->last);
    enqueue(stream, std::move(work));
    after_enqueue(call.lock);
    return OK;
}

STANDIN_API int cuEventQuery(void *event) {
    STANDIN_CALL("cuEventQuery", CONTEXT);
    EVENT(e, event);
    if (e->last && !e->last->capture.expired()) return CAPTURED_EVENT;
    if (const int status = refused()) return status;
    MarkerRef marker = e->last;
    Context *context = e->context;
    if (marker && !marker->done) some_progress(call.lock);
    if (context->failed) return context->failed;
    return !marker || marker->done ? OK : NOT_READY;
}

STANDIN_API int cuEventSynchronize(void *event) {
    STANDIN_CALL("cuEventSynchronize", CONTEXT);
    EVENT(e, event);
    if (e->last && !e->last->capture.expired()) return CAPTURED_EVENT;
    if (const int status = refused()) return status;
    state->counters.synchronisations++;
    MarkerRef marker = e->last;
    Context *context = e->context;
    if (marker && !marker->done)
        if (StreamRef stream = marker->stream.lock())
            finish_number(stream, marker->number, call.lock);
    return context->failed;
}

STANDIN_API int cuEventElapsedTime_v2(float *ms, void *start, void *end) {
    STANDIN_CALL("cuEventElapsedTime", CONTEXT);
    EVENT(a, start);
    EVENT(b, end);
    if ((a->flags | b->flags) & 2u || !a->last || !b->last) return INVALID_HANDLE;
    if (a->context != b->context) return INVALID_HANDLE;
    if (!a->last->done || !b->last->done) return NOT_READY;
    *ms = (float)(b->last->time - a->last->time);
    return OK;
}
// An event of another process is one that is done: there it was waited for when it was recorded.
struct EventHandle {
    char magic[8];
    int32_t process;
    char rest[52];
};
static_assert(sizeof(EventHandle) == 64, "as CUipcEventHandle");

STANDIN_API int cuIpcGetEventHandle(EventHandle *handle, void *event) {
    STANDIN_CALL("cuIpcGetEventHandle", CONTEXT);
    EVENT(e, event);
    if (!handle || !(e->flags & 4)) return INVALID_VALUE;
    *handle = {{'e', 'v', 'e', 'n', 't', 's', '0', '1'}, (int32_t)getpid(), {}};
    return OK;
}

STANDIN_API int cuIpcOpenEventHandle(void **out, EventHandle handle) {
    STANDIN_CALL("cuIpcOpenEventHandle", CONTEXT);
    if (!out || memcmp(handle.magic, "events01", 8) || kill(handle.process, 0))
        return INVALID_VALUE;
    if (handle.process == getpid()) return INVALID_CONTEXT;
    std::unique_ptr<Event> e(new Event{call.context, 2 | 4, nullptr});
    *out = e.get();
    events[e.get()] = std::move(e);
    return OK;
}

STANDIN_API int cuEventElapsedTime(float *ms, void *start, void *end) {
    return cuEventElapsedTime_v2(ms, start, end);
}

}  // namespace standin

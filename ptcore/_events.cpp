/* Events: see _events.h. All functions run with the GIL held. */
#include "_events.h"
#include "_state.h"
#include <chrono>
#include <stdlib.h>

pt_profile_state pt_profile = {};

namespace {

uint64_t runs = 0;

/* This thread's recorder and the number of its profile; older profiles' recorders are freed. */
thread_local pt_recorder *recorder = nullptr;
thread_local uint64_t recorder_run = 0;

pt_recorder *join(void) {
    pt_recorder *r = static_cast<pt_recorder *>(calloc(1, sizeof(pt_recorder)));
    if (r == nullptr)
        return nullptr;
    r->thread = PyThread_get_thread_ident();
#ifdef PY_HAVE_THREAD_NATIVE_ID
    r->native = PyThread_get_thread_native_id();
#endif
    r->open = -1;
    r->next = pt_profile.first;
    pt_profile.first = r;
    recorder = r;
    recorder_run = pt_profile.run;
    return r;
}

inline pt_recorder *here(void) {
    if (recorder_run == pt_profile.run && pt_profile.run != 0)
        return recorder;
    return pt_profile.all_threads && pt_profile.run != 0 ? join() : nullptr;
}

pt_event *new_event(pt_recorder *r) {
    if (r->n % PT_EVENT_CHUNK == 0) {
        const int32_t k = r->n / PT_EVENT_CHUNK;
        if (k == r->room) {
            const int32_t room = k ? 2 * k : 16;
            void *moved = realloc(r->chunks, sizeof(pt_event *) * room);
            if (moved == nullptr)
                return nullptr;
            r->chunks = static_cast<pt_event **>(moved);
            r->room = room;
        }
        r->chunks[k] = static_cast<pt_event *>(malloc(sizeof(pt_event) * PT_EVENT_CHUNK));
        if (r->chunks[k] == nullptr)
            return nullptr;
    }
    pt_event *e = pt_recorder_event(r, r->n);
    e->end = 0;
    e->what = e->stack = e->device = nullptr;
    e->inputs = -1;
    e->bytes = 0;
    e->sequence = 0;
    e->parent = r->open;
    e->number = r->n++;
    return e;
}

}  // namespace

int64_t pt_event_clock(void) {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

pt_recorder *pt_recorder_here(void) { return here(); }

int pt_event_begin(pt_frame *f, int kind, PyObject *what) {
    f->run = f->rule = 0;
    pt_recorder *r = here();
    if (r == nullptr || r->paused || r->busy)
        return 0;
    pt_event *e = new_event(r);
    if (e == nullptr)
        return 0;
    e->kind = kind;
    e->what = Py_XNewRef(what);
    if (pt_profile.sequence != nullptr)
        e->sequence = pt_profile.sequence();
    r->open = e->number;
    f->run = pt_profile.run;
    f->event = e;
    f->recorder = r;
    if (pt_profile.stacks) {
        r->busy++;
        e->stack = pt_profile.stack();
        r->busy--;
    }
    e->start = pt_event_clock();
    return 1;
}

void pt_event_end(pt_frame *f) {
    pt_tls.mode |= f->rule;
    f->rule = 0;
    if (f->run == 0 || f->run != pt_profile.run) /* the profile may have ended during the event */
        return;
    pt_recorder *r = f->recorder;
    if (f->event->device != nullptr) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);         /* the call may have failed */
        r->busy++;
        pt_profile.device_end(f->event->device);
        r->busy--;
        PyErr_Restore(type, value, trace);
    }
    f->event->end = pt_event_clock();
    f->run = 0;
    if (r->open == f->event->number) {
        r->open = f->event->parent;
        while (r->open >= 0 &&
               pt_recorder_event(r, r->open)->end != 0) /* ended early, as in a generator */
            r->open = pt_recorder_event(r, r->open)->parent;
    }
}

int pt_call_begin(pt_frame *f, PyObject *what, PyObject *const *args, Py_ssize_t n,
                  PyObject *keywords) {
    if (!pt_event_begin(f, PT_EVENT_OP, what))
        return 0;
    f->rule = pt_tls.mode & PT_MODE_RULE;      /* an op called by id inside this op is part of it */
    pt_tls.mode &= ~uint32_t(PT_MODE_RULE);
    if (pt_profile.shapes || pt_profile.device_begin != nullptr) {
        f->recorder->busy++;
        if (pt_profile.shapes)
            pt_profile.inputs(f->recorder, f->event, const_cast<PyObject **>(args), n, keywords);
        if (pt_profile.device_begin != nullptr)
            f->event->device = pt_profile.device_begin(const_cast<PyObject **>(args), n, keywords);
        f->recorder->busy--;
        f->event->start = pt_event_clock();
    }
    return 1;
}

void pt_memory_event(int64_t bytes) {
    pt_recorder *r = here();
    if (r == nullptr || r->paused || r->busy)
        return;
    pt_event *e = new_event(r);
    if (e == nullptr)
        return;
    e->kind = PT_EVENT_MEMORY;
    e->bytes = bytes;
    e->start = e->end = pt_event_clock();
}

int64_t pt_recorder_words(pt_recorder *r, int64_t n) {
    if (r->nwords + n > r->words_room) {
        int64_t room = r->words_room ? 2 * r->words_room : 4096;
        while (room < r->nwords + n)
            room *= 2;
        void *moved = realloc(r->words, sizeof(int64_t) * room);
        if (moved == nullptr) {
            r->lost = 1;
            return -1;
        }
        r->words = static_cast<int64_t *>(moved);
        r->words_room = room;
    }
    const int64_t at = r->nwords;
    r->nwords += n;
    return at;
}

int pt_profile_start(void) {
    pt_profile.run = ++runs;
    pt_profile.first = nullptr;
    if (join() == nullptr) {
        pt_profile.run = 0;
        return 0;
    }
    pt_modes_seen |= PT_SEEN_PROFILE;
    return 1;
}

pt_recorder *pt_profile_stop(void) {
    pt_modes_seen &= ~uint32_t(PT_SEEN_PROFILE);
    pt_profile.run = 0;
    pt_recorder *first = pt_profile.first;
    pt_profile.first = nullptr;
    return first;
}

void pt_recorder_free(pt_recorder *r) {
    if (r->busy)
        return;
    for (int32_t k = 0; k < r->n; k++) {
        pt_event *e = pt_recorder_event(r, k);
        Py_XDECREF(e->what);
        Py_XDECREF(e->stack);
        Py_XDECREF(e->device);
    }
    for (int32_t k = 0; k * PT_EVENT_CHUNK < r->n; k++)
        free(r->chunks[k]);
    free(r->chunks);
    free(r->words);
    free(r);
}

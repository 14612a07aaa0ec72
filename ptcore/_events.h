/* Events: what ran when, on which thread, while a profile is on.
 *
 * No call on the normal path asks whether a profile is on. A profile exchanges the entries that
 * programs call (the vectorcall of an OpFunction and of an Overridable, the operators of the
 * ground's table) for entries that record, and puts the originals back at its end. An event is
 * written in C, into chunks of its own thread; its Python objects are made after the profile.
 */
#ifndef PTCORE_EVENTS_H
#define PTCORE_EVENTS_H
#include <Python.h>
#include <stdint.h>

/* A bit of pt_modes_seen beside those of _state.h, cleared when the profile ends. Methods that are
 * not the function of an op (item, detach) read that word in any case, and learn from this bit that
 * they must record themselves. */
enum { PT_SEEN_PROFILE = 1 << 23 };
/* A bit of the thread's mode word beside those of _state.h: the rule of a node is running and is
 * recorded. Rules call fused derivatives by id, which passes no recording entry, so `elementwise`,
 * which reads the mode word in any case, records them when it finds this bit. */
enum { PT_MODE_RULE = 1 << 24 };

enum pt_event_kind {
    PT_EVENT_OP,            /* `what` is the function that was called */
    PT_EVENT_NODE,          /* the rule of a node; `what` is its name */
    PT_EVENT_ENGINE,        /* the engine's work on a node */
    PT_EVENT_USER,          /* record_function; `what` is its name */
    PT_EVENT_MODULE,        /* the call of a module */
    PT_EVENT_MEMORY         /* `bytes` were allocated (> 0) or freed (< 0) */
};

typedef struct pt_event {
    int64_t start, end;     /* nanoseconds; end 0: the event has not ended */
    PyObject *what;         /* a new reference; NULL: a memory event */
    PyObject *stack;        /* a new reference, or NULL */
    PyObject *device;       /* a new reference to device_begin's note, or NULL */
    int64_t inputs;         /* where the description of the arguments begins in `words`; -1: none */
    uint64_t sequence;      /* count of nodes made so far, or the node's own number */
    int64_t bytes;
    int32_t parent;         /* number of the enclosing event of this thread; -1: none */
    int32_t number;
    int32_t kind;
} pt_event;

enum { PT_EVENT_CHUNK = 1024 };

/* The events of one thread. */
typedef struct pt_recorder {
    struct pt_recorder *next;
    unsigned long thread;   /* Python's identity of the thread */
    unsigned long native;
    pt_event **chunks;
    int32_t n, room;        /* number of events; capacity of `chunks` */
    int32_t open;           /* the innermost event that has not ended; -1: none */
    int64_t *words;         /* descriptions of arguments */
    int64_t nwords, words_room;
    int paused;             /* nonzero: calls are not recorded */
    int busy;               /* an event is being written, while other threads may run */
    int lost;               /* memory for the words ran out */
} pt_recorder;

/* The settings of the profile. `run` differs from profile to profile, and is 0 while none is on. */
typedef struct pt_profile_state {
    uint64_t run;
    int all_threads, shapes, stacks;
    pt_recorder *first;
    /* `inputs` describes the arguments, `stack` the thread's frames; both clear their errors */
    void (*inputs)(pt_recorder *, pt_event *, PyObject **args, Py_ssize_t n, PyObject *keywords);
    PyObject *(*stack)(void);
    /* notes where a device's work for a call begins (device_end: ends), if the call has
     * any; NULL: no device is asked */
    PyObject *(*device_begin)(PyObject **args, Py_ssize_t n, PyObject *keywords);
    void (*device_end)(PyObject *);
    uint64_t (*sequence)(void);
} pt_profile_state;

/* An event that has begun; it lies on the C stack of the function that began it. */
typedef struct pt_frame {
    uint64_t run;           /* 0: nothing is recorded */
    pt_event *event;
    pt_recorder *recorder;
    uint32_t rule;          /* PT_MODE_RULE if pt_event_end has to set it again */
} pt_frame;

#ifdef __cplusplus
extern "C" {
#endif
extern pt_profile_state pt_profile;
int64_t pt_event_clock(void);
/* Begins an event on this thread. False: the thread is not recorded,
 * and there is nothing to end. */
int pt_event_begin(pt_frame *f, int kind, PyObject *what);
void pt_event_end(pt_frame *f);
/* Begins the event of a call and describes its arguments. */
int pt_call_begin(pt_frame *f, PyObject *what, PyObject *const *args, Py_ssize_t n,
                  PyObject *keywords);
void pt_memory_event(int64_t bytes);
/* Reserves n words in the recorder and returns their index; -1: out of memory. */
int64_t pt_recorder_words(pt_recorder *r, int64_t n);
/* The recorder of this thread, or NULL; a thread joins a profile of all threads here. */
pt_recorder *pt_recorder_here(void);
/* Begins a profile on this thread; 0: out of memory. */
int pt_profile_start(void);
/* Ends the profile. The caller frees the recorders that it returns. (A busy
 * recorder is never freed.) */
pt_recorder *pt_profile_stop(void);
void pt_recorder_free(pt_recorder *r);
static inline pt_event *pt_recorder_event(pt_recorder *r, int32_t k) {
    return &r->chunks[k / PT_EVENT_CHUNK][k % PT_EVENT_CHUNK];
}
#ifdef __cplusplus
}
#endif
#endif

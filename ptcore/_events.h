/* Events: what ran when, on which thread, while a profile is on.
 *
 * Nothing on the way of a call asks whether one is. The entries that programs call (the vectorcall
 * of an OpFunction and of an Overridable, the operators of the ground's table) are exchanged for
 * ones that record, and put back when it ends. An event is written in C, into chunks of its own
 * thread; Python objects are made of them when the profile is over.
 */
#ifndef PTCORE_EVENTS_H
#define PTCORE_EVENTS_H
#include <Python.h>
#include <stdint.h>

/* A bit of pt_modes_seen beside those of _state.h, which goes when the profile ends: where that
 * word is looked at in any case, a method that is no function of an op (item, detach) finds there
 * that it is to record itself. */
enum { PT_SEEN_PROFILE = 1 << 23 };
/* A bit of the thread's mode word beside those of _state.h: the rule of a node runs and is
 * recorded. Rules call fused derivatives by id, through no entry; ``elementwise`` finds the bit
 * where it looks at the word in any case. */
enum { PT_MODE_RULE = 1 << 24 };

enum pt_event_kind {
    PT_EVENT_OP,            /* `what` is the function that was called */
    PT_EVENT_NODE,          /* the rule of a node; `what` is its name */
    PT_EVENT_ENGINE,        /* the engine's work on a node */
    PT_EVENT_USER,          /* record_function; `what` is its name */
    PT_EVENT_MODULE,        /* the call of a module */
    PT_EVENT_MEMORY         /* `bytes` were given out, or came back: less than none */
};

typedef struct pt_event {
    int64_t start, end;     /* nanoseconds; end 0: not over */
    PyObject *what;         /* a new reference; NULL: of memory */
    PyObject *stack;        /* a new reference, or NULL */
    PyObject *device;       /* what was noted of a device's work; the same */
    int64_t inputs;         /* where its arguments begin in the words of the thread, -1: nowhere */
    uint64_t sequence;      /* nodes made before, or the number of the node */
    int64_t bytes;
    int32_t parent;         /* of the same thread, -1: none */
    int32_t number;
    int32_t kind;
} pt_event;

enum { PT_EVENT_CHUNK = 1024 };

/* The events of one thread. */
typedef struct pt_recorder {
    struct pt_recorder *next;
    unsigned long thread;   /* Python's identity of it */
    unsigned long native;
    pt_event **chunks;
    int32_t n, room;        /* events; chunks that `chunks` has room for */
    int32_t open;           /* the innermost event that is not over, -1: none */
    int64_t *words;         /* descriptions of arguments */
    int64_t nwords, words_room;
    int paused;             /* calls are left out */
    int busy;               /* an event of it is being written, while other threads may run */
    int lost;               /* there was no memory for a word */
} pt_recorder;

/* What is recorded. `run` is another number for each profile, 0 while there is none. */
typedef struct pt_profile_state {
    uint64_t run;
    int all_threads, shapes, stacks;
    pt_recorder *first;
    /* describe the arguments of a call, name the frames of a thread; errors are cleared by them */
    void (*inputs)(pt_recorder *, pt_event *, PyObject **args, Py_ssize_t n, PyObject *keywords);
    PyObject *(*stack)(void);
    /* notes where the work of a device begins and ends, where a call has any; NULL: devices are not
     * asked */
    PyObject *(*device_begin)(PyObject **args, Py_ssize_t n, PyObject *keywords);
    void (*device_end)(PyObject *);
    uint64_t (*sequence)(void);
} pt_profile_state;

/* An event that has begun, on the C stack of who began it. */
typedef struct pt_frame {
    uint64_t run;           /* 0: nothing is recorded */
    pt_event *event;
    pt_recorder *recorder;
    uint32_t rule;          /* PT_MODE_RULE, where it is to be set again */
} pt_frame;

#ifdef __cplusplus
extern "C" {
#endif
extern pt_profile_state pt_profile;
int64_t pt_event_clock(void);
/* Begins an event on this thread, if it is recorded; false: it is not, and there is nothing to end.
 */
int pt_event_begin(pt_frame *f, int kind, PyObject *what);
void pt_event_end(pt_frame *f);
/* A begun event of a call with its arguments described. */
int pt_call_begin(pt_frame *f, PyObject *what, PyObject *const *args, Py_ssize_t n,
                  PyObject *keywords);
void pt_memory_event(int64_t bytes);
/* Room for n words of the thread, whose place is returned; -1: there is none. */
int64_t pt_recorder_words(pt_recorder *r, int64_t n);
/* Whether this thread is recorded; it joins a profile of all threads. */
pt_recorder *pt_recorder_here(void);
/* A profile begins on this thread; 0: no memory. */
int pt_profile_start(void);
/* It ends; its recorders are the caller's, who frees them. (One that is busy then is never freed.)
 */
pt_recorder *pt_profile_stop(void);
void pt_recorder_free(pt_recorder *r);
static inline pt_event *pt_recorder_event(pt_recorder *r, int32_t k) {
    return &r->chunks[k / PT_EVENT_CHUNK][k % PT_EVENT_CHUNK];
}
#ifdef __cplusplus
}
#endif
#endif

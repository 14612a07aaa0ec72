/* How long chains of nodes are dropped by the limited API, which lacks CPython's trashcan.
 *
 * There Py_CLEAR, by which a type drops its members, keeps what lies more than MOST deep for the outermost call.
 * Without Py_LIMITED_API nothing is changed.
 */
#ifndef PTCORE_DEEP_CHAINS_H
#define PTCORE_DEEP_CHAINS_H
#include "_limited_api.h"

#ifdef Py_LIMITED_API
#include <stdlib.h>

namespace pt_deep_chains {

enum { MOST = 50 };

struct Waiting {
    PyObject **objects = NULL;      /* each with the reference that is to be dropped */
    size_t count = 0, room = 0;
    int depth = 0;
};
inline thread_local Waiting waiting;

inline bool put_off(PyObject *x) {
    Waiting &w = waiting;
    if (w.count == w.room) {
        const size_t room = w.room ? 2 * w.room : 64;
        PyObject **more = (PyObject **)realloc(w.objects, room * sizeof *more);
        if (more == NULL) return false;
        w.objects = more, w.room = room;
    }
    w.objects[w.count++] = x;
    return true;
}

inline void drop(PyObject *x) {
    Waiting &w = waiting;
    if (w.depth >= MOST && put_off(x)) return;
    w.depth++;
    Py_DECREF(x);
    while (w.depth == 1 && w.count) Py_DECREF(w.objects[--w.count]);
    w.depth--;
    if (w.depth == 0 && w.room) {
        free(w.objects);
        w.objects = NULL, w.room = 0;
    }
}

}  // namespace pt_deep_chains

#undef Py_CLEAR
#define Py_CLEAR(op)                                \
    do {                                            \
        PyObject *pt_old = (PyObject *)(op);        \
        if (pt_old != NULL) {                       \
            (op) = NULL;                            \
            pt_deep_chains::drop(pt_old);           \
        }                                           \
    } while (0)
#endif
#endif

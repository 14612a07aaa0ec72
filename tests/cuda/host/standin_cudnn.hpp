// What both halves of the stand-in cuDNN use: numbers, elements, handles, and how work is queued.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <vector>

#include "ptcore/half.h"
#include "refused.hpp"

#define API extern "C" __attribute__((visibility("default")))

namespace standin_cudnn {

enum { SUCCESS = 0, BAD_PARAM = 2000, NOT_SUPPORTED = 3000, FAILED = 5000 };
enum { FLOAT = 0, DOUBLE = 1, HALF = 2, BFLOAT16 = 9 };
enum { WORKSPACE = 64 };
typedef int (*Enqueue)(void *stream, const char *name, void (*f)(void *), void *argument,
                       void (*release)(void *));

struct Handle { void *stream = nullptr; bool set = false; };

inline Enqueue enqueue() {
    static const Enqueue f = [] {
        void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        return cuda ? (Enqueue)dlsym(cuda, "standin_enqueue") : nullptr;
    }();
    return f;
}

inline double get(const void *p, int64_t i, int type) {
    switch (type) {
    case FLOAT: return ((const float *)p)[i];
    case DOUBLE: return ((const double *)p)[i];
    case HALF: return pt::to_float(((const pt::half *)p)[i]);
    default: return pt::to_float(((const pt::bfloat16 *)p)[i]);
    }
}
inline void put(void *p, int64_t i, int type, double v) {
    switch (type) {
    case FLOAT: ((float *)p)[i] = (float)v; break;
    case DOUBLE: ((double *)p)[i] = v; break;
    case HALF: ((pt::half *)p)[i] = pt::to_half((float)v); break;
    default: ((pt::bfloat16 *)p)[i] = pt::to_bfloat16((float)v);
    }
}

// run(*work) as a kernel would run, on the handle's stream.
template <class Work, void (*RUN)(const Work &)> int queued(const Handle &h, const Work &work) {
    return enqueue() && !enqueue()(
                            h.stream, "cudnn", [](void *p) { RUN(*(Work *)p); }, new Work(work),
                            [](void *p) { delete (Work *)p; })
               ? SUCCESS
               : FAILED;
}

// Launched so far, heuristics asked, whether they find nothing.
extern int launched, choices;
extern bool declines;

}  // namespace standin_cudnn

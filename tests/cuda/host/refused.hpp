// Whether a capture forbids a library's call: one that allocates memory, or one that also waits.
#pragma once
#include <dlfcn.h>

enum Forbidden { ALLOCATES = 1, WAITS = 2 };

inline bool refused(Forbidden kind) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const auto f = cuda ? (int (*)(int))dlsym(cuda, "standin_refused") : nullptr;
    return f && f(kind);
}

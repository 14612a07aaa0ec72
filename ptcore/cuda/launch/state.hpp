// The state of a thread: the current device and, for every device, the current stream (NULL: the
// default stream) and the private pool for its memory (0: the common pool).
#pragma once
#include "driver.hpp"

namespace pt_cuda {

struct ThreadState {
    int device = 0;
    void *streams[MAX_DEVICES] = {};
    uint64_t pools[MAX_DEVICES] = {};
};

inline ThreadState &thread_state() {
    static thread_local ThreadState state;
    return state;
}

}  // namespace pt_cuda

// What each thread has of its own: the current device, and the current stream of every device (NULL: the default stream).
#pragma once
#include "driver.hpp"

namespace pt_cuda {

struct ThreadState {
    int device = 0;
    void *streams[MAX_DEVICES] = {};
};

inline ThreadState &thread_state() {
    static thread_local ThreadState state;
    return state;
}

}  // namespace pt_cuda

// Handles of a library, one for each thread and device: a handle serves one thread at a time, and
// goes back to a pool when its thread ends.
#pragma once
#include <mutex>
#include <vector>

#include "driver.hpp"

namespace pt_cuda {

// Each library has one thread_local object. H is the record of a handle; H::handle is NULL until
// the handle is made.
template <class H> class Handles {
public:
    Handles() = default;
    Handles(const Handles &) = delete;
    Handles &operator=(const Handles &) = delete;
    ~Handles() {
        std::lock_guard<std::mutex> guard(pool().lock);
        for (int i = 0; i < MAX_DEVICES; i++)
            if (of[i].handle) pool().idle[i].push_back(of[i]);
    }
    // The thread's record; if that is empty, an idle handle, or a record to make a handle in.
    H &at(int device) {
        H &h = of[device];
        if (h.handle) return h;
        std::lock_guard<std::mutex> guard(pool().lock);
        std::vector<H> &idle = pool().idle[device];
        if (!idle.empty()) {
            h = idle.back();
            idle.pop_back();
        }
        return h;
    }

private:
    struct Pool {
        std::mutex lock;
        std::vector<H> idle[MAX_DEVICES];
    };
    static Pool &pool() {                       // never destroyed, as threads may outlive main
        static Pool &p = *new Pool;
        return p;
    }
    H of[MAX_DEVICES];
};

}  // namespace pt_cuda

// Threads that take turns: each has a stack of its own, and one switches to another by saving a handful of registers.
#pragma once
#include <cstddef>

namespace standin {

// A stack between pages that may not be touched.
struct Stack {
    char *low = nullptr;
    size_t bytes = 0;
};

class Fiber {
public:
    typedef void (*Main)(void *);
    // `main` never returns; a fiber that is started again begins anew, whatever it was doing.
    void start(Main main, void *argument, size_t stack_bytes);
    void resume();                  // from the scheduler's stack: runs until this fiber waits
    void wait();                    // from this fiber's stack: back to the scheduler
    bool started() const { return here != nullptr; }
    void forget() { here = nullptr; }       // its next start begins anew, on the same stack
    ~Fiber();
private:
    void *here = nullptr, *scheduler = nullptr;     // saved stack pointers
    void *fake = nullptr, *scheduler_fake = nullptr;
    const void *scheduler_low = nullptr;
    size_t scheduler_bytes = 0;
    Main main = nullptr;
    void *argument = nullptr;
    Stack stack;
    // The first function on a new stack.
    static void entry(Fiber *fiber);
    friend void fiber_entry(void *);
};

}  // namespace standin

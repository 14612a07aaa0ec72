// Threads that take turns: each has a stack of its own, and one switches to another by saving a
// handful of registers. There is one scheduler, which runs on the stack of whoever calls resume.
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
    void resume();                  // from the scheduler's stack: runs until some fiber waits
    void wait();                    // from this fiber's stack: back to where resume was called
    void pass(Fiber &to);           // from this fiber's stack: goes on with another one
    bool started() const { return here != nullptr; }
    void forget() { here = nullptr; }       // its next start begins anew, on the same stack
    ~Fiber();
private:
    void *here = nullptr,
         *fake = nullptr;    // the saved stack pointer, and AddressSanitizer's view of the stack
    Main main = nullptr;
    void *argument = nullptr;
    Stack stack;
    // The first function on a new stack.
    static void entry(Fiber *fiber);
    void arrived();
    friend void fiber_entry(void *);
};

}  // namespace standin

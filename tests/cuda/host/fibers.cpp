// The switch between stacks: assembly for x86-64 and aarch64, ucontext elsewhere or with
// -DPT_UCONTEXT.
//
// Under AddressSanitizer (looked up at run time: the programs may be instrumented where the driver
// is not) each switch is announced, or it takes a fiber's stack for a fault.
#include "fibers.hpp"

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(PT_UCONTEXT) && (defined(__x86_64__) || defined(__aarch64__))
#  define PT_ASSEMBLY 1
#else
#  include <ucontext.h>
#endif

namespace standin {

#if PT_ASSEMBLY
// Pushes what a function must keep, stores the stack pointer in *from, goes on where `to` was
// stored.
extern "C" void pt_standin_switch(void **from, void *to);
extern "C" void pt_standin_begin();
#  if defined(__x86_64__)
asm(R"(
    .text
    .p2align 4
    .globl pt_standin_switch
    .hidden pt_standin_switch
    .type pt_standin_switch, @function
pt_standin_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size pt_standin_switch, .-pt_standin_switch
    .globl pt_standin_begin
    .hidden pt_standin_begin
    .type pt_standin_begin, @function
pt_standin_begin:
    movq %rbx, %rdi
    callq *%r12
    ud2
    .size pt_standin_begin, .-pt_standin_begin
)");
#  else
asm(R"(
    .text
    .p2align 4
    .globl pt_standin_switch
    .hidden pt_standin_switch
    .type pt_standin_switch, %function
pt_standin_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size pt_standin_switch, .-pt_standin_switch
    .globl pt_standin_begin
    .hidden pt_standin_begin
    .type pt_standin_begin, %function
pt_standin_begin:
    mov x0, x19
    blr x20
    brk #1
    .size pt_standin_begin, .-pt_standin_begin
)");
#  endif
#endif

namespace {

typedef void (*StartSwitch)(void **fake, const void *low, size_t bytes);
typedef void (*FinishSwitch)(void *fake, const void **low, size_t *bytes);

struct Sanitizer {
    StartSwitch start = (StartSwitch)dlsym(RTLD_DEFAULT, "__sanitizer_start_switch_fiber");
    FinishSwitch finish = (FinishSwitch)dlsym(RTLD_DEFAULT, "__sanitizer_finish_switch_fiber");
    // Frames that were given up leave red zones behind.
    void (*unpoison)(const void *, size_t) =
        (void (*)(const void *, size_t))dlsym(RTLD_DEFAULT, "__asan_unpoison_memory_region");
};
const Sanitizer sanitizer;

// Where resume was called.
void *scheduler, *scheduler_fake;
const void *scheduler_low;
size_t scheduler_bytes;
bool from_scheduler;

#if !PT_ASSEMBLY
void ucontext_entry(unsigned high, unsigned low);
#endif

void jump(void **from, void *to) {
#if PT_ASSEMBLY
    pt_standin_switch(from, to);
#else
    ucontext_t context;
    *from = &context;
    swapcontext(&context, static_cast<ucontext_t *>(to));
#endif
}

}  // namespace

void fiber_entry(void *p) { Fiber::entry(static_cast<Fiber *>(p)); }

#if !PT_ASSEMBLY
namespace {
void ucontext_entry(unsigned high, unsigned low) {
    fiber_entry(reinterpret_cast<void *>((uintptr_t)((uint64_t)high << 32 | low)));
}
}  // namespace
#endif

// On a fiber's stack after a switch to it.
inline void Fiber::arrived() {
    if (!sanitizer.finish) return;
    sanitizer.finish(fake, from_scheduler ? &scheduler_low : nullptr,
                     from_scheduler ? &scheduler_bytes : nullptr);
    from_scheduler = false;
}

void Fiber::entry(Fiber *fiber) {
    fiber->arrived();
    fiber->main(fiber->argument);
    abort();
}

void Fiber::start(Main main_, void *argument_, size_t stack_bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    main = main_;
    argument = argument_;
    fake = nullptr;
    if (stack.low && stack.bytes < stack_bytes) {
        munmap(stack.low - page, stack.bytes + 2 * page);
        stack.low = nullptr;
    }
    if (stack.low && sanitizer.unpoison) sanitizer.unpoison(stack.low, stack.bytes);
    if (!stack.low) {
        stack.bytes = stack_bytes;
        void *p = mmap(nullptr, stack_bytes + 2 * page, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED || mprotect((char *)p + page, stack_bytes, PROT_READ | PROT_WRITE))
            throw std::bad_alloc();
        stack.low = (char *)p + page;
    }
#if PT_ASSEMBLY
    // Stacks begin at different offsets in their pages, or the caches would keep them all in the
    // same few lines.
    const size_t offset = ((uintptr_t)this / 64 * 192) & 4032u;
    void **top = reinterpret_cast<void **>(stack.low + stack.bytes - offset);
#  if defined(__x86_64__)
    // As pt_standin_switch would have left it; at its `ret` the stack is 8 off a multiple of 16, at
    // the call it is even.
    *--top = nullptr;
    *--top = nullptr;
    *--top = reinterpret_cast<void *>(&pt_standin_begin);
    *--top = nullptr;                                       // rbp
    *--top = this;                                          // rbx
    *--top = reinterpret_cast<void *>(&fiber_entry);        // r12
    *--top = nullptr;
    *--top = nullptr;
    *--top = nullptr;
#  else
    top -= 20;
    for (int i = 0; i < 20; i++) top[i] = nullptr;
    top[0] = this;                                          // x19
    top[1] = reinterpret_cast<void *>(&fiber_entry);        // x20
    top[11] = reinterpret_cast<void *>(&pt_standin_begin);  // x30
#  endif
    here = top;
#else
    // The context lies at the top of the fiber's own stack.
    ucontext_t *context = reinterpret_cast<ucontext_t *>(
        (uintptr_t)(stack.low + stack.bytes - sizeof(ucontext_t)) & ~(uintptr_t)63);
    getcontext(context);
    context->uc_stack.ss_sp = stack.low;
    context->uc_stack.ss_size = (size_t)((char *)context - stack.low) & ~(size_t)63;
    context->uc_link = nullptr;
    const uint64_t address = (uint64_t)(uintptr_t)this;
    makecontext(context, (void (*)())ucontext_entry, 2, (unsigned)(address >> 32),
                (unsigned)address);
    here = context;
#endif
}

void Fiber::resume() {
    if (sanitizer.start) sanitizer.start(&scheduler_fake, stack.low, stack.bytes);
    from_scheduler = true;
    jump(&scheduler, here);
    if (sanitizer.finish) sanitizer.finish(scheduler_fake, nullptr, nullptr);
}

void Fiber::wait() {
    if (sanitizer.start) sanitizer.start(&fake, scheduler_low, scheduler_bytes);
    jump(&here, scheduler);
    arrived();
}

// Fibers that wait at the same place return to the same addresses: processors predict that, unlike
// a way through the scheduler.
void Fiber::pass(Fiber &to) {
    if (sanitizer.start) sanitizer.start(&fake, to.stack.low, to.stack.bytes);
    jump(&here, to.here);
    arrived();
}

Fiber::~Fiber() {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (stack.low) munmap(stack.low - page, stack.bytes + 2 * page);
}

}  // namespace standin

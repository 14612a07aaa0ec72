// The threads of one block, as fibers: a random warp runs ahead a random number of steps, its lanes
// in a random order.
//
// A step lets each chosen lane run to its next meeting. Who waits chooses the next thread and
// switches to it. Meetings complete when everybody has come; when nobody can go on and not all have
// returned, somebody waits for threads that never come, which is the launch's failure.
#include "scheduler.hpp"

#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "fibers.hpp"

namespace standin {

unsigned block_interval, warp_intervals[32];

namespace {

enum State { READY, AT_BLOCK, AT_WARP, RETURNED };

struct Thread {
    Fiber fiber;
    int index = 0;
    uint3 at = {0, 0, 0};
    State state = READY;
    int what = 0, from = 0, line = 0;
    unsigned mask = 0;
    uint64_t value = 0, result = 0;
    const char *file = "";
};

struct Warp {
    unsigned ready, present, returned;
    // The meeting that lanes wait at; `mixed` if they wait at different ones.
    unsigned waiting, mask;
    int what;
    bool mixed;
};

const int MOST = 1024;
auto &threads = *new std::vector<std::unique_ptr<Thread>>;
Warp warps[MOST / 32];
int count, warp_count, at_barrier, returned;
Thread *current;
int barrier_first;              // the thread that came first to the barrier that some wait at
uint64_t gathered, barrier_result;
bool dirty;                     // fibers stopped in the middle of a kernel
const Launch *job;
Failure *failure;
Random *rng;
pt_host_state *host;

const char *const MEETINGS[] = {"__syncthreads",       "__syncthreads_or", "__syncthreads_and",
                                "__syncthreads_count", "__syncwarp",       "__shfl_sync",
                                "__shfl_up_sync",      "__shfl_down_sync", "__shfl_xor_sync",
                                "__ballot_sync",       "__any_sync",       "__all_sync",
                                "__match_any_sync"};

// The step that is under way: of `warp`, which takes `steps` more; `lanes` of it from the `i`th
// place of an order on.
struct Turn {
    int warp, steps;
    unsigned i, lanes, start, stride;
} turn;

void begin_step() {
    turn.lanes = warps[turn.warp].ready;
    if (rng->below(4) == 0) {           // some lanes run ahead of the others
        const unsigned some = turn.lanes & rng->next();
        if (some) turn.lanes = some;
    }
    const uint32_t r = rng->next();
    turn.i = 0;
    turn.start = r & 31u;
    turn.stride = (r >> 5 & 31u) | 1u;
}

void report_stuck();

// Who runs next; NULL when the block is done or has failed.
Thread *next() {
    for (;;) {
        if (failure->code) return nullptr;
        while (turn.i < 32) {
            const unsigned lane = (turn.start + turn.i++ * turn.stride) & 31u;
            if (turn.lanes >> lane & 1u) return threads[turn.warp * 32 + lane].get();
        }
        if (turn.steps && warps[turn.warp].ready) {
            turn.steps--;
            begin_step();
            continue;
        }
        if (returned == count) return nullptr;
        int runnable[MOST / 32], n = 0;
        for (int i = 0; i < warp_count; i++)
            if (warps[i].ready) runnable[n++] = i;
        if (!n) {
            report_stuck();
            return nullptr;
        }
        turn.warp = runnable[rng->below((uint32_t)n)];
        const uint32_t r = rng->next();
        // a step or a few, or as far as the warp comes alone
        turn.steps = r & 3u ? (int)(r >> 2 & 7u) : 1 << 20;
        begin_step();
    }
}

void switch_to(Thread *t) {
    current = t;
    host->thread = t->at;
    host->lane = (unsigned)t->index & 31u;
}

// From a thread that has to wait.
void yield(Thread &t) {
    Thread *to = next();
    if (to == &t) return;
    if (!to) {
        t.fiber.wait();
        return;
    }
    switch_to(to);
    t.fiber.pass(to->fiber);
}

std::string thread_text(const Thread &t) {
    if (t.state == RETURNED) return "thread " + std::to_string(t.index) + " has returned";
    return "thread " + std::to_string(t.index) + " waits at " + MEETINGS[t.what] + " (" +
           site(t.file, t.line) + ")";
}

[[noreturn]] __attribute__((noinline, cold)) void give_up(const std::string &text) {
    failure->code = 719;
    failure->text = where(*job) + text;
    for (;;) current->fiber.wait();
}

[[noreturn]] __attribute__((noinline, cold)) void not_in_mask(const Thread &t) {
    give_up("thread " + std::to_string(t.index) + " is not in the mask of its own " +
            MEETINGS[t.what] + " (" + site(t.file, t.line) + ")");
}

[[noreturn]] __attribute__((noinline, cold)) void two_barriers(const Thread &first, Thread &t) {
    t.state = AT_BLOCK;
    give_up("threads meet at different barriers: " + thread_text(first) + ", " + thread_text(t));
}

void fiber_main(void *p) {
    Thread *t = static_cast<Thread *>(p);
    for (;;) {
        job->entry(job->args);
        t->state = RETURNED;
        Warp &w = warps[t->index >> 5];
        w.ready &= ~(1u << (t->index & 31));
        w.returned |= 1u << (t->index & 31);
        returned++;
        yield(*t);
    }
}

// All lanes of `mask` have come to the same meeting: their results, and they may go on.
void complete_warp(int warp, unsigned mask, int what) {
    Warp &w = warps[warp];
    unsigned votes = 0;
    for (int i = 0; i < 32; i++)
        if (mask & w.present & 1u << i && threads[warp * 32 + i]->value) votes |= 1u << i;
    for (int i = 0; i < 32; i++) {
        if (!(mask & w.present & 1u << i)) continue;
        Thread &t = *threads[warp * 32 + i];
        switch (what) {
        case PT_MEET_BALLOT: t.result = votes; break;
        case PT_MEET_ANY: t.result = votes != 0; break;
        case PT_MEET_ALL: t.result = votes == (mask & w.present); break;
        case PT_MEET_MATCH:
            t.result = 0;
            for (int j = 0; j < 32; j++)
                if (mask & w.present & 1u << j && threads[warp * 32 + j]->value == t.value)
                    t.result |= 1u << j;
            break;
        case PT_MEET_WARP: t.result = 0; break;
        default:        // a lane outside of the mask has no value
            t.result = mask & w.present & 1u << (t.from & 31)
                           ? threads[warp * 32 + (t.from & 31)]->value
                           : ~(uint64_t)0;
        }
        t.state = READY;
    }
    if (what == PT_MEET_WARP) warp_intervals[warp]++;
    w.ready |= mask & w.present;
    w.waiting &= ~mask;
    if (!w.waiting) w.mixed = false;
}

uint64_t meet_warp(Thread &t) {
    const int warp = t.index >> 5;
    const unsigned bit = 1u << (t.index & 31);
    Warp &w = warps[warp];
    if (!(t.mask & bit)) not_in_mask(t);
    if (!w.waiting) {
        w.mask = t.mask;
        w.what = t.what;
    } else if (w.mask != t.mask || w.what != t.what) {
        w.mixed = true;
    }
    w.waiting |= bit;
    w.ready &= ~bit;
    t.state = AT_WARP;
    const unsigned all = t.mask & w.present;
    bool complete = (w.waiting & all) == all;
    if (complete && w.mixed)
        for (int i = 0; i < 32; i++)
            if (all & 1u << i) {
                const Thread &other = *threads[warp * 32 + i];
                complete = complete && other.what == t.what && other.mask == t.mask;
            }
    if (complete) complete_warp(warp, t.mask, t.what);
    yield(t);
    return t.result;
}

uint64_t meet_block(Thread &t) {
    const int warp = t.index >> 5;
    if (!at_barrier) {
        barrier_first = t.index;
        gathered = t.what == PT_MEET_BLOCK_AND;
    } else {
        const Thread &first = *threads[barrier_first];
        if (first.line != t.line || first.what != t.what ||
            (first.file != t.file && strcmp(first.file, t.file)))
            two_barriers(first, t);
    }
    gathered = t.what == PT_MEET_BLOCK_AND  ? gathered & t.value
               : t.what == PT_MEET_BLOCK_OR ? gathered | t.value
                                            : gathered + t.value;
    t.state = AT_BLOCK;
    warps[warp].ready &= ~(1u << (t.index & 31));
    if (++at_barrier == count) {
        barrier_result = gathered;
        at_barrier = 0;
        block_interval++;
        for (int i = 0; i < count; i++) threads[i]->state = READY;
        for (int i = 0; i < warp_count; i++) warps[i].ready = warps[i].present;
    }
    yield(t);
    return barrier_result;
}

void report_stuck() {
    const Thread *waits = nullptr, *other = nullptr;
    for (int i = 0; i < count && !waits; i++)
        if (threads[i]->state == AT_BLOCK || threads[i]->state == AT_WARP) waits = threads[i].get();
    if (at_barrier) waits = threads[barrier_first].get();
    int missing = 0;
    for (int i = 0; i < count; i++) {
        const Thread &t = *threads[i];
        bool comes = t.state == waits->state && t.what == waits->what && t.mask == waits->mask;
        bool needed = waits->state == AT_BLOCK ||
                      (i >> 5 == waits->index >> 5 && waits->mask >> (i & 31) & 1u);
        if (!needed || comes) continue;
        if (!missing++) other = &t;
    }
    failure->code = 719;
    failure->text = where(*job) + thread_text(*waits) + " for " + std::to_string(missing) +
                    " others that never come" +
                    (other ? ": " + thread_text(*other) : std::string());
}

}  // namespace

uint64_t meet_on_fiber(int what, unsigned mask, uint64_t value, int from, const char *file,
                       int line) {
    Thread &t = *current;
    t.what = what;
    t.mask = mask;
    t.value = value;
    t.from = from;
    t.file = file;
    t.line = line;
    return what <= PT_MEET_BLOCK_COUNT ? meet_block(t) : meet_warp(t);
}

unsigned active_on_fiber() {
    const Warp &w = warps[current->index >> 5];
    return w.present & ~w.returned;
}

void leave_fiber() {
    for (;;) current->fiber.wait();
}

void run_block(const Launch &launch, Random &random, Failure &out) {
    job = &launch;
    failure = &out;
    rng = &random;
    host = host_state();
    count = (int)(launch.block.x * launch.block.y * launch.block.z);
    warp_count = (count + 31) / 32;
    at_barrier = returned = 0;
    block_interval = 0;
    memset(warp_intervals, 0, sizeof warp_intervals);
    while ((int)threads.size() < count) threads.emplace_back(new Thread);
    if (dirty)
        for (auto &t : threads) t->fiber.forget();
    dirty = true;
    for (int i = 0; i < count; i++) {
        Thread &t = *threads[i];
        t.index = i;
        t.at = uint3{i % launch.block.x, i / launch.block.x % launch.block.y,
                     i / (launch.block.x * launch.block.y)};
        t.state = READY;
        if (!t.fiber.started()) t.fiber.start(fiber_main, &t, stack_bytes());
    }
    for (int i = 0; i < warp_count; i++) {
        const int lanes = count - i * 32;
        warps[i] = Warp{};
        warps[i].present = warps[i].ready = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
    }
    turn = Turn{0, 0, 32, 0, 0, 1};
    if (Thread *first = next()) {
        switch_to(first);
        first->fiber.resume();
    }
    dirty = out.code != 0;
}

}  // namespace standin

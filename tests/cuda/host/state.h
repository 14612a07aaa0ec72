// What a kernel of the host and the stand-in driver share: where the running thread is, and the
// calls by which it waits.
#pragma once
#include <stdint.h>

struct uint3 { unsigned x, y, z; };
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// Where threads meet; the driver checks that all who must come are at the same kind of meeting.
enum pt_meeting {
    PT_MEET_BLOCK, PT_MEET_BLOCK_OR, PT_MEET_BLOCK_AND, PT_MEET_BLOCK_COUNT,
    PT_MEET_WARP, PT_MEET_SHUFFLE, PT_MEET_SHUFFLE_UP, PT_MEET_SHUFFLE_DOWN, PT_MEET_SHUFFLE_XOR,
    PT_MEET_BALLOT, PT_MEET_ANY, PT_MEET_ALL, PT_MEET_MATCH
};

enum pt_access { PT_READ, PT_WRITE, PT_ATOMIC_ACCESS };

struct pt_host_state {
    uint3 thread, block;
    dim3 block_dim, grid_dim;
    unsigned lane;
    unsigned
        dynamic_bytes;    // of dynamic shared memory, which ends at a page that may not be touched
    char *dynamic;
    // Waits for the others; `lane` is the one whose value a shuffle asks for. `mask` is 0 for the
    // whole block.
    uint64_t (*meet)(int what, unsigned mask, uint64_t value, int lane, const char *file, int line);
    unsigned (*active)();
    void (*stop)(int code, const char *text, const char *file, int line);       // does not return
    // Of programs that are compiled to be checked for races (PT_HOST_RACES): each access to memory,
    // each fence.
    void (*access)(const void *p, uint64_t bytes, int kind, const void *pc);
    void (*fence)();
};

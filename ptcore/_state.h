/* The per-thread state that every op consults, and the flag bits of a Tensor.
 *
 * One test guards the fast path: (flags of all operands | pt_tls.mode) & PT_SLOW.
 * Mode bits and flag bits share one numbering so that they can be ORed.
 */
#ifndef PTCORE_STATE_H
#define PTCORE_STATE_H
#include <stdint.h>

enum {
    /* tensor flags */
    PT_REQUIRES_GRAD = 1 << 0,  /* a leaf that asks for grad, or a result with a grad_fn */
    PT_NONCONTIGUOUS = 1 << 1,  /* set iff not C-contiguous */
    PT_SUBCLASS = 1 << 2,       /* its class overrides __torch_function__ */
    PT_NON_CPU = 1 << 3,        /* on a device other than the CPU, meta included */
    PT_INTERPOSED = 1 << 4, /* tensor: has an interpreter's payload; mode: an interpreter is on */
    PT_VIEW = 1 << 5, /* a differentiable view: base is set */
    PT_DATA = 1 << 6, /* has its own counter of writes, apart from its storage's (.data) */
    PT_INFERENCE = 1 << 7, /* made under inference_mode */
    PT_TANGENT = 1 << 8, /* carries a forward-mode tangent */
    PT_NOT_EXACT = 1 << 9, /* its type is a subclass of Tensor (Parameter included) */
    PT_NO_GRAD_VIEW = 1 << 10, /* a view made while grad mode was off */
    PT_MULTI_VIEW = 1 << 11, /* one of several views made by one call (split, unbind) */
    PT_RETAIN_GRAD = 1 << 12,
    PT_LAYOUT = 1 << 13, /* not strided: its layout byte names the layout */
    PT_STANDARD = 1 << 14, /* from the array API's namespace, or computed from such tensors: 0-d
                              tensors promote like others */
    PT_VALUELESS = 1 << 15, /* a stand-in without data of its own: its strides have no meaning */
    /* mode bits only */
    PT_MODE_AUTOCAST = 1 << 16,
    PT_MODE_FUNCTION = 1 << 17, /* a TorchFunctionMode is active */
    PT_MODE_SAVED_HOOKS = 1 << 18,
    PT_SEEN_ANOMALY = 1 << 19, /* in pt_modes_seen only, cleared at its end: anomaly mode, which is
                                  process-wide */
    PT_MODE_PLANNING = 1 << 21, /* kernels that run are recorded in a plan: see _ops/plan */
    PT_MODE_NO_LINES = 1 << 22, /* nodes do not keep the user's line */
    PT_FOREIGN = 1 << 20, /* of arguments: one that is not a tensor has a __torch_function__ */
    /* bits 23 to 25 belong to profiles: see _events.h and _memory/watch.h */

    PT_SLOW = PT_SUBCLASS | PT_NON_CPU | PT_INTERPOSED | PT_TANGENT | PT_INFERENCE |
        PT_MODE_AUTOCAST | PT_MODE_FUNCTION | PT_MODE_PLANNING | PT_LAYOUT | PT_FOREIGN,
    PT_RECORD_SLOW = PT_VIEW | PT_MODE_SAVED_HOOKS
};

typedef struct pt_state {
    uint32_t mode;
    uint8_t grad_enabled;
    uint8_t inference;
    uint8_t torch_function_off;
    uint8_t device_set;         /* a default device is set: see _device.pyx */
    uint8_t value_read;         /* a value was read from a tensor; cleared by plans only */
    uint8_t
        autocast; /* a bit for each device column; if any is set, so is PT_MODE_AUTOCAST */
    uint8_t autocast_dtype[8];  /* for each column; 0: the default */
    uint8_t autocast_uncached;  /* casts of parameters are not cached */
    int autocast_depth;      /* nesting of contexts; cached casts are dropped after the outermost */
    void *plan,
        *planner; /* the recording pt_plan and its Plan, while PT_MODE_PLANNING is set; borrowed */
    void *stacks; /* the thread's Stacks (_state.pyx), borrowed; NULL: no stack used yet */
} pt_state;

#ifdef __cplusplus
extern "C" {
#endif
pt_state *pt_state_get(void);
/* The mode bits that any thread has ever had. Code that does not need the thread's state otherwise
 * looks at this word first, which costs no call. */
extern uint32_t pt_modes_seen;
/* Called for each storage that is made while the thread records a plan. */
struct pt_storage;
extern void (*pt_on_storage)(struct pt_storage *);
#ifdef __cplusplus
}
extern thread_local pt_state pt_tls;
#endif
#endif

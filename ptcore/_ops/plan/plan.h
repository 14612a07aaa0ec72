/* A plan: a recorded list of calls of kernels and loops, which runs again on
 * other memory without Python.
 *
 * While a plan is recorded, dispatch runs every call as usual and tells the plan about it: the
 * kernel, its memory, sizes and strides. Memory is a list of buffers. At the end of recording each
 * buffer has a kind, temporary buffers get places in one arena, and runs of elementwise steps
 * become groups that run tile by tile. A run binds addresses to the buffers that are not temporary,
 * and calls one step after the other.
 *
 * A plan has no dtype rules, no broadcasting and no devices: dispatch has resolved
 * all of these when it records.
 */
#ifndef PTCORE_PLAN_H
#define PTCORE_PLAN_H
#include "loops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pt_plan pt_plan;

/* The kinds of memory that hold a buffer's bytes during a run. */
enum pt_buffer_kind {
    PT_BUFFER_TEMPORARY = 0, /* part of the arena, shared with others at other times */
    PT_BUFFER_BOUND = 1, /* memory given to pt_plan_bind: arguments, constants */
    PT_BUFFER_RESULT =
        2 /* the same, but new at each run; temporary buffers may use it until it is written */
};

enum { PT_PLAN_DONE = -1 };

/* Passes the kernels in use to plans, which know some of them by name. */
void pt_plan_meet(const pt_kernel_entry *kernels);

pt_plan *pt_plan_new(void);
void pt_plan_delete(pt_plan *p);

/* -- recording ---- */

/* Adds memory that steps may use; returns the buffer's number. Buffers do not overlap. */
int pt_plan_add_buffer(pt_plan *p, char *data, int64_t nbytes);
int pt_plan_buffer_of(const pt_plan *p, const char *data);      /* -1: none */
/* Whether calls are only recorded, not run: memory that is not touched costs nothing. */
void pt_plan_set_dry(pt_plan *p, int dry);
int pt_plan_is_dry(const pt_plan *p);
/* Record a call that has been run. 0, or -1 if the call uses memory that is in no buffer (then it
 * is not recorded, and the plan is spoilt). */
int pt_plan_add_kernel(pt_plan *p, const char *name, pt_kernel kernel, const pt_call *call,
                       int random);
int pt_plan_add_loops(pt_plan *p, const pt_elementwise *op, int compute, int loop_out,
                      const pt_view *out, const pt_view *in, int nin, const void *params,
                      int64_t params_bytes);
int pt_plan_add_copy(pt_plan *p, const pt_view *dst, const pt_view *src);
/* Adds a point where pt_plan_run returns, for work other than kernels. */
void pt_plan_add_pause(pt_plan *p);
/* Says that the work at the last pause reads or writes a buffer. */
void pt_plan_pause_reads(pt_plan *p, int buffer);
/* Says why the plan cannot be run; pt_plan_spoilt returns the first reason, or NULL. */
void pt_plan_spoil(pt_plan *p, const char *why);
const char *pt_plan_spoilt(const pt_plan *p);
int64_t pt_plan_length(const pt_plan *p);                       /* steps so far */
void pt_plan_cut(pt_plan *p, int64_t length); /* drops the steps from there on, and the reason */

/* -- the end of recording ---- */

/* For every buffer, before pt_plan_finish. */
void pt_plan_set_kind(pt_plan *p, int buffer, int kind);
int pt_plan_kind(const pt_plan *p, int buffer);
/* Whether a step writes to a buffer. */
int pt_plan_writes(const pt_plan *p, int buffer);
/* Groups steps and gives temporary buffers their places. `fuse` 0:
 * every step stays by itself. */
void pt_plan_finish(pt_plan *p, int fuse);
int64_t pt_plan_arena_bytes(const pt_plan *p);
int64_t pt_plan_work(const pt_plan *p); /* elements that the largest step touches */
int64_t pt_plan_draws(const pt_plan *p,
                      int64_t step); /* random steps from `step` on, up to the next pause */
const char *pt_plan_step_name(const pt_plan *p, int64_t step);  /* NULL: no such step */

/* -- plans that others run on tiles, in many threads at once ---- */

/* Makes a single group of all steps, after pt_plan_finish. 0: that is not possible,
 * and the plan is as before. */
int pt_plan_make_tile(pt_plan *p);
/* Runs the group's first `count` elements on the memory given for each buffer. */
void pt_plan_run_tile(const pt_plan *p, char *const *buffers, int64_t count);

/* -- runs, one at a time ---- */

void pt_plan_set_arena(pt_plan *p, char *arena);                /* 64-byte aligned */
char *pt_plan_address(const pt_plan *p, int buffer);            /* a buffer's present address */
int pt_plan_host(const pt_plan *p,
                 int buffer); /* the result in which a temporary buffer lies, or -1 */
void pt_plan_bind(pt_plan *p, int buffer, char *data);
/* Runs from step *at to the end (PT_OK, *at = PT_PLAN_DONE) or to a pause (PT_OK, *at = the step
 * after the pause). Any other status is that of a failed step, step *at. `offset` is the stream
 * position of the first random draw. */
int pt_plan_run(pt_plan *p, int64_t *at, uint64_t seed, uint64_t offset, void *twister,
                const char **error);

#ifdef __cplusplus
}
#endif
#endif

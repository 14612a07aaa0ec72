/* A plan: calls of kernels and loops that were recorded once, and run again on other memory without
 * Python.
 *
 * While a plan is recorded, dispatch runs every call as ever and tells the plan what it ran: which
 * kernel, on which memory, of which sizes and strides. Memory is a list of buffers. At the end each
 * buffer has a kind, temporary ones get a place in one arena, and runs of elementwise steps become
 * groups that go through tiles. A run binds addresses to the buffers that are not temporary and
 * calls one step after the other.
 *
 * A plan knows no dtype rule, no broadcasting and no device: all of that has happened when it was
 * recorded.
 */
#ifndef PTCORE_PLAN_H
#define PTCORE_PLAN_H
#include "loops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pt_plan pt_plan;

/* What holds a buffer's bytes during a run. */
enum pt_buffer_kind {
    PT_BUFFER_TEMPORARY = 0, /* a part of the arena, which others use before and after */
    PT_BUFFER_BOUND = 1, /* memory that pt_plan_bind names: arguments, constants */
    PT_BUFFER_RESULT =
        2 /* the same, new at each run: until it is written, temporary buffers may lie in it */
};

enum { PT_PLAN_DONE = -1 };

/* Tells of the kernels in use, some of which plans know by their names. */
void pt_plan_meet(const pt_kernel_entry *kernels);

pt_plan *pt_plan_new(void);
void pt_plan_delete(pt_plan *p);

/* -- recording ---- */

/* Memory that steps may name; the number of the buffer. Buffers do not overlap. */
int pt_plan_add_buffer(pt_plan *p, char *data, int64_t nbytes);
int pt_plan_buffer_of(const pt_plan *p, const char *data);      /* -1: none */
/* Whether calls are recorded in place of being run: memory that nobody touches costs nothing. */
void pt_plan_set_dry(pt_plan *p, int dry);
int pt_plan_is_dry(const pt_plan *p);
/* Of a call that has been run. 0, or -1: the call names memory that is no buffer (then nothing is
 * recorded, and the plan is spoilt). */
int pt_plan_add_kernel(pt_plan *p, const char *name, pt_kernel kernel, const pt_call *call,
                       int random);
int pt_plan_add_loops(pt_plan *p, const pt_elementwise *op, int compute, int loop_out,
                      const pt_view *out, const pt_view *in, int nin, const void *params,
                      int64_t params_bytes);
int pt_plan_add_copy(pt_plan *p, const pt_view *dst, const pt_view *src);
/* A place where pt_plan_run returns, for work that is not of kernels. */
void pt_plan_add_pause(pt_plan *p);
/* Says of the last pause that its work reads a buffer, or writes to it. */
void pt_plan_pause_reads(pt_plan *p, int buffer);
/* Why the plan cannot be run, or NULL. The first reason stays. */
void pt_plan_spoil(pt_plan *p, const char *why);
const char *pt_plan_spoilt(const pt_plan *p);
int64_t pt_plan_length(const pt_plan *p);                       /* steps so far */
void pt_plan_cut(pt_plan *p, int64_t length); /* forgets the steps from there on, and the reason */

/* -- the end of recording ---- */

/* Of all buffers, before pt_plan_finish. */
void pt_plan_set_kind(pt_plan *p, int buffer, int kind);
int pt_plan_kind(const pt_plan *p, int buffer);
/* Whether a step writes to a buffer. */
int pt_plan_writes(const pt_plan *p, int buffer);
/* Groups steps, drops what nobody reads and gives temporary buffers their places. `fuse` 0: every
 * step stays by itself. */
void pt_plan_finish(pt_plan *p, int fuse);
int64_t pt_plan_arena_bytes(const pt_plan *p);
int64_t pt_plan_work(const pt_plan *p); /* elements that the largest step reads and writes */
int64_t pt_plan_draws(const pt_plan *p,
                      int64_t step); /* random steps from one on, up to the next pause */
const char *pt_plan_step_name(const pt_plan *p, int64_t step);  /* NULL: there is no such step */

/* -- plans that others run on tiles, in many threads at once ---- */

/* Makes one group of all that a plan does, after pt_plan_finish. 0: it is not one, and the plan is
 * as before. */
int pt_plan_make_tile(pt_plan *p);
/* Runs its first `count` elements on memory that is named for each buffer. */
void pt_plan_run_tile(const pt_plan *p, char *const *buffers, int64_t count);

/* -- runs, one at a time ---- */

void pt_plan_set_arena(pt_plan *p, char *arena);                /* 64-byte aligned */
char *pt_plan_address(const pt_plan *p, int buffer);            /* where a buffer lies now */
int pt_plan_host(const pt_plan *p,
                 int buffer); /* the result that a temporary buffer lies in, or -1 */
void pt_plan_bind(pt_plan *p, int buffer, char *data);
/* Runs from step *at on, to the end (PT_OK, *at = PT_PLAN_DONE) or to a pause (PT_OK, *at = the
 * step behind it); another status is that of a step that failed, *at which. `offset`: the place in
 * the stream of the first draw. */
int pt_plan_run(pt_plan *p, int64_t *at, uint64_t seed, uint64_t offset, const char **error);

#ifdef __cplusplus
}
#endif
#endif

/* What `flex_attention` adds to attention: programs that change the scores of a tile, and which
 * keys are looked at. */
#ifndef PTCORE_ATTENTION_TILES_H
#define PTCORE_ATTENTION_TILES_H
#include "loops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PT_TILE_QUERIES = 64, PT_TILE_KEYS = 128, PT_TILE_BUFFERS = 128 };

/* An operand of a program: bytes from one batch, head, query and key to the next. Along queries
 * there are as many as the tiles reach, which may be more than there are queries. */
typedef struct pt_score_operand {
    const char *data;
    int64_t step[4];
    int32_t buffer;
} pt_score_operand;

/* A plan of one group (pt_plan_make_tile) over a tile of PT_TILE_KEYS rows of queries. `plan` NULL:
 * scores stay. `run` is pt_plan_run_tile: kernels are linked without plans. */
typedef struct pt_score_program {
    const struct pt_plan *plan;
    void (*run)(const struct pt_plan *plan, char *const *buffers, int64_t count);
    const pt_score_operand *operands;
    int32_t count;
    int32_t score, grad, result;    /* buffers of the plan; -1: it has none */
} pt_score_program;

typedef struct pt_attention_tiles {
    int64_t height, width;          /* queries of a tile, and how many places it has for them */
    int64_t rows; /* queries whose keys are the same: a multiple of height, or all */
    int64_t by_batch, by_head; /* entries of `first` from one batch, and head, to the next; 0: all
                                  have the same */
    const int64_t *first;           /* the first span of each row of blocks; one entry more */
    const int64_t *spans;           /* first key, number of keys, which of `score` */
    pt_score_program score[2];      /* of spans whose keys may be masked, and of others */
    pt_score_program slope;         /* the gradient of what the score was */
} pt_attention_tiles;

/* The tensor that a loop of pt_take_loops takes elements of: at least one, elements of `strides`
 * apart. */
enum { PT_TAKE_DIMS = 4 };
typedef struct pt_taken {
    const char *data;
    int64_t sizes[PT_TAKE_DIMS], strides[PT_TAKE_DIMS];
    int64_t ndim;
    int *wrong;                     /* gets 1 where an index is out of range */
} pt_taken;
/* The loop over one int64 operand for each dim, or NULL. */
const pt_elementwise *pt_take_loops(int itemsize);

#ifdef __cplusplus
}
#endif
#endif

/* What `flex_attention` adds to attention: programs that change the scores of a tile, and the keys
 * that each block of queries looks at. */
#ifndef PTCORE_ATTENTION_TILES_H
#define PTCORE_ATTENTION_TILES_H
#include "loops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PT_TILE_QUERIES = 64, PT_TILE_KEYS = 128, PT_TILE_BUFFERS = 128 };

/* An operand of a program: bytes from one batch, head, query and key to the next. It has as many
 * queries as the tiles cover, which may be more than the op has. */
typedef struct pt_score_operand {
    const char *data;
    int64_t step[4];
    int32_t buffer;
} pt_score_operand;

/* A plan of one group (pt_plan_make_tile) over a tile of PT_TILE_KEYS rows of queries; NULL: scores
 * are unchanged. `run` is pt_plan_run_tile: kernels are linked without plans. */
typedef struct pt_score_program {
    const struct pt_plan *plan;
    void (*run)(const struct pt_plan *plan, char *const *buffers, int64_t count);
    const pt_score_operand *operands;
    int32_t count;
    int32_t score, grad, result;    /* buffers of the plan; -1: it has no such buffer */
} pt_score_program;

typedef struct pt_attention_tiles {
    int64_t height, width;          /* queries of a tile, and the room of a row for queries */
    int64_t rows; /* queries that share their keys: a multiple of height, or all queries */
    int64_t by_batch, by_head; /* entries of `first` from one batch, and head, to the next; 0: all
                                  share them */
    const int64_t *first;           /* first span of each block of `rows` queries; one more entry */
    const int64_t *spans;           /* first key, number of keys, index into `score` */
    pt_score_program score[2];      /* for spans whose keys may be masked, and for other spans */
    pt_score_program slope;         /* gradient of the scores before a program changed them */
} pt_attention_tiles;

/* The tensor from which a loop of pt_take_loops takes elements: at least one
 * element; strides are in elements. */
enum { PT_TAKE_DIMS = 4 };
typedef struct pt_taken {
    const char *data;
    int64_t sizes[PT_TAKE_DIMS], strides[PT_TAKE_DIMS];
    int64_t ndim;
    int *wrong;                     /* set to 1 where an index is out of range */
} pt_taken;
/* A loop with one int64 operand of indices for each dim, or NULL for this itemsize. */
const pt_elementwise *pt_take_loops(int itemsize);

#ifdef __cplusplus
}
#endif
#endif

/* What the kernels of recurrent layers get (kernels/recurrent.cuh): one step, of `count` / n rows
 * of n cells each. Rows follow each other; T is the layer's dtype, C the type that it is computed
 * in. */
#ifndef PTCORE_CUDA_RECURRENT_ARGS_H
#define PTCORE_CUDA_RECURRENT_ARGS_H
#include "ptcore/config.h"

enum {
    PT_RNN_TANH,
    PT_RNN_RELU,
    PT_RNN_LSTM,
    PT_RNN_GRU
};     /* the choices of `mode` in their order */

typedef struct RecurrentArgs {
    uint32_t count, n;
    int32_t mode;
    /* forward: gates (T) + product (C) + bias (T or NULL) make kept, cells, cell, state and, where
     * it is given, out */
    const void *gates, *product, *bias;
    void *kept, *cells, *out;   /* T */
    void *state; /* T: what the next product reads; of a gru the state before as well */
    void *cell;                 /* C: of an lstm, before and after; backward its gradient */
    /* backward: the gradient of the state is `d` (C) + `g` (T or NULL) */
    const void *g, *g_cells, *previous, *values; /* T; values: out (tanh, relu) or cells (lstm) */
    const void *earlier,
        *first; /* T: cells before the step, for rows below `before` and for the others */
    uint32_t before;
    void *d; /* C; of a gru what goes straight to the state before is left there */
    void *d_gates, *hidden;     /* T; hidden: of a gru */
    void *sum;                  /* T: d + g, where that alone is asked for */
} RecurrentArgs;

#endif

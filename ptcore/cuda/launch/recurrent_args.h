/* What the kernels of recurrent layers get (kernels/recurrent.cuh): one step, of `count` / n
 * rows of n cells each. Rows are consecutive; T is the layer's dtype, C the type of
 * computation. */
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
    void *state; /* T: read by the next product; in a gru it is also the state before */
    void *cell;                 /* C: an lstm's cells, before and after; backward: their gradient */
    /* backward: the gradient of the state is `d` (C) + `g` (T or NULL) */
    const void *g, *g_cells, *previous, *values; /* T; values: out (tanh, relu) or cells (lstm) */
    const void *earlier,
        *first; /* T: cells before the step, for rows below `before` and for the others */
    uint32_t before;
    void *d; /* C; a gru leaves here what goes straight to the state before */
    void *d_gates, *hidden;     /* T; hidden: for a gru */
    void *sum;                  /* T: d + g, for the kernel that only adds */
} RecurrentArgs;

#endif

/* The Mersenne twister (Matsumoto and Nishimura, 1998) as PyTorch's CPU generator uses it.
 *
 * One lock guards all twisters, so that a call draws its words in one piece and a fork copies none
 * between two words. The functions and the kernels take it; none of them needs the GIL inside.
 */
#ifndef PTCORE_MERSENNE_H
#define PTCORE_MERSENNE_H
#include "ptcore/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PT_MERSENNE_WORDS = 624, PT_MERSENNE_BYTES = 5056 };

typedef struct pt_mersenne {
    uint64_t seed;
    int32_t left;               /* 1 + the words that are left before the next block */
    uint32_t next;              /* the position of the next word */
    uint32_t words[PT_MERSENNE_WORDS];
    double normal;              /* the second number of a pair, if has_normal */
    float short_normal;         /* fields of a state that no draw uses: they are kept for PyTorch */
    uint8_t has_normal, has_short_normal;
} pt_mersenne;

pt_mersenne *pt_mersenne_new(uint64_t seed);        /* NULL: no memory */
void pt_mersenne_free(pt_mersenne *m);
void pt_mersenne_seed(pt_mersenne *m, uint64_t seed);

/* The bytes of PyTorch's get_state. Loading gives 0, with nothing done, for no twister's state. */
void pt_mersenne_store(const pt_mersenne *m, char *state);
int pt_mersenne_load(pt_mersenne *m, const char *state);

/* Makes 16 normal floats of uniform ones, in place. */
typedef void (*pt_mersenne_transform)(float *d, float mean, float std);

/* Kernels that draw from the twister in call->stream. See mersenne.cpp. */
int pt_mersenne_uniform(pt_call *call);
int pt_mersenne_normal(pt_call *call, pt_mersenne_transform f);
int pt_mersenne_exponential(pt_call *call);
int pt_mersenne_integers(pt_call *call);
int pt_mersenne_bernoulli(pt_call *call);
int pt_mersenne_randperm(pt_call *call);
int pt_mersenne_dropout(pt_call *call);
int pt_mersenne_poisson(pt_call *call);
int pt_mersenne_binomial(pt_call *call);

#ifdef __cplusplus
}
#endif
#endif

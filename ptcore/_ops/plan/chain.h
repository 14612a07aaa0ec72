/* Chains: runs of arithmetic in a group, whose running value stays in registers.
 *
 * A chain is one value, to which operands are added and so on, block by block; each op reads one
 * operand and writes nothing. Every op is one rounding, as in the rows' own loops: the file is
 * compiled without contraction.
 */
#ifndef PTCORE_CHAIN_H
#define PTCORE_CHAIN_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The running value is a, the operand m. From PT_CHAIN_NUMBER on the operand is one number. */
enum pt_chain_op {
    PT_CHAIN_LOAD = 0,
    PT_CHAIN_STORE,
    PT_CHAIN_NEG,
    PT_CHAIN_ABS,
    PT_CHAIN_RELU,
    PT_CHAIN_SQUARE,
    PT_CHAIN_DOUBLE,
    PT_CHAIN_ADD,
    PT_CHAIN_SUB,
    PT_CHAIN_RSUB,
    PT_CHAIN_MUL,
    PT_CHAIN_DIV,
    PT_CHAIN_RDIV,
    PT_CHAIN_NUMBER = 16
};
enum { PT_CHAIN_MOST = 192 };           /* ops of a chain */

/* Runs n ops on `count` elements; operands[k] is the address of op k's first element, or number. */
typedef void (*pt_chain)(const uint8_t *ops, char *const *operands, int n, int64_t count);
typedef struct pt_chain_table {
    pt_chain f32, f64;                  /* NULL: this compiler has no vectors */
} pt_chain_table;
extern const pt_chain_table *pt_chains; /* of the ISA level in use; never NULL */

#ifdef __cplusplus
}
#endif
#endif

/* Chains: runs of arithmetic in a group, whose running value stays in registers.
 *
 * A chain has one running value per element, to which operands are added and so on, block by block.
 * Each op reads at most one operand; only STORE writes. Every op rounds once, as in the rows' own
 * loops: the file is compiled without contraction.
 */
#ifndef PTCORE_CHAIN_H
#define PTCORE_CHAIN_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The running value is a, the operand m. Ops from PT_CHAIN_NUMBER on have one number as operand. */
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
enum { PT_CHAIN_MOST = 192 };           /* the maximum number of ops in a chain */

/* Runs n ops on `count` elements; operands[k] is the address of op k's first element or number. */
typedef void (*pt_chain)(const uint8_t *ops, char *const *operands, int n, int64_t count);
typedef struct pt_chain_table {
    pt_chain f32, f64;                  /* NULL: this compiler has no vectors */
} pt_chain_table;
extern const pt_chain_table *pt_chains; /* the table of the ISA level in use; never NULL */

#ifdef __cplusplus
}
#endif
#endif

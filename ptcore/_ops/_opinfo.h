/* Dispatch's description of an op: the compiled columns of its row. The generator emits the table
 * of built-in ops; ops registered at run time get entries after them. */
#ifndef PTCORE_OPINFO_H
#define PTCORE_OPINFO_H
#include <stdint.h>

enum pt_kind {
    PT_ELEMENTWISE, PT_STRUCTURED, PT_VIEWOP, PT_COMPOSITE
};
enum pt_promote {
    PT_PROMOTE_DEFAULT,   /* PyTorch's promotion of all promoting operands */
    PT_PROMOTE_FLOAT,     /* as DEFAULT, but integers become the default float */
    PT_PROMOTE_NONE,      /* operands must have one dtype already */
    PT_PROMOTE_WHERE,     /* the first operand is a condition and does not promote */
    PT_PROMOTE_FIRST,     /* the first operand's dtype, whatever the others are */
    PT_PROMOTE_DTYPE,     /* the row's dtype argument if given, else as DEFAULT */
    PT_PROMOTE_WHOLE      /* as DEFAULT, but bool becomes int64 */
};
/* What dtype out= must have. */
enum pt_out_rule {
    PT_OUT_CAST,          /* a dtype that the result can be cast to */
    PT_OUT_EXACT,         /* the result's dtype */
    PT_OUT_CAST_ONE,      /* CAST for a single out=, EXACT for several */
    PT_OUT_OWN,           /* the row's dtype argument; if none is given, the dtype of out= */
    PT_OUT_ANY            /* any dtype */
};
/* What the last operand may be when the op computes in integers. */
enum pt_integers { PT_INT_ANY, PT_INT_NONZERO, PT_INT_NONNEGATIVE };
/* Whether the result's elements are copies of operands' elements (where, maximum; SECOND: assign):
 * then a number must fit the dtype and cannot wrap. */
enum pt_selects { PT_SELECTS_NONE, PT_SELECTS_ONE, PT_SELECTS_SECOND };
/* What autocast does with an op: casts the arguments to the low dtype, to float32 or to the widest
   dtype among them; or runs the op with autocast off; or refuses the op. */
enum pt_autocast {
    PT_AUTOCAST_NONE,
    PT_AUTOCAST_LOW,
    PT_AUTOCAST_HIGH,
    PT_AUTOCAST_WIDEST,
    PT_AUTOCAST_OFF,
    PT_AUTOCAST_REFUSED
};
enum pt_out { PT_OUT_SAME, PT_OUT_BOOL, PT_OUT_REAL };

enum { PT_SAVE_META = 64, PT_SAVE_OUT = 128, PT_MAX_SAVED = 9 };

typedef struct pt_opinfo {
    const char *name;           /* the name in messages: the function that the user called */
    const char *row;            /* the row's own name, unique */
    const char *letters;        /* a letter for each parameter: see table/schema.py */
    const char *argnames;       /* comma-separated */
    const char *words;          /* the words that arguments may be: "3:nearest|linear;5:a|b" */
    const char *kernel;         /* NULL: none */
    const char *family;
    const char *node;           /* grad_fn.name(); NULL: derived from the op's name */
    const char *sparse;         /* kernel for tensors that are not strided; NULL: none */
    const char
        *hint; /* what to use for bool tensors when the op takes none; NULL: no advice */
    uint8_t kind, promote, out, ntensors, npositional, nout, random, contiguous, prefill, updates,
        lists;
    uint8_t differentiable;     /* 0: results never require grad */
    uint8_t nsaved;
    uint8_t positions;          /* 1: it has positions along a dim, which are taken as int64 */
    uint8_t integers;           /* pt_integers */
    uint8_t selects;            /* pt_selects */
    uint8_t condition;          /* 1 + the operand that must be bool; 0: none */
    uint8_t out_rule;           /* pt_out_rule */
    uint8_t wide;               /* 1: the kernel takes stored types as their loop dtypes alone */
    uint8_t autocast[2];        /* pt_autocast on the CPU, on accelerators */
    uint32_t slow; /* the bits of PT_SLOW (flags, modes) that keep a call off the short ways;
                      filled at import */
    uint32_t types;             /* bit per compute dtype */
    uint16_t grad_mask;         /* bit per tensor argument that can receive a gradient */
    uint16_t mutates;           /* bit per tensor argument that the kernel writes to */
    int16_t saved[PT_MAX_SAVED];    /* arg k; PT_SAVE_META + arg k; PT_SAVE_OUT + output k */
    uint16_t need[PT_MAX_SAVED];    /* saved only if one of these arguments requires grad */
    int (*shape)(
        void *call); /* the shape rule, on a Call; 0: ask Python. Filled at import */
} pt_opinfo;

#endif

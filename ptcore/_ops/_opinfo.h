/* What dispatch knows of an op: the compiled columns of its row. The generator emits the
 * table of built-in ops; ops registered at run time get an entry behind them. */
#ifndef PTCORE_OPINFO_H
#define PTCORE_OPINFO_H
#include <stdint.h>

enum pt_kind {
    PT_ELEMENTWISE, PT_STRUCTURED, PT_VIEWOP, PT_COMPOSITE
};
enum pt_promote {
    PT_PROMOTE_DEFAULT,   /* PyTorch's promotion of all promoting operands */
    PT_PROMOTE_FLOAT,     /* the same, integers become the default float */
    PT_PROMOTE_NONE,      /* operands must have one dtype already */
    PT_PROMOTE_WHERE,     /* the first operand is a condition and stands apart */
    PT_PROMOTE_FIRST,     /* the first operand's dtype, whatever the others are */
    PT_PROMOTE_DTYPE,     /* the row's dtype argument if given, else as DEFAULT */
    PT_PROMOTE_WHOLE      /* as DEFAULT, bool becomes int64 */
};
/* What dtype out= must have. */
enum pt_out_rule {
    PT_OUT_CAST,          /* one that the result can be cast to */
    PT_OUT_EXACT,         /* the result's */
    PT_OUT_CAST_ONE,      /* CAST of a single out=, EXACT of several */
    PT_OUT_OWN,           /* the row's dtype argument, which is out='s if none is given */
    PT_OUT_ANY            /* any */
};
/* What the last operand may be when the op computes in integers. */
enum pt_integers { PT_INT_ANY, PT_INT_NONZERO, PT_INT_NONNEGATIVE };
/* Whether the elements of the result are elements of operands; there a number must fit and cannot wrap. */
enum pt_selects { PT_SELECTS_NONE, PT_SELECTS_ONE, PT_SELECTS_SECOND };
/* What autocast does with the arguments: a lower precision, float32, the widest of them; or it is off inside; or the op
   is refused. */
enum pt_autocast {
    PT_AUTOCAST_NONE, PT_AUTOCAST_LOW, PT_AUTOCAST_HIGH, PT_AUTOCAST_WIDEST, PT_AUTOCAST_OFF, PT_AUTOCAST_REFUSED
};
enum pt_out { PT_OUT_SAME, PT_OUT_BOOL, PT_OUT_REAL };

/* Shape rules that rows name; call/shape.pyx has them in C, table/shapes.py in Python. */
enum pt_rule {
    RULE_SPEC, RULE_LIKE, RULE_LAID, RULE_CAST, RULE_LAID_CAST, RULE_SUMMED, RULE_LIKE_PAIR, RULE_REDUCED,
    RULE_REDUCED_SUM, RULE_REDUCED_NONEMPTY, RULE_REDUCED_BOOL, RULE_REDUCED_PAIR, RULE_KTH_PAIR, RULE_REDUCED_INDEX, RULE_MM,
    RULE_BMM, RULE_LINEAR, RULE_CAT, RULE_GATHER, RULE_SCATTER, RULE_INDEX_SELECT,
    RULE_SHAPED, RULE_LIKE_EACH, RULE_TAKEN, RULE_PUT, RULE_OF_ROWS, RULE_FILLED, RULE_LIKE_SECOND, RULE_LIKE_MASK,
    RULE_LIKE_MATRIX, RULE_COUNTED, RULE_MV, RULE_DOT, RULE_ADDMM, RULE_INDEX_ADD, RULE_INDEX_COPY, RULE_FFT_C2C, RULE_FFT_R2C,
    RULE_FFT_C2R, RULE_LAYER_NORM,
    RULE_LAYER_NORM_BACKWARD, RULE_BATCH_NORM, RULE_GROUP_NORM, RULE_CHANNELS_BACKWARD, RULE_CROSS_ENTROPY,
    RULE_NLL_LOSS,
    /* those of call/shape_window.pyx */
    RULE_CONVOLVED, RULE_CONVOLVED_TRANSPOSED, RULE_CONVOLVED_WEIGHT, RULE_POOLED, RULE_POOLED_PAIR, RULE_PADDED,
    RULE_EDGE_PADDED, RULE_EDGE_UNPADDED, RULE_RESAMPLED, RULE_SAMPLED_AT
};

enum { PT_SAVE_META = 64, PT_SAVE_OUT = 128, PT_MAX_SAVED = 9 };

typedef struct pt_opinfo {
    const char *name;           /* in messages: what the user called */
    const char *row;            /* unique: the row's own */
    const char *letters;        /* one per parameter: see table/schema.py */
    const char *argnames;       /* comma-separated */
    const char *kernel;         /* NULL: none */
    const char *family;
    const char *node;           /* grad_fn.name(); NULL: by the op's name */
    const char *sparse;         /* kernel for tensors that are not strided; NULL: none */
    const char *hint;           /* what to use for bool tensors, of which the op takes none; NULL: nothing to say */
    uint8_t kind, promote, out, ntensors, npositional, nout, random, contiguous, prefill, updates, lists;
    uint8_t differentiable;     /* 0: results never require grad */
    uint8_t nsaved;
    uint8_t rule;               /* pt_rule, 0: the row's own spec */
    uint8_t integers;           /* pt_integers */
    uint8_t selects;            /* pt_selects */
    uint8_t condition;          /* 1 + the operand that must be bool; 0: none */
    uint8_t out_rule;           /* pt_out_rule */
    uint8_t autocast[2];        /* pt_autocast on the CPU, on accelerators */
    uint32_t slow;              /* the flags and mode bits that keep a call off the short ways: of PT_SLOW; filled at import */
    uint32_t types;             /* bit per compute dtype */
    uint16_t grad_mask;         /* bit per tensor argument that can receive a gradient */
    int16_t saved[PT_MAX_SAVED];    /* arg k; PT_SAVE_META + arg k; PT_SAVE_OUT + output k */
    uint16_t need[PT_MAX_SAVED];    /* saved only if one of these arguments requires grad */
} pt_opinfo;

#endif

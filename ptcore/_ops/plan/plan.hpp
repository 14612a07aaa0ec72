/* The parts of a plan, for the files that make and run plans. */
#ifndef PTCORE_PLAN_HPP
#define PTCORE_PLAN_HPP
#include "chain.h"
#include "plan.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace pt {

enum { KERNEL, LOOPS, COPY, GROUP, ROWS, PAUSE };

/* How the elements of an operand of a group follow each other, in the order of the result. */
enum { FLAT, SINGLE, PERIODIC, REPEATED };

struct form {
    int kind;
    int64_t period, stride, bytes; /* period: elements (PERIODIC), repeats of each (REPEATED);
                                      stride: bytes to the next element; bytes: in all */
    int64_t count = 0;                /* REPEATED: number of elements until the first comes again */
};

struct operand {
    int buffer;                 /* -1: in no buffer, such as a number that the step holds */
    int64_t offset;             /* bytes */
};

struct step {
    int kind;
    std::string name;
    pt_kernel kernel = nullptr;
    pt_call call = {};
    const pt_elementwise *op = nullptr;
    int compute = 0, loop_out = 0;
    bool random = false;
    std::vector<pt_view> views;         /* outputs first */
    std::vector<operand> operands;      /* one for each view */
    std::vector<pt_param> params;
    std::vector<int64_t> numbers;       /* the arrays that views and parameters point to */
    std::vector<double>
        values; /* the numbers among a loop's operands, two doubles each; then its parameters */
    int nout = 0;
    int group = -1;                     /* the index of a GROUP or of ROWS */
};

/* A chain (chain.h): its ops and the places of their operands. */
struct chain {
    bool wide;                          /* whether it is of doubles */
    std::vector<uint8_t> ops;
    std::vector<int> places;
};

/* One loop of a group, or a chain. Places from 0 on are slots of a tile; -1 - k is stream k. */
struct instruction {
    pt_loop loop;
    const void *params;
    int places[1 + PT_MAX_ELEMENTWISE_INPUTS];
    int count;
    int arithmetic = -1;                /* the chain op that does the same, or -1 */
    int one = 0;                        /* the operand that is a single number, or 0 */
    bool wide = false;
    int chain = -1;
};

/* Memory that a group reads or writes: elements of a buffer, or a number held by a step. */
struct stream {
    int view_of_step, view;             /* the view that has its address */
    int form;                           /* FLAT ... */
    int64_t period, stride, count;      /* as in a form */
    int itemsize;
    int slot; /* slot into which a stream that is not one run is gathered; -1: in place */
    bool written;
};

struct group {
    std::vector<step> steps;
    std::vector<instruction> program;
    std::vector<stream> streams;
    std::vector<chain> chains;
    int slots = 0;
    int64_t row = 0; /* tiles end at its multiples, so that streams that repeat need no slot;
                        0: they do not */
    int64_t numel = 0, cost = 0;
};

/* An operand of a step that works row by row: `pitch` bytes from one row to the next, 0 if all rows
 * share its bytes. If `wrap` is not 0, row `wrap` is row 0 again. */
struct piece {
    int buffer;
    int64_t offset, bytes, pitch, wrap;
    bool written;
    int64_t local = -1;                 /* its offset in the row group's own memory, or -1 */
};

inline bool in_step(const piece &a, const piece &b) {
    return a.pitch && a.pitch == b.pitch && a.wrap == b.wrap && a.offset == b.offset;
}

/* A step of a row group: a GROUP, or a kernel with its views of a full block of rows and
 * of the last, shorter block. */
struct member {
    std::unique_ptr<step> of;
    std::vector<piece> pieces;          /* one for each stream or view */
    std::vector<pt_view> views[2];
    std::vector<int64_t> numbers[2];    /* the arrays that the views point to */
};

struct row_group {
    std::vector<member> members;
    int64_t rows = 0;
    int64_t span = 0, block = 0; /* span: rows until the rows of some operand repeat, where a block
                                    ends; block: rows of a block */
    int64_t local_bytes = 0;
    char error[256];                    /* the message of the kernel that failed */
};

struct buffer {
    char *data = nullptr;
    int64_t nbytes = 0, place = 0;
    int kind = PT_BUFFER_TEMPORARY;
    int host = -1; /* the result in whose memory a temporary buffer lies, or -1 */
    int64_t first = -1, last = -1;      /* first and last step that use it */
    bool written = false;
};

/* An address that is set before a run. */
struct patch {
    char **where;
    int64_t offset;
};

}  /* namespace pt */

struct pt_plan {
    std::vector<pt::buffer> buffers;
    std::map<const char *, int> by_address;
    std::vector<std::unique_ptr<pt::step>> steps;
    std::vector<std::unique_ptr<pt::group>> groups;
    std::vector<std::unique_ptr<pt::row_group>> row_groups;
    std::vector<std::vector<pt::patch>> patches;        /* for each buffer */
    std::vector<std::vector<int>> guests; /* for each result: the temporary buffers in its memory */
    std::string spoilt;
    bool is_spoilt = false, is_dry = false;
    int64_t arena_bytes = 0, work = 0;
    bool draws = false;
};

namespace pt {
enum {
    MOST_OPERANDS = PT_MAX_ELEMENTWISE_INPUTS + 1,
    MOST_STEPS = 64,
    MOST_STREAMS = MOST_STEPS * MOST_OPERANDS
};

/* Whether a step can be part of a group, and how its operands lie. */
struct candidate {
    form forms[MOST_OPERANDS];
    int64_t numel = 0;
    bool taken = false;
};
candidate candidate_of(const step &s);

/* Calls f(step) for each step that uses memory; the steps of a group one by one. */
template<class F> void each_step(pt_plan *p, step &s, F f) {
    if (s.kind == GROUP) {
        for (step &inner : p->groups[size_t(s.group)]->steps) f(inner);
    } else if (s.kind == ROWS) {
        for (member &m : p->row_groups[size_t(s.group)]->members) each_step(p, *m.of, f);
    } else {
        f(s);
    }
}

/* For each buffer, the number of operands of all steps that lie in it. */
std::vector<int> uses_of_buffers(pt_plan *p);
/* Puts runs of elementwise steps into groups. */
void fuse(pt_plan *p);
/* Makes a group of one elementwise step. */
std::unique_ptr<step> group_of_one(pt_plan *p, std::unique_ptr<step> s,
                                   const std::vector<int> &named);
/* Makes groups of the single steps that are one loop over flat memory: a run looks at no view. */
void settle_loops(pt_plan *p);
/* Puts steps that work row by row, with the elementwise steps around them, into row groups. */
void fuse_rows(pt_plan *p);
template<class Use> bool overlap(const Use &a, const Use &b) {
    return a.buffer >= 0 && a.buffer == b.buffer && a.offset < b.offset + b.bytes &&
           b.offset < a.offset + a.bytes;
}

/* Whether a step with the uses `more` may join steps with `uses`: memory that one writes, another
 * uses only in step, at the same place of the same tile or row. */
template<class Use> bool fits(const std::vector<Use> &uses, const std::vector<Use> &more) {
    for (const Use &a : more)
        for (const Use &b : uses)
            if ((a.written || b.written) && overlap(a, b) && !in_step(a, b)) return false;
    return true;
}

/* Whether a step may move before steps that stand in front of it and have these uses. A kernel may
 * fail, and what was written to an argument before shall then be there. */
template<class Use> bool may_go_first(pt_plan *p, step &s, const std::vector<Use> &uses) {
    bool may = s.kind != PAUSE && !s.random, writes = false;
    for (const Use &u : uses)
        writes |= u.written && u.buffer >= 0 &&
                  p->buffers[size_t(u.buffer)].kind == PT_BUFFER_BOUND;
    each_step(p, s, [&](const step &inner) {
        if (writes && inner.kind == KERNEL) may = false;
        for (size_t k = 0; k < inner.operands.size(); k++)
            for (const Use &u : uses)
                if (inner.operands[k].buffer == u.buffer && (u.written || int(k) < inner.nout))
                    may = false;
    });
    return may;
}
void run_group(const group &g);
/* Runs the elements [begin, end) of a group whose streams are at data[0], ... */
void run_tiles(const group &g, const char *const *data, int64_t begin, int64_t end);
int run_rows(row_group &g, const pt_plan *p);
/* Whether a step may write buffer `out` over buffer `in`, which has the same address and
 * which it is the last to read. */
bool may_overwrite(const pt_plan *p, const step &s, int out, int in);
bool rows_may_overwrite(const row_group &g, int out, int in);
}
#endif

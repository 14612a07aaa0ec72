/* The parts of a plan, for the files that make and run one. */
#ifndef PTCORE_PLAN_HPP
#define PTCORE_PLAN_HPP
#include "chain.h"
#include "plan.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace pt {

enum { KERNEL, LOOPS, COPY, GROUP, PAUSE };

/* How the elements that an operand of a group has follow each other, in the order of the result. */
enum { FLAT, SINGLE, PERIODIC, REPEATED };

struct operand {
    int buffer;                 /* -1: no memory of a buffer, as a number that the step holds */
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
    std::vector<operand> operands;      /* of the views */
    std::vector<pt_param> params;
    std::vector<int64_t> numbers;       /* what views and parameters point to */
    std::vector<double> values;         /* of numbers among the operands of a loop, two each; then its parameters */
    int nout = 0;
    int group = -1;                     /* of a GROUP */
};

/* A chain (chain.h): its ops, and where their operands are. */
struct chain {
    bool wide;                          /* of doubles */
    std::vector<uint8_t> ops;
    std::vector<int> places;
};

/* One loop of a group, or a chain. Places: 0 on are slots of a tile, -1 - k is stream k. */
struct instruction {
    pt_loop loop;
    const void *params;
    int places[1 + PT_MAX_ELEMENTWISE_INPUTS];
    int count;
    int arithmetic = -1;                /* the op of a chain that it is, or -1 */
    int one = 0;                        /* the operand that is one number, or 0 */
    bool wide = false;
    int chain = -1;
};

/* Memory that a group reads or writes: elements of a buffer, or a number of a step. */
struct stream {
    int view_of_step, view;             /* whose address it is */
    int form;                           /* FLAT ... */
    int64_t period, stride;             /* PERIODIC: elements; REPEATED: times an element counts; bytes to the next */
    int64_t count;                      /* REPEATED: elements until the first comes again */
    int itemsize;
    int slot;                           /* where a stream that is no run of memory is gathered; -1 */
    bool written;
};

struct group {
    std::vector<step> steps;
    std::vector<instruction> program;
    std::vector<stream> streams;
    std::vector<chain> chains;
    int slots = 0;
    int64_t numel = 0, cost = 0;
};

struct buffer {
    char *data = nullptr;
    int64_t nbytes = 0, place = 0;
    int kind = PT_BUFFER_TEMPORARY;
    int host = -1;                      /* the result whose memory a temporary one is in before that is written */
    int64_t first = -1, last = -1;      /* steps that name it */
    bool written = false;
};

/* Where an address is to be put before a run. */
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
    std::vector<std::vector<pt::patch>> patches;        /* of each buffer */
    std::vector<std::vector<int>> guests;               /* of each result: temporary buffers in its memory */
    std::string spoilt;
    bool is_spoilt = false, is_dry = false;
    int64_t arena_bytes = 0, work = 0;
    bool draws = false;
};

namespace pt {
/* Puts runs of elementwise steps into groups. */
void fuse(pt_plan *p);
void run_group(const group &g);
bool may_overwrite(const pt_plan *p, const step &s, int out, int in);
}
#endif

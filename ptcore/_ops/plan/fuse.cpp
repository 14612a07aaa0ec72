/* Groups of elementwise steps, which run tile by tile: the result of one step that the next
 * one reads stays in the cache.
 *
 * In a group, an element of a step depends only on elements at the same place of the other steps;
 * places are counted in the order in which results lie in memory. A group calls the same loops as
 * the separate steps, so the results are equal. Half types and conversions go through the same
 * middle types as in pt_elementwise_run.
 */
#include "plan.hpp"
#include "../kernels/casts.h"
#include "../kernels/elementwise.hpp"

#include <algorithm>

using namespace pt;

namespace {

enum {
    TILE = PT_TILE,
    SLOT_BYTES = TILE * 8,
    MAX_SLOTS = 24,
    MOST_BETWEEN = 16,
    MOST_LINKS = PT_CHAIN_MOST
};
enum { LEAST_ROW = 128 };               /* shorter rows are not worth a loop with one number */
static_assert(MOST_LINKS >= 3 * MOST_STEPS, "each step adds at most a load, itself and a store");

/* Whether a dtype has no loops of its own, so that a result is rounded to it. */
bool is_rounded(int dtype) { return pt_loop_dtype(dtype) != dtype; }

/* How operand k of a walk lies; false if none of the forms fits. */
bool form_of(const plan &w, int k, int64_t itemsize, form *f) {
    int64_t n = 1;
    int d = 0;
    const int64_t *stride = w.stride[k];
    while (d < w.ndim && stride[d] == itemsize * n) n *= w.size[d++];
    if (d == w.ndim) {
        *f = {FLAT, n, 0, n * itemsize, 0};
        return true;
    }
    if (d) {                                    /* a run that repeats */
        for (int e = d; e < w.ndim; e++)
            if (stride[e]) return false;
        *f = {PERIODIC, n, 0, n * itemsize, 0};
        return true;
    }
    while (d < w.ndim && !stride[d]) n *= w.size[d++];
    if (d == w.ndim) {
        *f = {SINGLE, 1, 0, itemsize, 0};
        return true;
    }
    if (!d) return false;
    const int64_t step = stride[d];
    int64_t count = 1;
    for (; d < w.ndim && stride[d] == step * count; d++) count *= w.size[d];
    for (; d < w.ndim; d++) /* the rest must repeat it: a number for each channel of a batch */
        if (stride[d]) return false;
    if (step < 0) return false;
    *f = {REPEATED, n, step, step * (count - 1) + itemsize, count};
    return true;
}

struct use {
    int buffer;
    int64_t offset, bytes;
    int kind, itemsize;
    bool written;
};

/* Whether two uses touch an element at the same place of the result only. */
bool in_step(const use &a, const use &b) {
    return a.kind == FLAT && b.kind == FLAT && a.offset == b.offset && a.itemsize == b.itemsize;
}

std::vector<use> uses_of(const step &s, const candidate &c) {
    std::vector<use> found;
    for (size_t k = 0; k < s.operands.size(); k++)
        if (s.operands[k].buffer >= 0)
            found.push_back({s.operands[k].buffer, s.operands[k].offset, c.forms[k].bytes,
                             c.forms[k].kind, int(ITEMSIZE[s.views[k].dtype]), int(k) < s.nout});
    return found;
}

/* ---- the program of a group ---- */

instruction cast(int from, int to, int slot, int place) {
    instruction in;
    in.loop = pt_cast_loop(from, to);
    in.params = pt_cast_params(from, to);
    in.places[0] = slot;
    in.places[1] = place;
    in.count = 2;
    return in;
}

/* The dtypes that a step's loop handles (pt_loop_dtype). */
struct loop_dtypes {
    bool is_copy;
    int compute;                                /* the step's compute dtype */
    int loop;                                   /* the dtype that the loop reads */
    int result;                                 /* the dtype that the loop writes */

    explicit loop_dtypes(const step &s)
        : is_copy(s.kind == COPY), compute(is_copy ? s.views[0].dtype : s.compute),
          loop(is_copy ? s.views[1].dtype : pt_loop_dtype(compute)),
          result(is_copy ? compute : pt_loop_dtype(s.loop_out)) {}

    /* Whether the loop can read elements of a dtype without a conversion. */
    bool reads(int from) const {
        return is_copy || (from == loop && (compute == from || !is_rounded(compute)));
    }
};

struct builder {
    group *g;
    const std::vector<bool> &inside;            /* whether each buffer is used by the group alone */
    std::vector<int> free_slots;
    std::map<std::pair<int, int64_t>, int>
        slot_of; /* memory that stays in tiles: (buffer, offset) -> its slot */
    std::map<std::pair<int, int64_t>, size_t>
        last; /* memory that stays in tiles -> the last step that reads it */
    bool by_rows = false; /* an operand is read in place because tiles end with rows */

    builder(group *of, const std::vector<bool> &own) : g(of), inside(own) {}

    int take() {
        if (!free_slots.empty()) {
            const int slot = free_slots.back();
            free_slots.pop_back();
            return slot;
        }
        return g->slots++;
    }
    void give(int slot) { free_slots.push_back(slot); }
    void give(const std::vector<int> &slots) {
        for (int slot : slots) give(slot);
    }

    void note_last_readers();
    void choose_row(const std::vector<candidate> &candidates);
    bool has_rows(const form &f) const {
        return f.kind >= PERIODIC && g->row && f.period % g->row == 0;
    }
    int convert(int place, int from, int middle, int to);
    instruction loop_of(const step &s, const loop_dtypes &dtypes, const candidate &c) const;
    std::vector<int> read_operands(size_t i, const loop_dtypes &dtypes, const candidate &c,
                                   instruction *in);
    void end_slots(size_t i, std::vector<int> *dying);
    void write_result(size_t i, const loop_dtypes &dtypes, instruction in,
                      const std::vector<int> &dying);
};

/* The chain op that does the same as a loop of n - 1 operands; -1: none. The names are
 * those of rows that round once. */
int arithmetic_of(const std::string &name, int n) {
    static const struct { const char *name; int n, op;
    } ops[] = {{"add", 3, PT_CHAIN_ADD},   {"sub", 3, PT_CHAIN_SUB},      {"mul", 3, PT_CHAIN_MUL},
               {"div", 3, PT_CHAIN_DIV},   {"neg", 2, PT_CHAIN_NEG},      {"abs", 2, PT_CHAIN_ABS},
               {"relu", 2, PT_CHAIN_RELU}, {"square", 2, PT_CHAIN_SQUARE}};
    for (const auto &o : ops)
        if (name == o.name && n == o.n) return o.op;
    return -1;
}

/* ---- chains ---- */

/* Whether an instruction after i reads the present value of a slot. */
bool read_later(const std::vector<instruction> &program, size_t i, int slot) {
    for (size_t k = i + 1; k < program.size(); k++) {
        for (int j = 1; j < program[k].count; j++)
            if (program[k].places[j] == slot) return true;
        if (program[k].places[0] == slot) return false;
    }
    return false;
}

/* Makes chains of runs of arithmetic, in which each instruction reads the result of the last. */
void chain_up(group *g) {
    const std::vector<instruction> old = std::move(g->program);
    g->program.clear();
    chain run;
    size_t first = 0, taken = 0;       /* the run so far: `taken` instructions from old[first] on */
    int at = 0;                                 /* where the running value would be stored */
    auto add = [&](int op, int place) {
        run.ops.push_back(uint8_t(op));
        run.places.push_back(place);
    };
    auto close = [&]() {
        if (taken == 1) {
            g->program.push_back(old[first]);
        } else if (taken) {
            add(PT_CHAIN_STORE, at);
            instruction in = old[first];
            in.chain = int(g->chains.size());
            g->chains.push_back(run);
            g->program.push_back(in);
        }
        run = chain();
        taken = 0;
    };
    for (size_t i = 0; i < old.size(); i++) {
        const instruction &in = old[i];
        if (in.arithmetic < 0) {
            close();
            g->program.push_back(in);
            continue;
        }
        const bool left = taken && in.places[1] == at,
                   right = taken && in.count == 3 && in.places[2] == at;
        const bool joins = (left || right) && run.wide == in.wide
            && (!(left && right) || in.arithmetic == PT_CHAIN_ADD || in.arithmetic == PT_CHAIN_MUL);
        const bool both = joins && left && right;
        if (!joins) {
            close();
            first = i;
            run.wide = in.wide;
        } else if (at < 0 || (in.places[0] != at && read_later(old, i, at))) {
            add(PT_CHAIN_STORE, at);            /* a later instruction reads it as well */
        }
        const int reversed = in.arithmetic == PT_CHAIN_SUB ? int(PT_CHAIN_RSUB)
            : in.arithmetic == PT_CHAIN_DIV ? int(PT_CHAIN_RDIV) : in.arithmetic;
        if (in.count == 2) {
            if (!joins) add(PT_CHAIN_LOAD, in.places[1]);
            add(in.arithmetic, in.places[1]);
        } else if (both) {
            add(in.arithmetic == PT_CHAIN_ADD ? PT_CHAIN_DOUBLE : PT_CHAIN_SQUARE, at);
        } else {
            /* The running value is the operand that joins, else the first that is not a number. */
            const bool second = joins ? right : in.one == 1;
            const int other = second ? 1 : 2;
            if (!joins) add(PT_CHAIN_LOAD, in.places[second ? 2 : 1]);
            add((second ? reversed : in.arithmetic) + (in.one == other ? int(PT_CHAIN_NUMBER) : 0),
                in.places[other]);
        }
        at = in.places[0];
        taken++;
    }
    close();
}

/* ---- a step of a group ---- */

void builder::note_last_readers() {
    for (size_t i = 0; i < g->steps.size(); i++)
        for (const operand &o : g->steps[i].operands)
            if (o.buffer >= 0 && inside[size_t(o.buffer)]) last[{o.buffer, o.offset}] = i;
}

/* Sets the length of rows: the shortest period that is worth a loop with one number. */
void builder::choose_row(const std::vector<candidate> &candidates) {
    for (const candidate &c : candidates)
        for (const form &f : c.forms)
            if (f.kind >= PERIODIC && f.period >= LEAST_ROW && (!g->row || f.period < g->row))
                g->row = f.period;
}

/* Adds conversions of slot or stream `place` to another dtype; returns the new slot. */
int builder::convert(int place, int from, int middle, int to) {
    const bool two = is_rounded(middle) && middle != from && middle != to;
    const int chain[3] = {from, two ? middle : to, to};
    for (int k = 0; k < (two ? 2 : 1); k++) {
        const int slot = take();
        g->program.push_back(cast(chain[k], chain[k + 1], slot, place));
        if (k) give(place);
        place = slot;
    }
    return place;
}

/* The instruction of a step, without its places: its loop, which may
 * take one operand as a number. */
instruction builder::loop_of(const step &s, const loop_dtypes &dtypes, const candidate &c) const {
    const int n = int(s.views.size()), loop = dtypes.loop;
    instruction in;
    if (dtypes.is_copy) in.params = pt_cast_params(loop, dtypes.compute);
    else in.params = s.values.data() + 2 * size_t(n - 1);
    in.count = n;
    in.loop = dtypes.is_copy ? pt_cast_loop(loop, dtypes.compute) : s.op->loop[loop];
    if (dtypes.is_copy) return in;
    int singles = 0, at_single = 0;
    for (int k = 1; k < n; k++) {
        const form &f = c.forms[k];
        if (f.kind == SINGLE ||
            (f.kind == REPEATED && !s.op->powers && has_rows(f) &&
             dtypes.reads(s.views[size_t(k)].dtype)))
            singles++, at_single = k;
    }
    if (s.op->powers && (c.numel == 1 || c.forms[n - 1].kind == SINGLE))
        singles = 1, at_single = n - 1;
    if (n >= 3 && singles == 1) {
        pt_loop special = nullptr;
        if (at_single == n - 1) special = s.op->vs[loop];
        else if (at_single == 1) special = s.op->sv[loop];
        if (special) in.loop = special, in.one = at_single;
    }
    if (loop == dtypes.result && (loop == PT_FLOAT32 || loop == PT_FLOAT64) &&
        (singles == 0 || in.one)) {
        in.arithmetic = arithmetic_of(s.name, n);
        in.wide = loop == PT_FLOAT64;
    }
    return in;
}

/* Sets the places of what step i reads; returns the slots that are free behind it. */
std::vector<int> builder::read_operands(size_t i, const loop_dtypes &dtypes, const candidate &c,
                                        instruction *in) {
    const step &s = g->steps[i];
    std::vector<int> dying;
    for (int k = 1; k < in->count; k++) {
        const operand &o = s.operands[size_t(k)];
        const int from = s.views[size_t(k)].dtype;
        const bool direct = dtypes.reads(from);
        auto known = slot_of.find({o.buffer, o.offset});
        if (o.buffer >= 0 && known != slot_of.end()) {
            in->places[k] = known->second;
        } else {
            const form &f = c.forms[k];
            stream t = {int(i), k,    f.kind, f.period, f.stride, f.count, int(ITEMSIZE[from]),
                        -1,     false};
            const bool in_place =
                f.kind == FLAT || (k == in->one && direct) || (f.kind == PERIODIC && has_rows(f));
            if (!in_place)
                t.slot = g->slots++; /* gathered before each tile, or once; never reused */
            by_rows |= in_place && f.kind >= PERIODIC;
            g->streams.push_back(t);
            in->places[k] = t.slot >= 0 ? t.slot : -int(g->streams.size());
        }
        if (!direct) {
            in->places[k] = convert(in->places[k], from, dtypes.compute, dtypes.loop);
            dying.push_back(in->places[k]);
        }
    }
    return dying;
}

/* Frees the slots that step i reads last; its result may go there, as a loop
 * may overwrite what it reads. */
void builder::end_slots(size_t i, std::vector<int> *dying) {
    const operand &written = g->steps[i].operands[0];
    for (auto it = slot_of.begin(); it != slot_of.end();) {
        const bool written_here =
            it->first.first == written.buffer && it->first.second == written.offset;
        if (last[it->first] == i && !written_here) {
            dying->push_back(it->second);
            it = slot_of.erase(it);
        } else {
            ++it;
        }
    }
}

/* Adds the loop of step i, and the conversions of its result, to a slot or to memory. */
void builder::write_result(size_t i, const loop_dtypes &dtypes, instruction in,
                           const std::vector<int> &dying) {
    const step &s = g->steps[i];
    const operand &o = s.operands[0];
    const int to = s.views[0].dtype, rounded = dtypes.is_copy ? to : s.loop_out,
              result = dtypes.result;
    const bool stored_as_is = dtypes.is_copy || (to == result && result == rounded);
    const bool stays = inside[size_t(o.buffer)];
    /* Only if sizes are equal: else a loop would overwrite elements that it has not read yet. */
    const bool over =
        stored_as_is && !dtypes.is_copy && (in.count == 1 || ITEMSIZE[dtypes.loop] == ITEMSIZE[to]);
    if (over) give(dying);
    int place;
    if (stays) {
        auto known = slot_of.find({o.buffer, o.offset});
        place = known != slot_of.end() ? known->second : take();
        slot_of[{o.buffer, o.offset}] = place;
    } else {
        g->streams.push_back({int(i), 0, FLAT, 0, 0, 0, int(ITEMSIZE[to]), -1, true});
        place = -int(g->streams.size());
    }
    in.places[0] = stored_as_is ? place : take();
    g->program.push_back(in);
    if (!stored_as_is) {
        int at = in.places[0];
        const bool two = is_rounded(rounded) && rounded != result && rounded != to;
        if (two) {
            const int middle = take();
            g->program.push_back(cast(result, rounded, middle, at));
            give(at);
            at = middle;
        }
        g->program.push_back(cast(two ? rounded : result, to, place, at));
        give(at);
    }
    if (!over) give(dying);
    if (stays && last[{o.buffer, o.offset}] == i) {         /* no step reads it */
        give(place);
        slot_of.erase({o.buffer, o.offset});
    }
}

}  /* namespace */

namespace pt {

candidate candidate_of(const step &s) {
    candidate c;
    if (s.kind != LOOPS && s.kind != COPY) return c;
    const int n = int(s.views.size());
    const pt_view *views[MAX_OPERANDS] = {};
    for (int k = 0; k < n; k++) {
        views[k] = &s.views[size_t(k)];
        if (ITEMSIZE[views[k]->dtype] > 8) return c;
    }
    if (s.kind == LOOPS) {
        const int loop = pt_loop_dtype(s.compute);
        if (!s.op->loop[loop] || ITEMSIZE[s.compute] > 8) return c;
    }
    plan w;
    w.numel = s.views[0].numel;
    make_plan(&w, views, n, 8);
    for (int k = 0; k < n; k++)
        if (w.data[k] != views[k]->data || !form_of(w, k, ITEMSIZE[views[k]->dtype], &c.forms[k]))
            return c;
    if (c.forms[0].kind != FLAT) return c;
    c.numel = s.views[0].numel;
    c.taken = true;
    return c;
}

/* Makes the program of g->steps; the buffers in `inside` are used by these steps alone.
 * False: it needs too many slots. */
static bool make_program(group *g, const std::vector<candidate> &candidates,
                         const std::vector<bool> &inside) {
    builder b(g, inside);
    b.note_last_readers();
    b.choose_row(candidates);
    for (size_t i = 0; i < g->steps.size(); i++) {
        step &s = g->steps[i];
        const loop_dtypes dtypes(s);
        instruction in = b.loop_of(s, dtypes, candidates[i]);
        std::vector<int> dying = b.read_operands(i, dtypes, candidates[i], &in);
        b.end_slots(i, &dying);
        b.write_result(i, dtypes, in, dying);
        g->cost += dtypes.is_copy ? ITEMSIZE[dtypes.loop] + ITEMSIZE[dtypes.compute] : s.op->cost;
    }
    if (g->slots > MAX_SLOTS) return false;
    if (!b.by_rows) g->row = 0;
    if (pt_chains->f32) chain_up(g);
    return true;
}

/* Makes a group of some steps, or returns nothing. `named` counts, for each buffer, the operands of
 * all steps that lie in it. */
static std::unique_ptr<step> make_group(pt_plan *p, const std::vector<step *> &members,
                                        const std::vector<candidate> &own,
                                        const std::vector<int> &named) {
    auto g = std::make_unique<group>();
    std::vector<bool> inside(p->buffers.size(), false);
    std::map<int, int> count;
    for (const step *s : members)
        for (const operand &o : s->operands)
            if (o.buffer >= 0) count[o.buffer]++;
    for (const auto &of : count)
        inside[size_t(of.first)] = p->buffers[size_t(of.first)].kind == PT_BUFFER_TEMPORARY &&
                                   of.second == named[size_t(of.first)];
    /* A buffer read in parts, or in another order than it was written in, stays in memory. */
    std::map<int, use> seen;
    for (size_t i = 0; i < members.size(); i++)
        for (const use &u : uses_of(*members[i], own[i])) {
            auto known = seen.insert({u.buffer, u});
            const use &other = known.first->second;
            if (!in_step(u, other) || (known.second && !u.written))
                inside[size_t(u.buffer)] = false;
        }
    g->numel = own[0].numel;
    for (step *s : members)
        g->steps.push_back(
            std::move(*s)); /* moved vectors keep their memory: pointers into them stay valid */
    if (!make_program(g.get(), own, inside)) {
        for (size_t k = 0; k < members.size(); k++) *members[k] = std::move(g->steps[k]);
        return nullptr;
    }
    for (step &s : g->steps)                    /* buffers that stay in tiles need no memory */
        for (operand &o : s.operands)
            if (o.buffer >= 0 && inside[size_t(o.buffer)]) o.buffer = -1;
    auto whole = std::make_unique<step>();
    whole->kind = GROUP;
    whole->name = "group";
    whole->group = int(p->groups.size());
    p->groups.push_back(std::move(g));
    return whole;
}

std::vector<int> uses_of_buffers(pt_plan *p) {
    std::vector<int> named(p->buffers.size(), 0);
    for (const auto &s : p->steps)
        each_step(p, *s, [&](const step &inner) {
            for (const operand &o : inner.operands)
                if (o.buffer >= 0) named[size_t(o.buffer)]++;
        });
    return named;
}

std::unique_ptr<step> group_of_one(pt_plan *p, std::unique_ptr<step> s,
                                   const std::vector<int> &named) {
    std::vector<step *> members = {s.get()};
    std::unique_ptr<step> whole = make_group(p, members, {candidate_of(*s)}, named);
    return whole ? std::move(whole) : std::move(s);
}

/* Whether a step is one loop over whole operands without conversions, so that a run needs no look
 * at its views. */
static bool is_one_loop(const step &s) {
    if (s.kind != LOOPS) return false;
    const candidate c = candidate_of(s);
    const loop_dtypes dtypes(s);
    if (!c.taken || s.views[0].dtype != dtypes.result || dtypes.result != s.loop_out) return false;
    int singles = 0, at_single = 0;
    for (int k = 1; k < int(s.views.size()); k++) {
        if (!dtypes.reads(s.views[size_t(k)].dtype)) return false;
        if (c.forms[k].kind == SINGLE) singles++, at_single = k;
        else if (c.forms[k].kind != FLAT) return false;
    }
    if (!singles) return true;
    const pt_loop *special = at_single == 2 ? s.op->vs : s.op->sv;
    return s.views.size() == 3 && singles == 1 && special[dtypes.loop];
}

void settle_loops(pt_plan *p) {
    const std::vector<int> named = uses_of_buffers(p);
    for (auto &s : p->steps) {
        if (!is_one_loop(*s)) continue;
        const std::string name = s->name;
        s = group_of_one(p, std::move(s), named);
        s->name = name;
    }
}

void fuse(pt_plan *p) {
    std::vector<candidate> candidates;
    for (const auto &s : p->steps) candidates.push_back(candidate_of(*s));
    const std::vector<int> named = uses_of_buffers(p);
    const size_t n = p->steps.size();
    std::vector<std::unique_ptr<step>> order;
    for (size_t first = 0; first < n; first++) {
        if (!p->steps[first]) continue;         /* it already went before an earlier group */
        if (!candidates[first].taken) {
            order.push_back(std::move(p->steps[first]));
            continue;
        }
        /* Steps of other sizes that stand between members, and do not depend on
         * any, go before the group. */
        std::vector<use> uses = uses_of(*p->steps[first], candidates[first]);
        std::vector<size_t> members = {first}, between, ahead;
        for (size_t i = first + 1;
             i < n && members.size() < MOST_STEPS && between.size() < MOST_BETWEEN; i++) {
            if (!p->steps[i]) continue;
            step &s = *p->steps[i];
            if (candidates[i].taken && candidates[i].numel == candidates[first].numel) {
                const std::vector<use> more = uses_of(s, candidates[i]);
                if (fits(uses, more)) {
                    uses.insert(uses.end(), more.begin(), more.end());
                    members.push_back(i);
                    ahead.insert(ahead.end(), between.begin(), between.end());
                    between.clear();
                    continue;
                }
            }
            if (!may_go_first(p, s, uses)) break;
            between.push_back(i);
        }
        std::unique_ptr<step> whole;
        auto group_of = [&]() {
            std::vector<step *> steps;
            std::vector<candidate> own;
            for (size_t i : members) {
                steps.push_back(p->steps[i].get());
                own.push_back(candidates[i]);
            }
            return make_group(p, steps, own, named);
        };
        while (members.size() > 1 && !(whole = group_of())) {
            members.resize(members.size() / 2);
            while (!ahead.empty() && ahead.back() > members.back()) ahead.pop_back();
        }
        for (size_t i : ahead) order.push_back(std::move(p->steps[i]));
        if (whole) for (size_t i : members) p->steps[i].reset();
        order.push_back(whole ? std::move(whole) : std::move(p->steps[first]));
    }
    p->steps = std::move(order);
}

/* ---- results over operands ---- */

bool may_overwrite(const pt_plan *p, const step &s, int out, int in) {
    auto lie_alike = [](const step &s, int out, int in) {
        const candidate c = candidate_of(s);
        int64_t offset = -1;
        int size = 0;
        for (size_t k = 0; k < s.operands.size(); k++) {
            const bool is_out = s.operands[k].buffer == out;
            if (!is_out && s.operands[k].buffer != in) continue;
            if (!c.taken || c.forms[k].kind != FLAT || (int(k) < s.nout) != is_out) return false;
            const int itemsize = int(ITEMSIZE[s.views[k].dtype]);
            if (offset >= 0 && (offset != s.operands[k].offset || size != itemsize)) return false;
            offset = s.operands[k].offset;
            size = itemsize;
        }
        return true;
    };
    if (s.kind == LOOPS) return lie_alike(s, out, in);
    if (s.kind == ROWS) return rows_may_overwrite(*p->row_groups[size_t(s.group)], out, in);
    if (s.kind != GROUP) return false;
    const group &g = *p->groups[size_t(s.group)];
    int64_t offset = -1;
    int size = 0;
    for (const stream &t : g.streams) {
        const operand &o = g.steps[size_t(t.view_of_step)].operands[size_t(t.view)];
        if (o.buffer != out && o.buffer != in) continue;
        if (t.form != FLAT || t.written != (o.buffer == out)) return false;
        if (offset >= 0 && (offset != o.offset || size != t.itemsize)) return false;
        offset = o.offset;
        size = t.itemsize;
    }
    /* In a tile, the operand must be read before the result is stored, or in the same loop. */
    bool stored = false;
    auto meets = [&](int place, int buffer) {
        if (place >= 0) return false;
        const stream &t = g.streams[size_t(-1 - place)];
        return g.steps[size_t(t.view_of_step)].operands[size_t(t.view)].buffer == buffer;
    };
    for (const instruction &in_tile : g.program) {
        if (in_tile.chain < 0) {
            for (int k = 1; k < in_tile.count; k++)
                if (stored && meets(in_tile.places[k], in)) return false;
            stored |= meets(in_tile.places[0], out);
            continue;
        }
        const chain &run = g.chains[size_t(in_tile.chain)];
        for (size_t k = 0; k < run.ops.size(); k++) {
            if (run.ops[k] == PT_CHAIN_STORE) stored |= meets(run.places[k], out);
            else if (stored && meets(run.places[k], in)) return false;
        }
    }
    return true;
}

/* ---- running ---- */

/* Gathers c elements of a stream, from element i on, into a slot. */
static void gather(const stream &t, const char *data, int64_t i, int64_t c, char *slot) {
    if (t.form == SINGLE) {
        load_block(slot, data, 1, c, 0, 0, t.itemsize);
        return;
    }
    const int64_t period = t.period, size = t.itemsize;
    int64_t at = i % period, done = 0;
    while (done < c) {
        const int64_t run = std::min(period - at, c - done);
        if (t.form == PERIODIC) memcpy(slot + done * size, data + at * size, size_t(run * size));
        else
            load_block(slot + done * size, data + (i + done) / period % t.count * t.stride, 1, run,
                       0, 0, size);
        done += run;
        at = 0;
    }
}

void run_tiles(const group &g, const char *const *data, int64_t begin, int64_t end) {
    struct alignas(64) { char bytes[MAX_SLOTS][SLOT_BYTES]; } slots;
    const size_t n = g.slots ? g.streams.size() : 0;    /* streams that may need gathering */
    for (size_t k = 0; k < n; k++)
        if (g.streams[k].form == SINGLE && g.streams[k].slot >= 0)
            gather(g.streams[k], data[k], 0, TILE, slots.bytes[g.streams[k].slot]);
    /* A single loop without slots needs no tiles; rows are cut into tiles of equal length. */
    const int64_t tiles = (g.row + TILE - 1) / TILE;
    const int64_t tile = !g.slots && g.program.size() == 1 ? end
                         : g.row                           ? (g.row + tiles - 1) / tiles
                                                           : int64_t(TILE);
    for (int64_t i = begin, c; i < end; i += c) {
        c = std::min(tile, end - i);
        if (g.row) c = std::min(c, g.row - i % g.row);
        for (size_t k = 0; k < n; k++)
            if (g.streams[k].form >= PERIODIC && g.streams[k].slot >= 0)
                gather(g.streams[k], data[k], i, c, slots.bytes[g.streams[k].slot]);
        auto address = [&](int place) {
            if (place >= 0) return slots.bytes[place];
            const stream &t = g.streams[size_t(-1 - place)];
            const int64_t at = t.form == FLAT       ? i * t.itemsize
                               : t.form == SINGLE   ? 0
                               : t.form == PERIODIC ? i % t.period * t.itemsize
                                                    : i / t.period % t.count * t.stride;
            return const_cast<char *>(data[-1 - place]) + at;
        };
        for (const instruction &in : g.program) {
            char *ptr[MOST_LINKS];
            if (in.chain < 0) {
                for (int k = 0; k < in.count; k++) ptr[k] = address(in.places[k]);
                in.loop(ptr, c, in.params);
                continue;
            }
            const chain &run = g.chains[size_t(in.chain)];
            const int links = int(run.ops.size());
            for (int k = 0; k < links; k++) ptr[k] = address(run.places[size_t(k)]);
            (run.wide ? pt_chains->f64 : pt_chains->f32)(run.ops.data(), ptr, links, c);
        }
    }
}

void run_group(const group &g) {
    const int64_t grain = (grain_of(g.cost) + TILE - 1) / TILE * TILE;
    parallel_for(g.numel, grain, [&](int64_t begin, int64_t end) {
        const char *data[MOST_STREAMS];
        for (size_t k = 0; k < g.streams.size(); k++)
            data[k] =
                g.steps[size_t(g.streams[k].view_of_step)].views[size_t(g.streams[k].view)].data;
        run_tiles(g, data, begin, end);
    });
}

}  /* namespace pt */

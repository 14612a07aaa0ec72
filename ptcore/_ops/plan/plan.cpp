/* Recording, placing and running the steps of a plan (plan.h). */
#include "plan.hpp"
#include "loops.h"

#include <algorithm>
#include <cstring>

using namespace pt;

namespace {

const int64_t ALIGNMENT = 64;
const int64_t LEAST_GUEST =
    65536;     /* bytes; for a smaller buffer, binding it at each run costs more than its memory */

/* The number of the buffer that an address lies in; -1: none. */
int find(const pt_plan *p, const char *data) {
    auto it = p->by_address.upper_bound(data);
    if (it == p->by_address.begin()) return -1;
    const int k = (--it)->second;
    const buffer &b = p->buffers[size_t(k)];
    return data < b.data + b.nbytes ? k : -1;
}

int spoil(pt_plan *p, const char *why) {
    pt_plan_spoil(p, why);
    return -1;
}

/* Takes over the views of a step: the place of each, its sizes and its strides. False:
 * a view lies in no buffer. */
bool take_views(pt_plan *p, step *s, const pt_view *out, int nout, const pt_view *in, int nin,
                const double *numbers[]) {
    s->nout = nout;
    size_t room = 0;
    for (int k = 0; k < nout + nin; k++) {
        s->views.push_back(k < nout ? out[k] : in[k - nout]);
        const pt_view &v = s->views.back();
        operand o = {-1, 0};
        const bool is_number = k >= nout && numbers && numbers[k - nout];
        if (!is_number && v.dtype != PT_NONE && v.numel) {
            o.buffer = find(p, v.data);
            if (o.buffer < 0) {
                spoil(p, "it uses memory that is neither an argument nor made by the graph");
                return false;
            }
            o.offset = v.data - p->buffers[size_t(o.buffer)].data;
        }
        s->operands.push_back(o);
        room += 2 * size_t(v.dtype == PT_NONE ? 0 : v.ndim);
    }
    for (const pt_param &q : s->params)
        if (q.kind == PT_PARAM_INTS) room += size_t(q.count);
    s->numbers.reserve(room);           /* reserved, so that the addresses taken below stay valid */
    for (pt_view &v : s->views) {
        if (v.dtype == PT_NONE || !v.ndim) continue;
        const size_t at = s->numbers.size();
        s->numbers.insert(s->numbers.end(), v.sizes, v.sizes + v.ndim);
        s->numbers.insert(s->numbers.end(), v.strides, v.strides + v.ndim);
        v.sizes = s->numbers.data() + at;
        v.strides = v.sizes + v.ndim;
    }
    for (pt_param &q : s->params) {
        if (q.kind != PT_PARAM_INTS) continue;
        const size_t at = s->numbers.size();
        s->numbers.insert(s->numbers.end(), q.list, q.list + q.count);
        q.list = s->numbers.data() + at;
    }
    return true;
}

void append(pt_plan *p, std::unique_ptr<step> s) { p->steps.push_back(std::move(s)); }

/* Calls f(operand index) for each operand that lies in a buffer. */
template<class F> void each_operand(const step &s, F f) {
    for (size_t k = 0; k < s.operands.size(); k++)
        if (s.operands[k].buffer >= 0) f(k);
}

void note_uses(pt_plan *p) {
    for (buffer &b : p->buffers) b.first = b.last = -1, b.written = false;
    for (size_t i = 0; i < p->steps.size(); i++)
        each_step(p, *p->steps[i], [&](const step &s) {
            each_operand(s, [&](size_t k) {
                buffer &b = p->buffers[size_t(s.operands[k].buffer)];
                if (b.first < 0) b.first = int64_t(i);
                b.last = int64_t(i);
                b.written |= int(k) < s.nout;
            });
        });
}

/* Whether two buffers may start at the same place: the use of one ends before the other begins, or
 * the step that begins the other may overwrite the first. */
bool may_share(const pt_plan *p, const buffer &a, const buffer &b) {
    const buffer &before = a.last <= b.last ? a : b, &behind = &before == &a ? b : a;
    if (before.last < behind.first) return true;
    return before.last == behind.first && before.nbytes >= behind.nbytes &&
           may_overwrite(p, *p->steps[size_t(behind.first)], int(&behind - p->buffers.data()),
                         int(&before - p->buffers.data()));
}

/* Whether memory [at, at + nbytes) is free for a buffer, given the buffers placed so far. */
bool is_free(const pt_plan *p, const std::vector<buffer *> &placed, const buffer &b, int64_t at) {
    for (const buffer *other : placed)
        if (at < other->place + other->nbytes && other->place < at + b.nbytes &&
            !(other->place == at ? may_share(p, b, *other)
                                 : other->last < b.first || other->first > b.last))
            return false;
    return true;
}

/* The lowest place that is free for a buffer, given those placed so far, sorted by place: behind
 * buffers that live at the same time, or at the start of one that it may overwrite. */
int64_t lowest_place(const pt_plan *p, const std::vector<buffer *> &placed, const buffer &b) {
    int64_t at = 0, overwritten = INT64_MAX;
    bool found = false;
    for (const buffer *other : placed) {
        if (other->last < b.first || other->first > b.last) continue;
        if (overwritten == INT64_MAX && may_share(p, b, *other) &&
            is_free(p, placed, b, other->place))
            overwritten = other->place;
        found |= other->place >= at + b.nbytes;
        if (!found)
            at = std::max(at, (other->place + other->nbytes + ALIGNMENT - 1) / ALIGNMENT *
                                  ALIGNMENT);
    }
    return std::min(at, overwritten);
}

/* Places the temporary buffers: in a result that is written later, or else in the arena. Large
 * buffers come first; each gets the lowest place that is free during its lifetime. */
void place(pt_plan *p) {
    std::vector<buffer *> temporary, placed;
    std::vector<std::vector<buffer *>> inside(p->buffers.size());
    for (buffer &b : p->buffers)
        if (b.kind == PT_BUFFER_TEMPORARY && b.first >= 0) temporary.push_back(&b);
    std::stable_sort(temporary.begin(), temporary.end(), [](const buffer *a, const buffer *b) {
        return a->nbytes != b->nbytes ? a->nbytes > b->nbytes
                                      : a->last > b->last; /* a result hosts the latest ones */
    });
    p->arena_bytes = 0;
    p->guests.assign(p->buffers.size(), {});
    for (buffer *b : temporary) {
        b->host = -1;
        b->place = 0;
        for (size_t k = 0; k < p->buffers.size() && b->host < 0 && b->nbytes >= LEAST_GUEST; k++) {
            const buffer &result = p->buffers[k];
            if (result.kind != PT_BUFFER_RESULT || result.nbytes < b->nbytes || result.first < 0)
                continue;
            if (!may_share(p, *b, result) || b->first > result.first ||
                !is_free(p, inside[k], *b, 0))
                continue;
            b->host = int(k);
            inside[k].push_back(b);
            p->guests[k].push_back(int(b - p->buffers.data()));
        }
        if (b->host >= 0) continue;
        b->place = lowest_place(p, placed, *b);
        const auto at = std::upper_bound(
            placed.begin(), placed.end(), b,
            [](const buffer *x, const buffer *y) { return x->place < y->place; });
        placed.insert(at, b);
        p->arena_bytes = std::max(p->arena_bytes, b->place + b->nbytes);
    }
}

void collect_patches(pt_plan *p) {
    p->patches.assign(p->buffers.size(), {});
    for (auto &whole : p->steps)
        each_step(p, *whole, [&](step &s) {
            if (s.kind == PAUSE) return;
            each_operand(s, [&](size_t k) {
                p->patches[size_t(s.operands[k].buffer)].push_back({&s.views[k].data,
                                                                    s.operands[k].offset});
            });
        });
}

int64_t work_of(const step &s) {
    int64_t n = 0;
    for (const pt_view &v : s.views) n += v.dtype == PT_NONE ? 0 : v.numel;
    return n;
}

}  /* namespace */

extern "C" {

extern const pt_chain_table pt_chains_base;
const pt_chain_table *pt_chains = &pt_chains_base;

pt_plan *pt_plan_new(void) { return new pt_plan; }

void pt_plan_delete(pt_plan *p) { delete p; }

int pt_plan_add_buffer(pt_plan *p, char *data, int64_t nbytes) {
    buffer b;
    b.data = data;
    b.nbytes = nbytes;
    p->buffers.push_back(b);
    const int k = int(p->buffers.size()) - 1;
    if (nbytes > 0) p->by_address[data] = k;
    return k;
}

int pt_plan_buffer_of(const pt_plan *p, const char *data) { return find(p, data); }

int pt_plan_add_kernel(pt_plan *p, const char *name, pt_kernel kernel, const pt_call *call,
                       int random) {
    auto s = std::make_unique<step>();
    s->kind = KERNEL;
    s->name = name;
    s->kernel = kernel;
    s->random = random != 0;
    s->call = *call;
    s->params.assign(call->params, call->params + call->nparams);
    if (!take_views(p, s.get(), call->out, call->nout, call->in, call->nin, nullptr)) return -1;
    s->call.out = s->views.data();
    s->call.in = s->views.data() + call->nout;
    s->call.params = s->params.data();
    append(p, std::move(s));
    return 0;
}

int pt_plan_add_loops(pt_plan *p, const pt_elementwise *op, int compute, int loop_out,
                      const pt_view *out, const pt_view *in, int nin, const void *params,
                      int64_t params_bytes) {
    if (!out->numel) return 0;
    auto s = std::make_unique<step>();
    s->kind = LOOPS;
    s->name = op->name;
    s->op = op;
    s->compute = compute;
    s->loop_out = loop_out;
    /* A number among the operands lies on the caller's stack: in no
     * buffer, and with strides of 0. */
    const double *numbers[PT_MAX_ELEMENTWISE_INPUTS] = {};
    for (int k = 0; k < nin; k++) {
        bool still = true;
        for (int d = 0; d < in[k].ndim; d++) still &= in[k].strides[d] == 0;
        if (still && find(p, in[k].data) < 0)
            numbers[k] = reinterpret_cast<const double *>(in[k].data);
    }
    if (!take_views(p, s.get(), out, 1, in, nin, numbers)) return -1;
    const size_t room = size_t(params_bytes) / sizeof(double);
    s->values.resize(2 * size_t(nin) + room);
    for (int k = 0; k < nin; k++) {
        if (!numbers[k]) continue;
        std::memcpy(&s->values[2 * size_t(k)], numbers[k], size_t(pt_itemsize(in[k].dtype)));
        s->views[size_t(k) + 1].data = reinterpret_cast<char *>(&s->values[2 * size_t(k)]);
    }
    if (room) std::memcpy(&s->values[2 * size_t(nin)], params, room * sizeof(double));
    append(p, std::move(s));
    return 0;
}

int pt_plan_add_copy(pt_plan *p, const pt_view *dst, const pt_view *src) {
    if (!dst->numel) return 0;
    auto s = std::make_unique<step>();
    s->kind = COPY;
    s->name = "copy";
    if (!take_views(p, s.get(), dst, 1, src, 1, nullptr)) return -1;
    append(p, std::move(s));
    return 0;
}

void pt_plan_set_dry(pt_plan *p, int dry) { p->is_dry = dry; }

int pt_plan_is_dry(const pt_plan *p) { return p->is_dry; }

void pt_plan_add_pause(pt_plan *p) {
    auto s = std::make_unique<step>();
    s->kind = PAUSE;
    append(p, std::move(s));
}

void pt_plan_pause_reads(pt_plan *p, int buffer) {
    p->steps.back()->operands.push_back({buffer, 0});
}

void pt_plan_spoil(pt_plan *p, const char *why) {
    if (p->is_spoilt) return;
    p->is_spoilt = true;
    p->spoilt = why;
}

const char *pt_plan_spoilt(const pt_plan *p) { return p->is_spoilt ? p->spoilt.c_str() : nullptr; }

int64_t pt_plan_length(const pt_plan *p) { return int64_t(p->steps.size()); }

void pt_plan_cut(pt_plan *p, int64_t length) {
    p->steps.resize(size_t(length));
    p->is_spoilt = false;
}

void pt_plan_set_kind(pt_plan *p, int k, int kind) { p->buffers[size_t(k)].kind = kind; }

int pt_plan_kind(const pt_plan *p, int k) { return p->buffers[size_t(k)].kind; }

int pt_plan_writes(const pt_plan *p, int k) {
    for (const auto &s : p->steps)
        for (int i = 0; i < s->nout; i++)
            if (s->operands[size_t(i)].buffer == k) return 1;
    return 0;
}

void pt_plan_finish(pt_plan *p, int fused) {
    note_uses(p);
    for (const auto &s : p->steps) p->work = std::max(p->work, work_of(*s));
    if (fused) {
        fuse(p);
        fuse_rows(p);
        settle_loops(p);
    }
    note_uses(p);
    place(p);
    collect_patches(p);
    for (const auto &s : p->steps) p->draws |= s->random;
    p->by_address.clear();              /* the recorded memory may be freed from here on */
}

int64_t pt_plan_arena_bytes(const pt_plan *p) { return p->arena_bytes; }
int64_t pt_plan_work(const pt_plan *p) { return p->work; }

int64_t pt_plan_draws(const pt_plan *p, int64_t at) {
    int64_t n = 0;
    if (p->draws)
        for (; at < int64_t(p->steps.size()) && p->steps[size_t(at)]->kind != PAUSE; at++)
            n += p->steps[size_t(at)]->random;
    return n;
}

const char *pt_plan_step_name(const pt_plan *p, int64_t i) {
    return i >= 0 && i < int64_t(p->steps.size()) ? p->steps[size_t(i)]->name.c_str() : nullptr;
}

int pt_plan_make_tile(pt_plan *p) {
    if (p->steps.size() != 1) return 0;
    if (candidate_of(*p->steps[0]).taken) {
        const auto uses = uses_of_buffers(p); /* counted before the step is moved */
        p->steps[0] = group_of_one(p, std::move(p->steps[0]), uses);
        collect_patches(p);
    }
    return p->steps[0]->kind == GROUP;
}

void pt_plan_run_tile(const pt_plan *p, char *const *buffers, int64_t count) {
    const group &g = *p->groups[size_t(p->steps[0]->group)];
    const char *data[MOST_STREAMS];
    for (size_t k = 0; k < g.streams.size(); k++) {
        const step &s = g.steps[size_t(g.streams[k].view_of_step)];
        const operand &o = s.operands[size_t(g.streams[k].view)];
        data[k] =
            o.buffer >= 0 ? buffers[o.buffer] + o.offset : s.views[size_t(g.streams[k].view)].data;
    }
    run_tiles(g, data, 0, count);
}

void pt_plan_set_arena(pt_plan *p, char *arena) {
    for (size_t k = 0; k < p->buffers.size(); k++)
        if (p->buffers[k].kind == PT_BUFFER_TEMPORARY && p->buffers[k].first >= 0 &&
            p->buffers[k].host < 0)
            pt_plan_bind(p, int(k), arena + p->buffers[k].place);
}

char *pt_plan_address(const pt_plan *p, int k) { return p->buffers[size_t(k)].data; }

void pt_plan_bind(pt_plan *p, int k, char *data) {
    p->buffers[size_t(k)].data = data;
    for (const patch &where : p->patches[size_t(k)]) *where.where = data + where.offset;
    if (p->buffers[size_t(k)].kind == PT_BUFFER_RESULT)
        for (int guest : p->guests[size_t(k)]) pt_plan_bind(p, guest, data);
}

int pt_plan_host(const pt_plan *p, int k) { return p->buffers[size_t(k)].host; }

int pt_plan_run(pt_plan *p, int64_t *at, uint64_t seed, uint64_t offset, void *twister,
                const char **error) {
    const int64_t n = int64_t(p->steps.size());
    for (int64_t i = *at; i < n; i++) {
        step &s = *p->steps[size_t(i)];
        int status = PT_OK;
        switch (s.kind) {
        case KERNEL:
            if (s.random) s.call.seed = seed, s.call.offset = offset++, s.call.stream = twister;
            s.call.error[0] = 0;
            status = s.kernel(&s.call);
            *error = s.call.error;
            break;
        case LOOPS:
            status = pt_elementwise_run(s.op, s.compute, s.loop_out, s.views.data(),
                                        s.views.data() + 1, int(s.views.size()) - 1,
                                        s.values.data() + 2 * (s.views.size() - 1));
            *error = "there is no loop";
            break;
        case COPY:
            status = pt_copy(&s.views[0], &s.views[1]);
            *error = "the copy failed";
            break;
        case GROUP:
            run_group(*p->groups[size_t(s.group)]);
            break;
        case ROWS:
            status = run_rows(*p->row_groups[size_t(s.group)], p);
            *error = p->row_groups[size_t(s.group)]->error;
            break;
        default:
            *at = i + 1;
            return PT_OK;
        }
        if (status != PT_OK) {
            *at = i;
            return status;
        }
    }
    *at = PT_PLAN_DONE;
    return PT_OK;
}

}  /* extern "C" */

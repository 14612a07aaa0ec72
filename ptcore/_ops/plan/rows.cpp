/* Row groups: kernels that work row by row (softmax, norms, reductions of the last dims), and the
 * elementwise steps around them. They run on blocks of rows, so that the result of one step is
 * still in the cache for the next.
 *
 * A kernel is called with views of some of the rows: it must give each row the same bits as in a
 * call with all rows. A buffer that only the steps of one row group use has no memory in the plan,
 * but memory for one block in each thread.
 */
#include "plan.hpp"
#include "loops.h"
#include "../kernels/common.hpp"
#include "../kernels/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <numeric>

using namespace pt;

namespace {

enum { MOST_MEMBERS = 32, MOST_BETWEEN = 16, MOST_VIEWS = 8 };
const int64_t BLOCK_BYTES = 262144; /* of the rows that the members of a group handle at once */
const int64_t ROW_BYTES = 524288;           /* bytes of the largest row that is accepted */
const int64_t LEAST_BLOCK = 16384;          /* smaller blocks are not worth the calls */
const int64_t LEAST_BYTES = 524288;         /* smaller groups stay in the cache anyway */
const int64_t ALIGNMENT = 64;

/* ---- kernels that work row by row ---- */

/* Which dims of the first input make a row: the last dim (`dim`), several last dims (`count`,
 * `dims`), or a sample. A reduction of at most SHORT elements per row is not taken: it adds up in
 * one of two ways, depending on the number of rows. */
enum { DIM, REDUCED_DIM, REDUCED_DIMS, TRAILING, SAMPLE };
const int64_t SHORT = 16;

struct rowwise {
    const char *name;
    int kind, param;            /* the parameter that gives the dims */
    int inputs;                 /* the first `inputs` inputs have rows; all rows share the others */
    pt_kernel kernel = nullptr; /* the implementation in use */
};
rowwise KERNELS[] = {{"softmax", DIM, 0, 1},
                     {"log_softmax", DIM, 0, 1},
                     {"softmax_backward", DIM, 0, 2},
                     {"log_softmax_backward", DIM, 0, 2},
                     {"layer_norm", TRAILING, 0, 1},
                     {"rms_norm", TRAILING, 0, 1},
                     {"group_norm", SAMPLE, 0, 1},
                     {"sum", REDUCED_DIMS, 0, 1},
                     {"mean", REDUCED_DIMS, 0, 1},
                     {"nansum", REDUCED_DIMS, 0, 1},
                     {"prod", REDUCED_DIMS, 0, 1},
                     {"var", REDUCED_DIMS, 0, 1},
                     {"std", REDUCED_DIMS, 0, 1},
                     {"vector_norm", REDUCED_DIMS, 1, 1},
                     {"logsumexp", REDUCED_DIMS, 0, 1},
                     {"count_nonzero", REDUCED_DIMS, 0, 1},
                     {"any", REDUCED_DIMS, 0, 1},
                     {"all", REDUCED_DIMS, 0, 1},
                     {"amax", REDUCED_DIMS, 0, 1},
                     {"amin", REDUCED_DIMS, 0, 1},
                     {"max_dim", REDUCED_DIM, 0, 1},
                     {"min_dim", REDUCED_DIM, 0, 1},
                     {"argmax", REDUCED_DIM, 0, 1},
                     {"argmin", REDUCED_DIM, 0, 1}};

const rowwise *find_kernel(const step &s) {
    if (s.kind != KERNEL || s.random || s.views.size() > MOST_VIEWS) return nullptr;
    if (s.nout > 3) return nullptr;             /* running statistics depend on all rows */
    for (const rowwise &k : KERNELS)
        if (s.kernel == k.kernel) return &k;
    return nullptr;
}

/* How many leading dims of the first input count its rows; 0: the step does not work by rows. */
int leading_dims(const step &s, const rowwise &kernel) {
    const pt_view &x = s.views[size_t(s.nout)];
    const pt_param &q = s.params[size_t(kernel.param)];
    int last = 0;               /* number of dims in a row */
    switch (kernel.kind) {
    case SAMPLE: return x.ndim > 1;
    case TRAILING: last = int(q.i); break;
    case REDUCED_DIMS: {
        uint64_t seen = 0;
        last = q.kind == PT_PARAM_INTS ? q.count : 0;
        for (int k = 0; k < last; k++) {
            const int64_t d = (q.list[k] < 0 ? q.list[k] + x.ndim : q.list[k]) - (x.ndim - last);
            if (d >= 0 && d < last) seen |= uint64_t(1) << d;
        }
        if (last >= x.ndim || seen + 1 != uint64_t(1) << last) return 0;
        break;
    }
    default:
        if (q.kind != PT_PARAM_INT || (q.i != -1 && q.i != x.ndim - 1)) return 0;
        last = 1;
    }
    if (last < 1 || last >= x.ndim) return 0;
    int64_t n = 1;
    for (int d = x.ndim - last; d < x.ndim; d++) n *= x.sizes[d];
    return n > SHORT || kernel.kind == DIM || kernel.kind == TRAILING ? x.ndim - last : 0;
}

/* The number of rows of a kernel, and a piece for each of its views; 0:
 * it does not work by rows. */
int64_t rows_of(const step &s, std::vector<piece> *pieces, int *leading) {
    const rowwise *kernel = find_kernel(s);
    *leading = kernel ? leading_dims(s, *kernel) : 0;
    if (!*leading) return 0;
    const pt_view &x = s.views[size_t(s.nout)];
    int64_t rows = 1;
    for (int d = 0; d < *leading; d++) rows *= x.sizes[d];
    for (size_t k = 0; k < s.views.size(); k++) {
        const pt_view &v = s.views[k];
        piece of = {s.operands[k].buffer, s.operands[k].offset, 0, 0, 0, int(k) < s.nout, -1};
        if (v.dtype != PT_NONE && v.numel && v.data) {
            int64_t low = 0, high = 0;
            for (int d = 0; d < v.ndim; d++)
                (v.strides[d] < 0 ? low : high) += v.strides[d] * (v.sizes[d] - 1);
            of.offset += low * pt_itemsize(v.dtype);
            of.bytes = (high - low + 1) * pt_itemsize(v.dtype);
            if (int(k) < s.nout + kernel->inputs) {
                if (!v.contiguous || v.ndim < *leading ||
                    !std::equal(x.sizes, x.sizes + *leading, v.sizes))
                    return 0;
                of.pitch = of.bytes / rows;
            }
        }
        pieces->push_back(of);
    }
    return rows;
}

/* ---- elementwise steps, by rows ---- */

/* Whether an operand is a sequence of rows of n elements, or the same for all
 * rows; describes it in a piece. */
bool has_rows(const form &f, int64_t n, int64_t itemsize, piece *of) {
    if (f.kind == FLAT) of->pitch = n * itemsize;
    if (f.kind == FLAT || f.kind == SINGLE) return true;
    const int64_t whole = f.kind == PERIODIC ? f.period : f.period * f.count;
    if (n % whole == 0) return true;
    if (whole % n || (f.kind == REPEATED && n % f.period)) return false;
    of->pitch = f.kind == PERIODIC ? n * itemsize : n / f.period * f.stride;
    of->wrap = whole / n;
    return true;
}

/* The pieces of an elementwise step or a group whose elements make `rows` rows. */
bool pieces_by_rows(const pt_plan *p, const step &s, int64_t rows, std::vector<piece> *pieces) {
    pieces->clear();
    auto add = [&](const operand &o, const form &f, int64_t numel, int64_t itemsize, bool written) {
        piece of = {o.buffer, o.offset, f.bytes, 0, 0, written, -1};
        const bool fits = has_rows(f, numel / rows, itemsize, &of);
        if (of.wrap == rows) of.wrap = 0;
        pieces->push_back(of);
        return fits;
    };
    if (s.kind == GROUP) {
        const group &g = *p->groups[size_t(s.group)];
        if (g.numel % rows) return false;
        for (const stream &t : g.streams) {
            const step &inner = g.steps[size_t(t.view_of_step)];
            const int64_t bytes = t.form == FLAT       ? g.numel * t.itemsize
                                  : t.form == SINGLE   ? t.itemsize
                                  : t.form == PERIODIC ? t.period * t.itemsize
                                                       : t.stride * (t.count - 1) + t.itemsize;
            if (!add(inner.operands[size_t(t.view)], {t.form, t.period, t.stride, bytes, t.count},
                     g.numel, t.itemsize, t.written))
                return false;
        }
        return true;
    }
    const candidate c = candidate_of(s);
    if (!c.taken || c.numel % rows) return false;
    for (size_t k = 0; k < s.views.size(); k++)
        if (!add(s.operands[k], c.forms[k], c.numel, pt_itemsize(s.views[k].dtype),
                 int(k) < s.nout))
            return false;
    return true;
}

/* ---- which steps go together ---- */

/* Whether a step shares rows, in step, with the steps that have these uses. */
bool meets(const std::vector<piece> &uses, const std::vector<piece> &more) {
    for (const piece &a : more)
        for (const piece &b : uses)
            if (overlap(a, b) && in_step(a, b)) return true;
    return false;
}

struct maker {
    pt_plan *p;
    std::vector<int> named;
    std::vector<int64_t> rows;                  /* the number of rows of each kernel */
    std::vector<std::vector<piece>> pieces;
    std::vector<int> leading;

    explicit maker(pt_plan *plan) : p(plan), named(uses_of_buffers(plan)) {
        for (const auto &s : p->steps) {
            std::vector<piece> found;
            int dims = 0;
            rows.push_back(rows_of(*s, &found, &dims));
            pieces.push_back(std::move(found));
            leading.push_back(dims);
        }
    }

    /* The number of rows of step i if it is a kernel, else of a kernel that reads its result. */
    int64_t rows_from(size_t i) {
        if (rows[i] || !p->steps[i]) return rows[i];
        if (!pieces_by_rows(p, *p->steps[i], 1, &pieces[i])) return 0;
        for (size_t k = i + 1; k < p->steps.size() && k <= i + MOST_BETWEEN; k++) {
            if (!p->steps[k] || !rows[k] || !pieces_by_rows(p, *p->steps[i], rows[k], &pieces[i]))
                continue;
            for (const piece &a : pieces[i])
                for (const piece &b : pieces[k])
                    if (a.written && !b.written && overlap(a, b) && in_step(a, b)) return rows[k];
        }
        return 0;
    }

    bool takes(size_t i, int64_t n) {
        return rows[i] ? rows[i] == n : pieces_by_rows(p, *p->steps[i], n, &pieces[i]);
    }

    std::unique_ptr<step> make(const std::vector<size_t> &members, int64_t n);
    void views_of(member *m, int dims, const row_group &g);
};

/* Makes the views of a kernel for a full block of rows and for the shorter block at the end. */
void maker::views_of(member *m, int dims, const row_group &g) {
    const int64_t counts[2] = {g.block, g.span % g.block};
    for (int w = 0; w < 2; w++) {
        size_t room = 0;
        for (const pt_view &v : m->of->views) room += v.dtype == PT_NONE ? 0 : 2 * size_t(v.ndim);
        m->numbers[w].reserve(room);    /* reserved, so that the addresses taken below stay valid */
        for (size_t k = 0; k < m->of->views.size(); k++) {
            pt_view v = m->of->views[k];
            if (m->pieces[k].pitch) {
                const size_t at = m->numbers[w].size();
                for (int d = 0; d < v.ndim; d++)
                    m->numbers[w].push_back(d < dims - 1    ? 1
                                            : d == dims - 1 ? counts[w]
                                                            : v.sizes[d]);
                int64_t stride = 1;
                std::vector<int64_t> strides;
                for (int d = v.ndim - 1; d >= 0; stride *= m->numbers[w][at + size_t(d--)])
                    strides.push_back(stride);
                m->numbers[w].insert(m->numbers[w].end(), strides.rbegin(), strides.rend());
                v.sizes = m->numbers[w].data() + at;
                v.strides = v.sizes + v.ndim;
                v.numel = v.numel / g.rows * counts[w];
            }
            m->views[w].push_back(v);
        }
    }
}

/* Makes a row group of some steps; returns nothing if that is not worth it. */
std::unique_ptr<step> maker::make(const std::vector<size_t> &members, int64_t n) {
    std::map<int, piece> buffers;               /* one piece of each buffer that has rows */
    std::map<int, int> count;
    std::map<int, bool> own;
    bool kernels = false;
    for (size_t i : members) {
        kernels |= rows[i] > 0;
        each_step(p, *p->steps[i], [&](const step &s) {
            for (const operand &o : s.operands)
                if (o.buffer >= 0) count[o.buffer]++;
        });
        for (const piece &a : pieces[i]) {
            if (a.buffer < 0) continue;
            auto known = own.insert({a.buffer, a.written}); /* true: written before it is read */
            if (a.pitch && !a.wrap) {
                auto first = buffers.insert({a.buffer, a});
                if (in_step(first.first->second, a)) continue;
            }
            known.first->second = false;
        }
    }
    int64_t pitch = 0;
    for (const auto &of : buffers) pitch += of.second.pitch;
    if (!kernels || members.size() < 2 || pitch * n < LEAST_BYTES || pitch > ROW_BYTES)
        return nullptr;
    for (size_t i : members) {
        std::unique_ptr<step> &s = p->steps[i];
        if (s->kind != LOOPS && s->kind != COPY) continue;
        s = group_of_one(p, std::move(s), named);
        if (s->kind != GROUP || !pieces_by_rows(p, *s, n, &pieces[i])) return nullptr;
    }
    auto g = std::make_unique<row_group>();
    g->rows = n;
    g->span = 0;
    for (size_t i : members)
        for (const piece &a : pieces[i]) g->span = std::gcd(g->span, a.wrap);
    if (!g->span) g->span = n;
    const int64_t most = std::max(BLOCK_BYTES / pitch, int64_t(1)),
                  blocks = (g->span + most - 1) / most;
    if (g->span < n && g->span * pitch < LEAST_BLOCK) return nullptr;
    g->block = (g->span + blocks - 1) / blocks;
    std::map<int, int64_t> places;
    for (const auto &of : buffers) {
        const int b = of.first;
        if (!own[b] || p->buffers[size_t(b)].kind != PT_BUFFER_TEMPORARY ||
            count[b] != named[size_t(b)])
            continue;
        places[b] = g->local_bytes;
        g->local_bytes += (of.second.pitch * g->block + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    for (size_t i : members) {
        member m;
        m.of = std::move(p->steps[i]);
        m.pieces = pieces[i];
        for (piece &a : m.pieces)
            if (places.count(a.buffer)) a.local = places[a.buffer];
        if (rows[i]) views_of(&m, leading[i], *g);
        each_step(p, *m.of, [&](step &s) {
            for (operand &o : s.operands)
                if (places.count(o.buffer)) o.buffer = -1;
        });
        g->members.push_back(std::move(m));
    }
    auto whole = std::make_unique<step>();
    whole->kind = ROWS;
    whole->name = "rows";
    whole->group = int(p->row_groups.size());
    p->row_groups.push_back(std::move(g));
    return whole;
}

}  /* namespace */

extern "C" void pt_plan_meet(const pt_kernel_entry *kernels) {
    for (; kernels->name; kernels++)
        for (rowwise &k : KERNELS)
            if (!strcmp(k.name, kernels->name)) k.kernel = kernels->kernel;
}

namespace pt {

void fuse_rows(pt_plan *p) {
    maker make(p);
    const size_t n = p->steps.size();
    std::vector<std::unique_ptr<step>> order;
    for (size_t first = 0; first < n; first++) {
        if (!p->steps[first]) continue;
        const int64_t rows = make.rows_from(first);
        std::vector<size_t> members = {first}, between, ahead;
        std::vector<piece> uses = make.pieces[first];
        for (size_t i = first + 1;
             rows && i < n && members.size() < MOST_MEMBERS && between.size() < MOST_BETWEEN; i++) {
            if (!p->steps[i]) continue;
            if (make.takes(i, rows) && fits(uses, make.pieces[i]) && meets(uses, make.pieces[i])) {
                uses.insert(uses.end(), make.pieces[i].begin(), make.pieces[i].end());
                members.push_back(i);
                ahead.insert(ahead.end(), between.begin(), between.end());
                between.clear();
                continue;
            }
            if (!may_go_first(p, *p->steps[i], uses)) break;
            between.push_back(i);
        }
        std::unique_ptr<step> whole = rows ? make.make(members, rows) : nullptr;
        if (!whole) {
            order.push_back(std::move(p->steps[first]));
            continue;
        }
        for (size_t i : ahead) order.push_back(std::move(p->steps[i]));
        order.push_back(std::move(whole));
    }
    p->steps = std::move(order);
}

/* The address of a member's piece at row `row`. */
static char *at_row(const piece &a, char *data, char *local, int64_t row) {
    return a.local >= 0 ? local + a.local : data + (a.wrap ? row % a.wrap : row) * a.pitch;
}

int run_rows(row_group &g, const pt_plan *p) {
    std::atomic<int> failed{PT_OK};
    auto fail_with = [&](int status, const char *text) {
        int none = PT_OK;
        if (failed.compare_exchange_strong(none, status))
            snprintf(g.error, sizeof g.error, "%s", text);
    };
    const int64_t blocks = (g.span + g.block - 1) / g.block;
    parallel_for(g.rows / g.span * blocks, 1, [&](int64_t begin, int64_t end) {
        scratch<char> local(g.local_bytes);
        if (!local) return fail_with(PT_MEMORY_ERROR, "there is no memory for a block of rows");
        for (int64_t b = begin; b < end; b++) {
            const int64_t first = b % blocks * g.block, count = std::min(g.block, g.span - first);
            const int64_t row = b / blocks * g.span + first;
            for (const member &m : g.members) {
                if (m.of->kind == GROUP) {
                    const group &inner = *p->groups[size_t(m.of->group)];
                    const char *data[MOST_STREAMS];
                    for (size_t k = 0; k < inner.streams.size(); k++) {
                        const stream &t = inner.streams[k];
                        data[k] =
                            at_row(m.pieces[k],
                                   inner.steps[size_t(t.view_of_step)].views[size_t(t.view)].data,
                                   local.data, row);
                    }
                    run_tiles(inner, data, 0, inner.numel / g.rows * count);
                    continue;
                }
                const std::vector<pt_view> &from = m.views[count < g.block];
                pt_view views[MOST_VIEWS];
                for (size_t k = 0; k < from.size(); k++) {
                    views[k] = from[k];
                    views[k].data = at_row(m.pieces[k], m.of->views[k].data, local.data, row);
                }
                pt_call call = m.of->call;
                call.out = views;
                call.in = views + m.of->nout;
                call.error[0] = 0;
                const int status = m.of->kernel(&call);
                if (status != PT_OK) return fail_with(status, call.error);
            }
        }
    });
    return failed;
}

/* Whether the rows of one buffer may be written over the rows of another
 * one that the group reads. */
bool rows_may_overwrite(const row_group &g, int out, int in) {
    const piece *one = nullptr;
    bool stored = false;
    for (const member &m : g.members) {
        bool reads = false, writes = false;
        for (const piece &a : m.pieces) {
            if (a.local >= 0 || (a.buffer != out && a.buffer != in)) continue;
            if (!a.pitch || a.wrap || a.written != (a.buffer == out) ||
                (one && (one->pitch != a.pitch || one->offset != a.offset)))
                return false;
            one = &a;
            (a.written ? writes : reads) = true;
        }
        if (reads && (stored || writes)) return false;
        stored |= writes;
    }
    return true;
}

}  /* namespace pt */

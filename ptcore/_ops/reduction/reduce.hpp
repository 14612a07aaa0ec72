/* The engine of all reductions: turns (layout, reduced dims) into runs of contiguous tiles, cuts
 * them into chunks that depend on the shape only, and merges the states of the chunks in order.
 *
 * The engine does not depend on types: it is compiled once and calls a `reducer` (an op at one
 * element type) and a `source` (how elements of the input's dtype reach a tile) through pointers,
 * one call per run of up to 8192 elements. reducer_of<Op>() makes a reducer of an Op, which has
 *    elem                       type of a tile's elements
 *    state                      trivially copyable partial result, at most STATE_BYTES
 *    static state identity()
 *    static void merge(state &a, const state &b)      b follows a in the reduced order
 *    static bool settled(const state &s)              nothing more can change the result
 *    void run(state &s, const elem *x, int64_t n, int64_t position) const         n <= RUN
 *    void columns(state *s, const elem *x, int64_t stride, int64_t rows, int64_t width,
 *                 int64_t position) const             rows <= COLUMN_ROWS, width <= COLUMN_WIDTH
 * `position` is the linear index in the reduced dims of the first element.
 */
#ifndef PTCORE_KERNELS_REDUCE_HPP
#define PTCORE_KERNELS_REDUCE_HPP
#include "common.hpp"

namespace {

constexpr int64_t RUN = 8192;           /* the maximum number of elements in one run() */
constexpr int64_t TILE = 2048;          /* elements gathered at once, for layouts that need it */
constexpr int64_t CHUNK = 32768;        /* elements reduced to one state in a row reduction */
constexpr int64_t COLUMN_ROWS = 128;
constexpr int64_t COLUMN_WIDTH = 512;
constexpr int64_t STATE_BYTES = 24;
constexpr int64_t GROUP = 64;           /* rows reduced in one call */
constexpr int64_t SMALL_ROWS = 1024;    /* inputs with at most this many elements get no plan */
constexpr int64_t THIN = 4096;          /* rows of a matrix with so many elements, and at most */
constexpr int64_t WIDEST_THIN = 32;     /* so many columns, are joined */
constexpr int64_t TINY = 16;            /* rows up to this length are turned into columns */

struct reduction_plan {
    space<1> kept, reduced;
    int64_t outputs, count;             /* sizes of `kept` and `reduced` */
    int64_t shift;                      /* offset where the walk over the reduced dims begins */
    bool rows;                          /* the input is row-major and its last dims are reduced */
    bool ordered;                       /* positions count in logical order */
};

/* Reads a dim list (empty: all dims) into a mask. */
inline int dims_mask(pt_call *call, const int64_t *list, int count, int ndim,
                     bool (&mask)[PT_MAX_DIM]) {
    for (int d = 0; d < ndim; ++d) mask[d] = count == 0;
    for (int i = 0; i < count; ++i) {
        int64_t d = wrap_dim(list[i], ndim);
        if (ndim == 0 && (d == 0 || d == -1)) continue;
        if (d < 0 || d >= ndim)
            return fail(call, PT_INDEX_ERROR, "dim must be in [%d, %d], got %lld", -ndim, ndim - 1,
                        (long long)list[i]);
        mask[d] = true;
    }
    return PT_OK;
}

/* `ordered`: positions must count in logical order; else the reduced dims are walked in memory
 * order, those of stride 0 outermost. */
inline void plan_reduction(const pt_view &in, const bool (&mask)[PT_MAX_DIM], bool ordered,
                           reduction_plan &plan) {
    plan.shift = 0;
    int64_t size[PT_MAX_DIM], stride[PT_MAX_DIM];
    int reduced = 0;
    for (int d = 0; d < in.ndim; ++d) {
        if (!mask[d]) {
            plan.kept.push(in.sizes[d], {in.strides[d]});
            continue;
        }
        int64_t s = in.strides[d];
        if (!ordered && s < 0 && in.sizes[d] > 0) {
            plan.shift += s * (in.sizes[d] - 1);
            s = -s;
        }
        int at = reduced++;
        for (; !ordered && at > 0 && stride[at - 1] && (s == 0 || stride[at - 1] < s); --at) {
            size[at] = size[at - 1];
            stride[at] = stride[at - 1];
        }
        size[at] = in.sizes[d];
        stride[at] = s;
    }
    for (int i = 0; i < reduced; ++i) plan.reduced.push(size[i], {stride[i]});
    plan.outputs = plan.kept.numel();
    plan.count = plan.reduced.numel();
    plan.rows = false;
    plan.ordered = ordered;
}

/* Leaves out the reduced dim along which memory repeats itself, as after expand(); returns its
 * size. An extremum does not change by repetition, and a sum is multiplied. */
PT_NOINLINE int64_t without_repeats(reduction_plan &plan) {
    space<1> &r = plan.reduced;
    if (plan.ordered || r.ndim == 0 || r.stride[0][0] != 0 || r.size[0] < 2) return 1;
    const int64_t times = r.size[0];
    for (int d = 1; d < r.ndim; ++d) {
        r.size[d - 1] = r.size[d];
        r.stride[0][d - 1] = r.stride[0][d];
    }
    --r.ndim;
    plan.count = r.numel();
    return times;
}

/* Plans for a row-major input that is reduced over its last dims; false if it is not so. */
inline bool plan_rows(const pt_view &in, const int64_t *list, int count, reduction_plan &plan) {
    if (!in.contiguous || count > in.ndim) return false;
    const int first = count == 0 ? 0 : in.ndim - count;
    uint64_t seen = 0;
    for (int i = 0; i < count; ++i) {
        const int64_t d = list[i] - first;
        if (d < 0 || d >= count) return false;
        seen |= uint64_t(1) << d;
    }
    if (seen & (seen + 1)) return false;
    plan.outputs = plan.count = 1;
    for (int d = 0; d < in.ndim; ++d) (d < first ? plan.outputs : plan.count) *= in.sizes[d];
    plan.kept.push(plan.outputs, {plan.count});
    plan.reduced.push(plan.count, {1});
    plan.shift = 0;
    plan.rows = true;
    plan.ordered = false;
    return true;
}

/* Plans over the dims of parameter `which`. An empty list means all dims, or none if the output has
 * as many elements as the input. */
PT_NOINLINE int plan_dims(pt_call *call, int which, reduction_plan &plan) {
    const pt_param &p = call->params[which];
    const int count = p.kind == PT_PARAM_INTS ? p.count : 0;
    bool mask[PT_MAX_DIM] = {false};
    if (count == 0 && call->in[0].ndim && call->out[0].numel == call->in[0].numel) {
        plan_reduction(call->in[0], mask, false, plan);
        return PT_OK;
    }
    if (plan_rows(call->in[0], p.list, count, plan)) return PT_OK;
    int status = dims_mask(call, p.list, count, call->in[0].ndim, mask);
    if (status == PT_OK) plan_reduction(call->in[0], mask, false, plan);
    return status;
}

struct reducer {
    int64_t elem_size, state_size;
    void (*identity)(void *s, int64_t n);
    void (*merge)(void *a, const void *b);
    bool (*settled)(const void *s);
    void (*run)(const void *op, void *s, const void *x, int64_t n, int64_t position);
    /* run() on `count` rows; each has a state */
    void (*rows)(const void *op, void *s, const void *x, int64_t stride, int64_t n, int64_t count);
    void (*columns)(const void *op, void *s, const void *x, int64_t stride, int64_t rows,
                    int64_t width, int64_t position);
    const void *op;
};

template <class Op>
inline reducer reducer_of(const Op *op) {
    using S = typename Op::state;
    using E = typename Op::elem;
    static_assert(sizeof(S) <= STATE_BYTES && std::is_trivially_copyable<S>::value, "");
    reducer r;
    r.elem_size = sizeof(E);
    r.state_size = sizeof(S);
    r.identity = [](void *s, int64_t n) {
        for (int64_t i = 0; i < n; ++i) static_cast<S *>(s)[i] = Op::identity();
    };
    r.merge = [](void *a, const void *b) {
        Op::merge(*static_cast<S *>(a), *static_cast<const S *>(b));
    };
    r.settled = [](const void *s) { return Op::settled(*static_cast<const S *>(s)); };
    r.run = [](const void *self, void *s, const void *x, int64_t n, int64_t position) {
        static_cast<const Op *>(self)->run(*static_cast<S *>(s), static_cast<const E *>(x), n,
                                           position);
    };
    r.rows = [](const void *self, void *s, const void *x, int64_t stride, int64_t n,
                int64_t count) {
        for (int64_t i = 0; i < count; ++i)
            static_cast<const Op *>(self)->run(static_cast<S *>(s)[i],
                                               static_cast<const E *>(x) + i * stride, n, 0);
    };
    r.columns = [](const void *self, void *s, const void *x, int64_t stride, int64_t rows,
                   int64_t width, int64_t position) {
        static_cast<const Op *>(self)->columns(static_cast<S *>(s), static_cast<const E *>(x),
                                               stride, rows, width, position);
    };
    r.op = op;
    return r;
}

/* How the input is read: fetch(tile, elements, stride, n), or in place when fetch is null. */
struct source {
    const char *data;
    int64_t itemsize;
    void (*fetch)(void *dst, const void *src, int64_t stride, int64_t n);   /* any stride */
    bool direct; /* elements are of the tile's type */
};
template <class E, class T>
inline void fetch_plain(void *dst, const void *src, int64_t stride, int64_t n) {
    load(static_cast<E *>(dst), static_cast<const T *>(src), stride, n);
}
template <class E, class T>
inline source source_of(const pt_view &v) {
    if constexpr (is_same<T, uint8_t> && !is_same<E, T>)
        if (v.dtype == PT_BOOL) return {v.data, 1, fetch_plain<E, boolean>, false};
    return {v.data, int64_t(sizeof(T)), fetch_plain<E, T>, is_same<E, T>};
}

/* Writes outputs [first, first + n) given their states. */
struct sink {
    void (*write)(const sink &self, int64_t first, const void *states, int64_t n);
    char *out, *out2;
    double a, b;
};

/* Reduces the elements at positions [begin, end) of one output. */
inline void reduce_row(const reducer &op, void *s, const source &from, int64_t offset,
                       const space<1> &outer, int64_t length, int64_t stride, int64_t begin,
                       int64_t end) {
    const char *x = from.data + offset * from.itemsize;
    int64_t within = begin % length;
    cursor<1> at(outer, begin / length);
    const bool in_place = from.direct && stride == 1 && (length >= 256 || outer.ndim == 0);
    alignas(64) char tile[TILE * 16];
    for (int64_t i = begin; i < end && !op.settled(s);) {
        const void *run = tile;
        int64_t fill = 0, goal = in_place ? min64(min64(length - within, end - i), RUN)
                                          : min64(end - i, TILE);
        while (fill < goal) {
            const int64_t n = min64(length - within, goal - fill);
            const char *p = x + (at.offset[0] + within * stride) * from.itemsize;
            if (in_place) run = p;
            else from.fetch(tile + fill * op.elem_size, p, stride, n);
            fill += n;
            within += n;
            if (within == length) {
                within = 0;
                at.next();
            }
        }
        op.run(op.op, s, run, fill, i);
        i += fill;
    }
}

/* Reduces rows [begin, end) of `width` neighbouring outputs. */
inline void reduce_columns(const reducer &op, void *s, const source &from, int64_t offset,
                           const space<1> &outer, int64_t length, int64_t stride, int64_t width,
                           int64_t begin, int64_t end) {
    constexpr int64_t BYTES = 8 * COLUMN_WIDTH * 8;
    alignas(64) char tile[BYTES];
    cursor<1> at(outer, begin / length);
    int64_t within = begin % length;
    for (int64_t i = begin; i < end;) {
        int64_t rows = min64(min64(length - within, end - i), COLUMN_ROWS);
        const char *p = from.data + (offset + at.offset[0] + within * stride) * from.itemsize;
        if (from.direct) op.columns(op.op, s, p, stride, rows, width, i);
        else {
            rows = min64(rows, BYTES / (width * op.elem_size));
            for (int64_t r = 0; r < rows; ++r)
                from.fetch(tile + r * width * op.elem_size, p + r * stride * from.itemsize, 1,
                           width);
            op.columns(op.op, s, tile, width, rows, width, i);
        }
        i += rows;
        within += rows;
        if (within == length) {
            within = 0;
            at.next();
        }
    }
}

/* Merges the `chunks` states of each output, which are `apart` bytes apart; writes the outputs. */
inline void merge_chunks(const reducer &op, const sink &to, const char *states, int64_t outputs,
                         int64_t chunks, int64_t between, int64_t apart) {
    alignas(16) char s[STATE_BYTES];
    for (int64_t o = 0; o < outputs; ++o) {
        const char *p = states + o * between;
        memcpy(s, p, size_t(op.state_size));
        for (int64_t c = 1; c < chunks; ++c) op.merge(s, p + c * apart);
        to.write(to, o, s, 1);
    }
}

/* Where a plan's elements lie. The elements of an output: in runs of `length`, `stride` apart;
 * `outer` walks over the runs. The first elements of the outputs: in lines of `width`, `across`
 * apart; `kept` walks over the lines. */
struct lines {
    space<1> outer, kept;
    int64_t length, stride, width, across;

    explicit lines(const reduction_plan &plan) : outer(plan.reduced), kept(plan.kept) {
        int64_t step[1];
        length = outer.pop(step);
        stride = plan.count == 1 ? 1 : step[0];
        width = kept.pop(step);
        across = step[0];
    }
};

/* Reduces outputs [begin, end); one call handles as many neighbours as lie side by side. `tiny`
 * rows are turned into columns, other short rows are taken in one piece. */
inline void reduce_together(const reducer &op, const source &from, const lines &at, int64_t count,
                            bool tiny, int64_t begin, int64_t end, const sink &to) {
    alignas(16) char s[GROUP * STATE_BYTES];
    alignas(64) char tile[TILE * 16];
    cursor<1> line(at.kept, begin / at.width);
    int64_t within = begin % at.width;
    for (int64_t o = begin; o < end;) {
        int64_t group = min64(min64(GROUP, end - o), at.width - within);
        if (!tiny && !from.direct) group = min64(group, TILE / count);
        op.identity(s, group);
        const char *x = from.data + (line.offset[0] + within * at.across) * from.itemsize;
        if (tiny) {
            for (int64_t j = 0; j < count; ++j)
                from.fetch(tile + j * group * op.elem_size, x + j * at.stride * from.itemsize,
                           at.across, group);
            op.columns(op.op, s, tile, group, count, group, 0);
        }
        else if (!from.direct) from.fetch(tile, x, 1, group * count);
        if (!tiny)
            op.rows(op.op, s, from.direct ? x : tile, from.direct ? at.across : count, count,
                    group);
        within += group;
        if (within == at.width) {
            within = 0;
            line.next();
        }
        to.write(to, o, s, group);
        o += group;
    }
}

/* Reduces outputs [begin, end), one after the other. */
inline void reduce_apart(const reducer &op, const source &from, const reduction_plan &plan,
                         const lines &at, int64_t begin, int64_t end, const sink &to) {
    alignas(16) char s[GROUP * STATE_BYTES];
    cursor<1> first(plan.kept, begin);
    for (int64_t o = begin; o < end;) {
        const int64_t group = min64(GROUP, end - o);
        op.identity(s, group);
        for (int64_t k = 0; k < group; ++k, first.next())
            reduce_row(op, s + k * op.state_size, from, first.offset[0], at.outer, at.length,
                       at.stride, 0, plan.count);
        to.write(to, o, s, group);
        o += group;
    }
}

/* Reduces each output by itself; outputs of many elements in chunks. */
inline int reduce_rows(pt_call *call, const reducer &op, const source &from,
                       const reduction_plan &plan, const lines &at, const sink &to) {
    const int64_t outputs = plan.outputs, count = plan.count, S = op.state_size,
                  chunks = ceil_div(count, CHUNK);
    if (chunks == 1) {
        const bool tiny = count <= TINY && at.outer.ndim == 0;
        const bool together = at.stride == 1 && at.outer.ndim == 0 &&
                              (from.direct || at.across == count) &&
                              count <= (from.direct ? RUN : TILE / 4);
        parallel_for(outputs, grain_rows(count + 16), [&](int64_t begin, int64_t end) {
            if (together || tiny) reduce_together(op, from, at, count, tiny, begin, end, to);
            else reduce_apart(op, from, plan, at, begin, end, to);
        });
        return PT_OK;
    }
    scratch<char> partial(outputs * chunks * S);
    if (!partial) return no_memory(call, outputs * chunks * S);
    parallel_for(outputs * chunks, 1, [&](int64_t begin, int64_t end) {
        op.identity(partial.data + begin * S, end - begin);
        for (int64_t u = begin; u < end; ++u) {
            const int64_t first = u % chunks * CHUNK;
            cursor<1> output(plan.kept, u / chunks);
            reduce_row(op, partial.data + u * S, from, output.offset[0], at.outer, at.length,
                       at.stride, first, min64(first + CHUNK, count));
        }
    });
    merge_chunks(op, to, partial.data, outputs, chunks, chunks * S, S);
    return PT_OK;
}

/* Reduces blocks of outputs that are neighbours in memory; those of many elements in chunks. */
PT_NOINLINE int reduce_blocks(pt_call *call, const reducer &op, const source &from,
                         const reduction_plan &plan, const lines &at, const sink &to) {
    const int64_t outputs = plan.outputs, count = plan.count, S = op.state_size, width = at.width;
    const int64_t blocks = ceil_div(width, COLUMN_WIDTH), groups = outputs / width,
                  block = min64(width, COLUMN_WIDTH);
    const int64_t rows =
        groups * blocks >= 256 ? count : min64(count, max64(COLUMN_ROWS, 2 * CHUNK / block));
    const int64_t chunks = ceil_div(count, rows);
    scratch<char> partial(chunks > 1 ? outputs * chunks * S : 0);
    if (!partial) return no_memory(call, outputs * chunks * S);
    parallel_for(
        groups * blocks * chunks, grain_rows(rows * block), [&](int64_t begin, int64_t end) {
            alignas(16) char local[COLUMN_WIDTH * STATE_BYTES];
            for (int64_t u = begin; u < end; ++u) {
                const int64_t c = u % chunks, b = u / chunks % blocks, g = u / chunks / blocks;
                const int64_t first = b * COLUMN_WIDTH, w = min64(COLUMN_WIDTH, width - first);
                cursor<1> line(at.kept, g);
                char *s =
                    chunks > 1 ? partial.data + ((c * groups + g) * width + first) * S : local;
                op.identity(s, w);
                reduce_columns(op, s, from, line.offset[0] + first, at.outer, at.length, at.stride,
                               w, c * rows, min64(count, (c + 1) * rows));
                if (chunks == 1) to.write(to, g * width + first, s, w);
            }
        });
    if (chunks > 1) merge_chunks(op, to, partial.data, outputs, chunks, S, outputs * S);
    return PT_OK;
}

/* Reduces thin matrices that lie in one piece, over their rows: several rows are one of a wider
 * matrix, whose states are merged. */
PT_NOINLINE int reduce_thin(pt_call *call, const reducer &op, const source &from,
                       const reduction_plan &plan, const lines &at, const sink &to) {
    const int64_t width = at.width, S = op.state_size, folds = COLUMN_WIDTH / 2 / width,
                  wide = folds * width, tall = plan.count / folds, rest = plan.count % folds;
    scratch<char> states((wide + width) * S);
    if (!states) return no_memory(call, (wide + width) * S);
    reduction_plan folded;
    folded.kept.push(wide, {1});
    folded.reduced.push(tall, {wide});
    folded.outputs = wide;
    folded.count = tall;
    folded.shift = 0;
    folded.rows = folded.ordered = false;
    sink keep;
    keep.write = [](const sink &self, int64_t first, const void *found, int64_t n) {
        memcpy(self.out + first * int64_t(self.a), found, size_t(n * int64_t(self.a)));
    };
    keep.out = states.data;
    keep.a = double(S);
    cursor<1> line(at.kept, 0);
    for (int64_t first = 0; first < plan.outputs; first += width, line.next()) {
        source x = from;
        x.data += line.offset[0] * from.itemsize;
        if (int status = reduce_blocks(call, op, x, folded, lines(folded), keep)) return status;
        char *last = states.data + wide * S;
        op.identity(last, width);
        reduce_columns(op, last, x, tall * wide, space<1>(), max64(rest, 1), width, width, 0, rest);
        for (int64_t j = 0; j < width; ++j)
            for (int64_t k = j + width; k < wide + width; k += width)
                op.merge(states.data + j * S, states.data + k * S);
        to.write(to, first, states.data, width);
    }
    return PT_OK;
}

/* Runs `op` over the plan and passes the states of the outputs to the sink. */
inline int reduce(pt_call *call, const reducer &op, source from, const reduction_plan &plan,
                  const sink &to) {
    from.data += plan.shift * from.itemsize;
    const int64_t outputs = plan.outputs, count = plan.count;
    if (outputs == 0) return PT_OK;
    if (count == 0) {
        alignas(16) char s[STATE_BYTES];
        op.identity(s, 1);
        for (int64_t o = 0; o < outputs; ++o) to.write(to, o, s, 1);
        return PT_OK;
    }
    if (plan.rows && from.direct && outputs <= GROUP && outputs * count <= SMALL_ROWS) {
        alignas(16) char s[GROUP * STATE_BYTES];
        op.identity(s, outputs);
        op.rows(op.op, s, from.data, count, count, outputs);
        to.write(to, 0, s, outputs);
        return PT_OK;
    }
    const lines at(plan);
    if (!plan.ordered && at.across == 1 && at.width > 1 && at.width <= WIDEST_THIN &&
        at.stride == at.width && at.outer.ndim == 0 && count * at.width >= THIN)
        return reduce_thin(call, op, from, plan, at, to);
    return (at.stride == 1 && count > 1) || at.across != 1 || at.width < 8
               ? reduce_rows(call, op, from, plan, at, to)
               : reduce_blocks(call, op, from, plan, at, to);
}

/* A sink that calls Write::apply(output i, its state, parameters, i) on outputs of type O. */
template <class O, class S, class Write>
inline sink sink_of(const pt_call *call, double a = 0, double b = 0) {
    sink to;
    to.write = [](const sink &self, int64_t first, const void *states, int64_t n) {
        O *out = reinterpret_cast<O *>(self.out) + first;
        for (int64_t i = 0; i < n; ++i)
            Write::apply(out[i], static_cast<const S *>(states)[i], self, first + i);
    };
    to.out = call->out[0].data;
    to.out2 = call->nout > 1 ? call->out[1].data : nullptr;
    to.a = a;
    to.b = b;
    return to;
}

} // namespace
#endif

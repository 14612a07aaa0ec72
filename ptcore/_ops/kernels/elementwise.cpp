/* The runner of elementwise loops, strided copies with conversion, and fills (loops.h). Compiled
 * once, at the base level: most time is spent in the loops that it calls.
 *
 * An operand of a row is used in place if it has the loop's dtype and an inner stride of one
 * element. Other operands go through a tile on the stack: gathered and converted, or, for an inner
 * stride of 0, repeated once. In a block (elementwise.hpp) an operand whose rows follow one another
 * is used in place, a row that repeats itself is loaded once, and the others move through tiles.
 */
#include "casts.h"
#include "elementwise.hpp"

extern "C" {
extern const pt_loop pt_cast_table_base[PT_NDTYPES][PT_NDTYPES];
const pt_loop (*pt_casts)[PT_NDTYPES] = pt_cast_table_base;

pt_loop pt_cast_loop(int from, int to) {
    pt_loop chosen = pt_casts[from][to];
    if (!chosen) chosen = pt_cast_table_base[from][to];
    return chosen ? chosen : pt_stored_cast_loop(from, to);
}

int pt_loop_dtype(int dtype) {
    static const uint32_t in_float = PT_BIT(PT_FLOAT16) | PT_BIT(PT_BFLOAT16) | PT_KIND_FLOAT8;
    return pt_is(dtype, in_float) ? PT_FLOAT32 : dtype == PT_COMPLEX32 ? PT_COMPLEX64 : dtype;
}

int pt_itemsize(int dtype) { return (int)pt::ITEMSIZE[dtype]; }
}

namespace pt { namespace {

struct alignas(64) tile { char bytes[TILE_BYTES]; };

/* The loop of a pair of dtypes, and what it is called with. */
struct caster {
    pt_loop loop = nullptr;
    const void *params = nullptr;

    caster() = default;
    caster(int from, int to) : loop(pt_cast_loop(from, to)), params(pt_cast_params(from, to)) {}
    void operator()(char *to, const char *from, int64_t n) const {
        char *ptr[2] = {to, const_cast<char *>(from)};
        loop(ptr, n, params);
    }
};

/* A conversion between two dtypes; a type without loops in the middle adds its rounding. */
struct conversion {
    int64_t from_size, to_size;
    caster first, second;                       /* without loops: nothing to convert */

    void set(int from, int middle, int to) {
        from_size = ITEMSIZE[from];
        to_size = ITEMSIZE[to];
        bool two = pt_loop_dtype(middle) != middle && middle != from && middle != to;
        first = two ? caster(from, middle) : from == to ? caster() : caster(from, to);
        second = two ? caster(middle, to) : caster();
    }
    bool none() const { return !first.loop; }
    /* converts n contiguous elements; `spare` holds the middle type */
    void run(char *to, const char *from, int64_t n, tile *spare) const {
        first(second.loop ? spare->bytes : to, from, n);
        if (second.loop) second(to, spare->bytes, n);
    }
};

/* ---- loops ---- */

struct elementwise_op {
    plan p;
    pt_loop loop;
    const void *params;
    conversion cast[MAX_OPERANDS];              /* cast[0] is the result's */
    bool direct[MAX_OPERANDS];                  /* read or written in place in a row */
    int single; /* the operand that vs or sv takes as a single element, or 0 */
    bool whole;                                 /* no tile limits the length of a call */
};

struct elementwise_worker {
    const elementwise_op &op;
    tile tiles[MAX_OPERANDS], raw, spare;
    const char *filled[MAX_OPERANDS] = {};      /* what a tile repeats: an element, or in blocks */
    int64_t times[MAX_OPERANDS] = {};           /* a row, so many times */

    explicit elementwise_worker(const elementwise_op &o) : op(o) {}

    static bool lies_flat(int64_t r, int64_t c, int64_t row_stride, int64_t stride, int64_t size) {
        return stride == size && (r == 1 || row_stride == c * size);
    }

    void load(int k, const char *data, int64_t r, int64_t c, int64_t row_stride) {
        const conversion &cast = op.cast[k];
        int64_t stride = op.p.stride[k][0];
        if (cast.none()) {
            load_block(tiles[k].bytes, data, r, c, row_stride, stride, cast.to_size);
            return;
        }
        if (!lies_flat(r, c, row_stride, stride, cast.from_size)) {
            load_block(raw.bytes, data, r, c, row_stride, stride, cast.from_size);
            data = raw.bytes;
        }
        cast.run(tiles[k].bytes, data, r * c, &spare);
    }

    void store(char *data, int64_t r, int64_t c, int64_t row_stride) {
        const conversion &cast = op.cast[0];
        int64_t stride = op.p.stride[0][0];
        const char *from = tiles[0].bytes;
        if (!cast.none()) {
            bool flat = lies_flat(r, c, row_stride, stride, cast.to_size);
            cast.run(flat ? data : raw.bytes, from, r * c, &spare);
            if (flat) return;
            from = raw.bytes;
        }
        store_block(data, from, r, c, row_stride, stride, cast.to_size);
    }

    void fill(int k, const char *data) {
        if (filled[k] == data) return;
        filled[k] = data;
        const conversion &cast = op.cast[k];
        if (cast.none()) memcpy(tiles[k].bytes, data, (size_t)cast.to_size);
        else cast.run(tiles[k].bytes, data, 1, &spare);
        int64_t n = op.p.size[0] < op.p.tile ? op.p.size[0] : op.p.tile; /* no call takes more */
        if (k != op.single) load_block(tiles[k].bytes, tiles[k].bytes, 1, n, 0, 0, cast.to_size);
    }

    void row(char *const *start, int64_t column, int64_t stop) {
        const plan &p = op.p;
        char *ptr[MAX_OPERANDS];
        for (int k = 0; k < p.operands; k++) {
            ptr[k] = tiles[k].bytes;
            if (k && !p.stride[k][0]) fill(k, start[k]);
        }
        while (column < stop) {
            int64_t c = op.whole || stop - column < p.tile ? stop - column : p.tile;
            for (int k = 0; k < p.operands; k++) {
                char *data = start[k] + column * p.stride[k][0];
                if (op.direct[k]) ptr[k] = data;
                else if (k && p.stride[k][0]) load(k, data, 1, c, 0);
            }
            op.loop(ptr, c, op.params);
            if (!op.direct[0]) store(start[0] + column * p.stride[0][0], 1, c, 0);
            column += c;
        }
    }

    void block(char *const *start, int64_t r, int64_t c) {
        const plan &p = op.p;
        char *ptr[MAX_OPERANDS];
        for (int k = 0; k < p.operands; k++) {
            const conversion &cast = op.cast[k];
            const int64_t next = p.stride[k][1];
            if (cast.none() && lies_flat(r, c, next, p.stride[k][0], cast.to_size)) {
                ptr[k] = start[k];
                continue;
            }
            ptr[k] = tiles[k].bytes;
            if (!k || (filled[k] == start[k] && times[k] >= r)) continue;
            load(k, start[k], r, c, next);
            filled[k] = next ? nullptr : start[k];
            times[k] = r;
        }
        op.loop(ptr, r * c, op.params);
        if (ptr[0] != start[0]) store(start[0], r, c, p.stride[0][1]);
    }
};

/* ---- copies ---- */

struct copy_op {
    plan p;
    conversion cast;
};

/* Copies; a conversion is the loop, and reads or writes in place on a contiguous side. */
struct copy_worker {
    const copy_op &op;
    tile from_tile, to_tile;

    explicit copy_worker(const copy_op &o) : op(o) {}

    void block(char *const *start, int64_t r, int64_t c) {
        const int64_t(*stride)[PT_MAX_DIM] = op.p.stride;
        const conversion &cast = op.cast;
        bool to_flat = r == 1 && stride[0][0] == cast.to_size;
        bool from_flat = r == 1 && stride[1][0] == cast.from_size;
        char *to = start[0];
        const char *from = start[1];
        if (!from_flat && !(to_flat && cast.none())) {
            load_block(from_tile.bytes, from, r, c, stride[1][1], stride[1][0], cast.from_size);
            from = from_tile.bytes;
        }
        if (cast.none()) {
            if (to_flat)
                load_block(to, from, 1, c, 0, from_flat ? cast.to_size : stride[1][0],
                           cast.to_size);
            else store_block(to, from, r, c, stride[0][1], stride[0][0], cast.to_size);
            return;
        }
        cast.first(to_flat ? to : to_tile.bytes, from, r * c);
        if (!to_flat)
            store_block(to, to_tile.bytes, r, c, stride[0][1], stride[0][0], cast.to_size);
    }

    void row(char *const *start, int64_t column, int64_t stop) {
        const plan &p = op.p;
        bool to_flat = p.stride[0][0] == op.cast.to_size,
             from_flat = p.stride[1][0] == op.cast.from_size;
        bool whole = op.cast.none() ? to_flat | from_flat : to_flat & from_flat;
        if (op.cast.none() && to_flat && from_flat) {
            int64_t size = op.cast.to_size;
            memcpy(start[0] + column * size, start[1] + column * size,
                   (size_t)((stop - column) * size));
            return;
        }
        while (column < stop) {
            int64_t c = whole || stop - column < p.tile ? stop - column : p.tile;
            char *at[2] = {start[0] + column * p.stride[0][0], start[1] + column * p.stride[1][0]};
            block(at, 1, c);
            column += c;
        }
    }
};

struct fill_op {
    plan p;
    int64_t itemsize;
    const char *value;
};

struct fill_worker {
    const fill_op &op;

    explicit fill_worker(const fill_op &o) : op(o) {}

    void block(char *const *start, int64_t r, int64_t c) {
        for (int64_t i = 0; i < r; i++) span(start[0] + i * op.p.stride[0][1], c);
    }
    void row(char *const *start, int64_t column, int64_t stop) {
        span(start[0] + column * op.p.stride[0][0], stop - column);
    }
    /* a block load with stride 0, or repeated stores of one element */
    void span(char *to, int64_t n) {
        if (op.p.stride[0][0] == op.itemsize) {
            load_block(to, op.value, 1, n, 0, 0, op.itemsize);
            return;
        }
        for (int64_t i = 0; i < n; i++, to += op.p.stride[0][0])
            memcpy(to, op.value, (size_t)op.itemsize);
    }
};

}}  /* namespace pt, unnamed */

using namespace pt;

extern "C" int pt_elementwise_run(const pt_elementwise *op, int compute_dtype, int loop_out_dtype,
                                  const pt_view *out, const pt_view *in, int nin,
                                  const void *params) {
    int loop_dtype = pt_loop_dtype(compute_dtype), result = pt_loop_dtype(loop_out_dtype);
    pt_loop loop = op->loop[loop_dtype];
    if (!loop || nin > PT_MAX_ELEMENTWISE_INPUTS) return PT_TYPE_ERROR;

    bool flat = out->contiguous && out->dtype == result && result == loop_out_dtype;
    char *ptr[MAX_OPERANDS] = {out->data};
    for (int k = 0; k < nin; k++) {
        ptr[k + 1] = in[k].data;
        flat &= in[k].contiguous && in[k].dtype == loop_dtype && loop_dtype == compute_dtype;
    }
    int64_t numel = out->numel;
    if (flat) {
        if (numel == 1 && op->vs[loop_dtype]) loop = op->vs[loop_dtype];
        int64_t size[MAX_OPERANDS];
        for (int k = 0; k <= nin; k++) size[k] = ITEMSIZE[k ? loop_dtype : result];
        parallel_for(numel, grain_of(op->cost), [&](int64_t begin, int64_t end) {
            char *at[MAX_OPERANDS];
            for (int k = 0; k <= nin; k++) at[k] = ptr[k] + begin * size[k];
            loop(at, end - begin, params);
        });
        return PT_OK;
    }

    elementwise_op e;
    const pt_view *views[MAX_OPERANDS] = {out};
    int64_t widest =
        ITEMSIZE[loop_dtype] > ITEMSIZE[result] ? ITEMSIZE[loop_dtype] : ITEMSIZE[result];
    for (int k = 0; k <= nin; k++) {
        if (k) views[k] = &in[k - 1];
        int64_t size = ITEMSIZE[views[k]->dtype];
        widest = size > widest ? size : widest;
    }
    make_plan(&e.p, views, nin + 1, widest);
    e.loop = loop;
    e.params = params;
    e.single = 0;
    int64_t extra = 0;                          /* ns per 16 elements for operands not in place */
    e.cast[0].set(result, loop_out_dtype, out->dtype);
    for (int k = 1; k <= nin; k++) e.cast[k].set(in[k - 1].dtype, compute_dtype, loop_dtype);
    for (int k = 0; k <= nin; k++) {
        e.direct[k] = e.p.numel && e.cast[k].none() && e.p.stride[k][0] == e.cast[k].to_size;
        extra += e.direct[k] ? 0 : 8;
    }
    /* Where every loop rounds alike, it is enough that the operand is one number in a row. */
    const auto is_one_number = [&](int k) {
        if (!op->powers) return !e.p.blocks && e.p.stride[k][0] == 0;
        bool one = true;
        for (int d = 0; d < in[k - 1].ndim; d++)
            one &= in[k - 1].strides[d] == 0 || in[k - 1].sizes[d] == 1;
        return one;
    };
    if (e.p.numel) {
        if (op->vs[loop_dtype] && is_one_number(nin)) {
            e.single = nin;
            e.loop = op->vs[loop_dtype];
        } else if (op->sv[loop_dtype] && is_one_number(1)) {
            e.single = 1;
            e.loop = op->sv[loop_dtype];
        }
    }
    e.whole = true;
    for (int k = 0; k <= nin; k++) e.whole &= e.direct[k] | (k && k == e.single);
    run_plan<elementwise_worker>(e.p, e, op->cost + extra);
    return PT_OK;
}

extern "C" int pt_copy(const pt_view *dst, const pt_view *src) {
    int64_t to = ITEMSIZE[dst->dtype], from = ITEMSIZE[src->dtype], numel = dst->numel;
    if (dst->contiguous && src->contiguous) {
        const caster cast(src->dtype, dst->dtype);
        const bool same = src->dtype == dst->dtype;
        parallel_for(numel, grain_of(to + from), [&](int64_t begin, int64_t end) {
            char *into = dst->data + begin * to;
            const char *out_of = src->data + begin * from;
            if (same) copy_run(into, out_of, size_t((end - begin) * to));
            else cast(into, out_of, end - begin);
        });
        return PT_OK;
    }
    copy_op c;
    const pt_view *views[2] = {dst, src};
    make_plan(&c.p, views, 2, to > from ? to : from);
    c.cast.set(src->dtype, dst->dtype, dst->dtype);
    run_plan<copy_worker>(c.p, c, 2 * (to + from));
    return PT_OK;
}

extern "C" void pt_fill(const pt_view *dst, const void *value) {
    fill_op f;
    f.itemsize = ITEMSIZE[dst->dtype];
    f.value = (const char *)value;
    make_plan(&f.p, &dst, 1, f.itemsize);
    run_plan<fill_worker>(f.p, f, f.itemsize);
}

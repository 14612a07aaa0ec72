/* Conversions of the types of PT_KIND_STORED. float8 has one loop to float32 and one back,
 * complex32 is pairs of float16; a pair with any other dtype goes through float32 or complex64 in
 * tiles.
 */
#include "ptcore/float8.h"
#include "casts.h"

namespace pt { namespace {

enum { LANES = 16 };
typedef void (*widening)(const uint8_t *, float *);
typedef void (*narrowing)(const float *, uint8_t *);

/* Blocks of a known length: vectors without a loop for the rest, a quarter of the code. */
template<class F> PT_NOINLINE void widen_block(const uint8_t *PT_RESTRICT a, float *PT_RESTRICT r) {
    PT_IVDEP
    for (int i = 0; i < LANES; i++) r[i] = F::widen(a[i]);
}
template<class F> PT_NOINLINE void narrow_block(const float *PT_RESTRICT a,
                                                uint8_t *PT_RESTRICT r) {
    PT_IVDEP
    for (int i = 0; i < LANES; i++) r[i] = F::narrow(a[i]);
}
template<class A, class R>
void in_blocks(void (*block)(const A *, R *), const A *a, R *r, int64_t n) {
    for (; n >= LANES; n -= LANES, a += LANES, r += LANES) block(a, r);
    if (n == 0) return;
    A from[LANES] = {};
    R to[LANES];
    memcpy(from, a, (size_t)n * sizeof(A));
    block(from, to);
    memcpy(r, to, (size_t)n * sizeof(R));
}

struct format { int dtype; widening widen; narrowing narrow; };
#define PT_FORMAT(code, F) {code, widen_block<F>, narrow_block<F>}
const format formats[] = {
    PT_FORMAT(PT_FLOAT8_E4M3FN, float8_e4m3fn),
    PT_FORMAT(PT_FLOAT8_E5M2, float8_e5m2),
    PT_FORMAT(PT_FLOAT8_E4M3FNUZ, float8_e4m3fnuz),
    PT_FORMAT(PT_FLOAT8_E5M2FNUZ, float8_e5m2fnuz),
    PT_FORMAT(PT_FLOAT8_E8M0FNU, float8_e8m0fnu),
};
#undef PT_FORMAT

const format *format_of(int dtype) {
    for (const format &f : formats)
        if (f.dtype == dtype) return &f;
    return nullptr;                             /* complex32 */
}

void convert(int from, int to, char *r, const char *a, int64_t n) {
    char *ptr[2] = {r, const_cast<char *>(a)};
    pt_cast_loop(from, to)(ptr, n, pt_cast_params(from, to));
}

/* a of a stored dtype to r of its loop dtype, and back */
void widen(int from, char *r, const char *a, int64_t n) {
    const format *f = format_of(from);
    if (f) in_blocks(f->widen, (const uint8_t *)a, (float *)r, n);
    else convert(PT_FLOAT16, PT_FLOAT32, r, a, 2 * n);
}
void narrow(int to, char *r, const char *a, int64_t n) {
    const format *f = format_of(to);
    if (f) in_blocks(f->narrow, (const float *)a, (uint8_t *)r, n);
    else convert(PT_FLOAT32, PT_FLOAT16, r, a, 2 * n);
}

void through(int from, int to, char *r, const char *a, int64_t total) {
    const int64_t from_size = pt_itemsize(from), to_size = pt_itemsize(to);
    if (from == to) {
        memcpy(r, a, (size_t)(total * to_size));
        return;
    }
    const bool widens = pt_is(from, PT_KIND_STORED), narrows = pt_is(to, PT_KIND_STORED);
    /* Half types are no middle: they have loops from and to every other type. */
    const int middle_from = widens ? pt_loop_dtype(from) : from,
              middle_to = narrows ? pt_loop_dtype(to) : to;
    const bool converts = middle_from != middle_to;
    alignas(64) char tile[PT_TILE * 8], other[PT_TILE * 8];
    for (int64_t k = 0; k < total; k += PT_TILE) {
        const int64_t n = total - k < PT_TILE ? total - k : (int64_t)PT_TILE;
        const char *x = a + k * from_size;
        char *out = r + k * to_size;
        if (widens) {
            char *into = converts || narrows ? tile : out;
            widen(from, into, x, n);
            x = into;
        }
        if (converts) {
            char *into = narrows ? other : out;
            convert(middle_from, middle_to, into, x, n);
            x = into;
        }
        if (narrows) narrow(to, out, x, n);
    }
}

void stored_loop(char *const *ptr, int64_t n, const void *params) {
    const int pair = (int)(uintptr_t)params;
    through(pair >> 8, pair & 255, ptr[0], ptr[1], n);
}

}}  /* namespace pt, unnamed */

extern "C" pt_loop pt_stored_cast_loop(int, int) { return pt::stored_loop; }

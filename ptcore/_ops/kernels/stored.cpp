/* Conversions of the types of PT_KIND_STORED. float8 has one loop to float32 and one back,
 * complex32 is pairs of float16; a pair with any other dtype goes through float32 or complex64 in
 * tiles.
 */
#include <utility>

#include "ptcore/float8.h"
#include "loops.h"

namespace pt { namespace {

typedef void (*widening)(const uint8_t *, float *, int64_t);
typedef void (*narrowing)(const float *, uint8_t *, int64_t);

template<class F> void widen_row(const uint8_t *PT_RESTRICT a, float *PT_RESTRICT r, int64_t n) {
    PT_IVDEP
    for (int64_t i = 0; i < n; i++) r[i] = F::widen(a[i]);
}
template<class F> void narrow_row(const float *PT_RESTRICT a, uint8_t *PT_RESTRICT r, int64_t n) {
    PT_IVDEP
    for (int64_t i = 0; i < n; i++) r[i] = F::narrow(a[i]);
}

struct format { int dtype; widening widen; narrowing narrow; };
#define PT_FORMAT(code, F) {code, widen_row<F>, narrow_row<F>}
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
    pt_cast_loop(from, to)(ptr, n, nullptr);
}

/* a of a stored dtype to r of its loop dtype, and back */
void widen(int from, char *r, const char *a, int64_t n) {
    const format *f = format_of(from);
    if (f) f->widen((const uint8_t *)a, (float *)r, n);
    else convert(PT_FLOAT16, PT_FLOAT32, r, a, 2 * n);
}
void narrow(int to, char *r, const char *a, int64_t n) {
    const format *f = format_of(to);
    if (f) f->narrow((const float *)a, (uint8_t *)r, n);
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

/* Loops are given no codes, so that a pair has a function of its own, which knows them. */
template<int FROM, int TO> void pair_loop(char *const *ptr, int64_t n, const void *) {
    through(FROM, TO, ptr[0], ptr[1], n);
}
constexpr bool is_stored(int dtype) { return (PT_KIND_STORED >> dtype & 1) != 0; }
template<int FROM, int TO> constexpr pt_loop loop_of() {
    if constexpr (is_stored(FROM) || is_stored(TO)) return pair_loop<FROM, TO>;
    else return nullptr;
}

struct table { pt_loop loop[PT_NDTYPES * PT_NDTYPES]; };
template<int... PAIR> constexpr table table_of(std::integer_sequence<int, PAIR...>) {
    return {{loop_of<PAIR / PT_NDTYPES, PAIR % PT_NDTYPES>()...}};
}
constexpr table loops =
    table_of(std::make_integer_sequence<int, int(PT_NDTYPES) * int(PT_NDTYPES)>{});

}}  /* namespace pt, unnamed */

extern "C" pt_loop pt_stored_cast_loop(int from, int to) {
    return pt::loops.loop[from * PT_NDTYPES + to];
}

// Products of small matrices by a warp: the instructions of the tensor cores, which sm_80 and later
// have, and the loads that feed them. The host's version follows the PTX manual's layouts of
// fragments (7.3, "mma.m16n8k16", "ldmatrix") word by word, by exchanges within the warp.
//
// Of a lane, with g = lane / 4 and t = lane % 4:
//      A, 16 x 16: words 0 and 1 are columns 2 t, 2 t + 1 of rows g and g + 8; words 2 and 3 are
//          columns 2 t + 8, 2 t + 9 of the same rows
//      B, 16 x 8: words 0 and 1 are rows 2 t, 2 t + 1 and rows 2 t + 8, 2 t + 9 of column g
//      D, 16 x 8: numbers 0, 1 are columns 2 t, 2 t + 1 of row g; 2, 3 those of row g + 8
#pragma once
#include "base.cuh"

namespace {

#if defined(__CUDACC_RTC__)
// An address in shared memory as a number.
typedef uint32_t Place;
PT_DEVICE Place place_of(const void *p) {
    Place r;
    asm("{ .reg .u64 x; cvta.to.shared.u64 x, %1; cvt.u32.u64 %0, x; }" : "=r"(r) : "l"(p));
    return r;
}

// d += a b. For floats A is 16 x 8 and B 8 x 8: words 0 and 1 of A are column t of rows g and g +
// 8, words 2 and 3 column t + 4; words 0 and 1 of B are rows t and t + 4 of column g. Factors count
// with 11 bits, to which `rounded` rounds them.
#  if __CUDA_ARCH__ >= 800
#    define PT_MMA(E, shape)                                                                     \
    PT_DEVICE void multiply_add(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, \
                                E) {                                                             \
        asm volatile("mma.sync.aligned." shape                                                   \
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"          \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                            \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));            \
    }
#  else
#    define PT_MMA(E, shape) \
    PT_DEVICE void multiply_add(float (&)[4], const uint32_t (&)[4], uint32_t, uint32_t, E) {}
#  endif
PT_MMA(half, "m16n8k16.row.col.f32.f16.f16.f32")
PT_MMA(bfloat16, "m16n8k16.row.col.f32.bf16.bf16.f32")
PT_MMA(float, "m16n8k8.row.col.f32.tf32.tf32.f32")
#  undef PT_MMA

PT_DEVICE uint32_t round_word(uint32_t x) {
    uint32_t r = x;
#  if __CUDA_ARCH__ >= 800
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "r"(x));
#  endif
    return r;
}

PT_DEVICE void round_16(Place p) {
    uint4 w;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
                 : "r"(p)
                 : "memory");
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(p), "r"(round_word(w.x)),
                 "r"(round_word(w.y)), "r"(round_word(w.z)), "r"(round_word(w.w))
                 : "memory");
}

PT_DEVICE uint32_t load_word(Place p) {
    uint32_t r;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(r) : "r"(p) : "memory");
    return r;
}

// Two numbers as a word, the first in its lower half.
PT_DEVICE uint32_t word_from(float first, float second, half) {
    uint32_t r;
    asm("{ .reg .b16 x, y; cvt.rn.f16.f32 x, %1; cvt.rn.f16.f32 y, %2; mov.b32 %0, {x, y}; }"
        : "=r"(r)
        : "f"(first), "f"(second));
    return r;
}
PT_DEVICE uint32_t word_from(float first, float second, bfloat16) {
    uint32_t r = 0;
#  if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(second), "f"(first));
#  endif
    return r;
}

// Loads four matrices of 8 x 8 elements of 2 bytes: lane 8 i + r has the address of row r of matrix
// i in shared memory. Word i of a lane is columns 2 t and 2 t + 1 of row g of matrix i; turned,
// rows 2 t and 2 t + 1 of column g.
PT_DEVICE void load_matrices(uint32_t (&r)[4], Place row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row) : "memory");
}
PT_DEVICE void load_turned_matrices(uint32_t (&r)[4], Place row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row) : "memory");
}

// Copies 16 bytes to shared memory asynchronously, 16 zeros unless `here`. close_copies ends a
// group of copies; wait_for_copies<n> waits until at most n groups are under way.
PT_DEVICE void copy_16(Place to, const void *from, bool here) {
#  if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(here ? 16 : 0)
                 : "memory");
#  endif
}
PT_DEVICE void close_copies() {
#  if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#  endif
}
template <int N> PT_DEVICE void wait_for_copies() {
#  if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
#  endif
}

PT_DEVICE float exp2_fast(float x) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
#else
typedef uintptr_t Place;
PT_DEVICE Place place_of(const void *p) { return reinterpret_cast<Place>(p); }

template <class E> PT_DEVICE float element_of(uint32_t word, int i, E) {
    E x;
    x.bits = (uint16_t)(word >> (16 * i));
    return up(x);
}
template <class E> PT_DEVICE uint32_t word_from(float first, float second, E) {
    return down<E>(first).bits | (uint32_t)down<E>(second).bits << 16;
}

// The fragments of other lanes that hold a lane's rows g, g + 8 of A and columns 2 t, 2 t + 1 of B.
// No lane goes on before all lanes have read.
struct Fragments { uint32_t a[4], b[2]; };
struct Needed {
    const Fragments *rows[4], *columns[2][4];
    explicit Needed(const Fragments &mine) {
        const int lane = threadIdx.x & 31, g = lane / 4, t = lane % 4;
        for (int i = 0; i < 4; i++) {
            rows[i] = __shfl_sync(0xffffffffu, &mine, 4 * g + i);
            for (int c = 0; c < 2; c++)
                columns[c][i] = __shfl_sync(0xffffffffu, &mine, 4 * (2 * t + c) + i);
        }
    }
    ~Needed() { __syncwarp(); }
};

// A word has two elements of a half type, or one float. K is the depth of a step; lane(k) is the
// lane that holds element k, and number(word, k) takes the element from its word.
template <class E> struct Step {
    enum { K = 16 };
    static float number(uint32_t word, int k) { return element_of(word, k & 1, E()); }
    static int lane(int k) { return k % 8 / 2; }
};
template <> struct Step<float> {
    enum { K = 8 };
    static float number(uint32_t word, int) { return pt::from_bits(word & ~0x1fffu); }
    static int lane(int k) { return k % 4; }
};

template <class E> PT_DEVICE void multiply_add(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                               uint32_t b1, E) {
    typedef Step<E> S;
    const Fragments mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
    const Needed of(mine);
    for (int down = 0; down < 2; down++)
        for (int c = 0; c < 2; c++)
            for (int k = 0; k < S::K; k++) {
                const int from = S::lane(k), half_of = k / (S::K / 2);
                d[2 * down + c] += S::number(of.rows[from]->a[2 * half_of + down], k) *
                                   S::number(of.columns[c][from]->b[half_of], k);
            }
}
PT_DEVICE uint32_t round_word(uint32_t x) {
    return (x & 0x7f800000u) == 0x7f800000u ? x : x + 0x1000u;
}
PT_DEVICE void round_16(Place p) {
    assert(p % 16 == 0);
    uint32_t *const w = reinterpret_cast<uint32_t *>(p);
    for (int i = 0; i < 4; i++) w[i] = round_word(w[i]);
}
PT_DEVICE uint32_t load_word(Place p) {
    assert(p % 4 == 0);
    return *reinterpret_cast<const uint32_t *>(p);
}

PT_DEVICE void load_matrices(uint32_t (&r)[4], Place row) {
    const int lane = threadIdx.x & 31;
    assert(row % 16 == 0);
    for (int i = 0; i < 4; i++) {
        const Place there = __shfl_sync(0xffffffffu, row, 8 * i + lane / 4);
        r[i] = reinterpret_cast<const uint32_t *>(there)[lane % 4];
    }
}
PT_DEVICE void load_turned_matrices(uint32_t (&r)[4], Place row) {
    const int lane = threadIdx.x & 31;
    assert(row % 16 == 0);
    for (int i = 0; i < 4; i++) {
        const Place first = __shfl_sync(0xffffffffu, row, 8 * i + lane % 4 * 2);
        const Place second = __shfl_sync(0xffffffffu, row, 8 * i + lane % 4 * 2 + 1);
        r[i] = reinterpret_cast<const uint16_t *>(first)[lane / 4] |
               (uint32_t)reinterpret_cast<const uint16_t *>(second)[lane / 4] << 16;
    }
}

PT_DEVICE void copy_16(Place to, const void *from, bool here) {
    assert(to % 16 == 0 && reinterpret_cast<uintptr_t>(from) % 16 == 0);
    *reinterpret_cast<uint4 *>(to) = here ? *static_cast<const uint4 *>(from) : uint4{0, 0, 0, 0};
}
PT_DEVICE void close_copies() {}
template <int N> PT_DEVICE void wait_for_copies() {}
PT_DEVICE float exp2_fast(float x) { return exp2f(x); }
#endif

// A tile has lines of HEAD elements of 2 bytes (64, 128 or 256) and begins at a multiple of a
// line's bytes. Word c (16 bytes) of line r is at place c ^ (r & 7) of the line: words c of 8 lines
// are in different banks. left_place, right_place: a lane's row for load_matrices, of the first
// words and lines; for an even word c on, this ^ c << 4; further lines: this plus their bytes.
// left_place: matrices 0, 1 are 16 lines of a word, 2, 3 of the next word. right_place: matrices 0,
// 1 are two words of 8 lines, 2, 3 of the next 8.
template <int HEAD> PT_DEVICE Place left_place(Place tile) {
    const int lane = threadIdx.x & 31;
    return tile + (lane & 15) * HEAD * 2 + (((lane >> 4) ^ (lane & 7)) << 4);
}
template <int HEAD> PT_DEVICE Place right_place(Place tile) {
    const int lane = threadIdx.x & 31;
    return tile + ((lane & 7) + (lane >> 4) * 8) * HEAD * 2 + (((lane >> 3 & 1) ^ (lane & 7)) << 4);
}

template <class E> PT_DEVICE void rounded(uint32_t (&)[4], E) {}
PT_DEVICE void rounded(uint32_t (&r)[4], float) {
    PT_UNROLL for (int i = 0; i < 4; i++) r[i] = round_word(r[i]);
}

// sum += fragments of A, of 16 lines each, times fragments of B, of two neighbours each.
template <class E, int DOWN, int ACROSS>
PT_DEVICE void add_products(float (&sum)[DOWN][ACROSS][4], uint32_t (&a)[DOWN][4],
                            uint32_t (&b)[ACROSS / 2][4]) {
    PT_UNROLL for (int d = 0; d < DOWN; d++) rounded(a[d], E());
    PT_UNROLL for (int j = 0; j < ACROSS / 2; j++) rounded(b[j], E());
    PT_UNROLL for (int d = 0; d < DOWN; d++)
        PT_UNROLL for (int j = 0; j < ACROSS; j++)
            multiply_add(sum[d][j], a[d], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1], E());
}

// A tile whose lines (of BYTES) are columns of A or rows of B. Loads fragments of A, or of two
// neighbours in B, from line k and element `first` on (multiples of a step's depth, and of 16). No
// instruction turns matrices of floats; word c of line r lies at place c ^ (r & 3) << 1, so that
// eight columns of four lines are in different banks.
template <class E, int BYTES> struct Turned {
    Place left, right;
    PT_DEVICE_MEMBER explicit Turned(Place tile)
        : left(right_place<BYTES / 2>(tile)), right(left_place<BYTES / 2>(tile)) {}
    static PT_DEVICE_MEMBER int place(int line, int word) { return (word ^ (line & 7)) << 4; }
    PT_DEVICE_MEMBER void load_left(uint32_t (&r)[4], int shift, int k, int first) const {
        load_turned_matrices(r, ((left + shift) ^ (first / 8 << 4)) + k * BYTES);
    }
    PT_DEVICE_MEMBER void load_right(uint32_t (&r)[4], int shift, int k, int first) const {
        load_turned_matrices(r, ((right + shift) ^ (first / 8 << 4)) + k * BYTES);
    }
};
template <int BYTES> struct Turned<float, BYTES> {
    Place at;
    PT_DEVICE_MEMBER explicit Turned(Place tile) {
        const int lane = threadIdx.x & 31, g = lane / 4, t = lane % 4;
        at = tile + t * BYTES + (t << 5) + (g >> 2 << 4) + (g & 3) * 4;
    }
    static PT_DEVICE_MEMBER int place(int line, int word) {
        return (word ^ ((line & 3) << 1)) << 4;
    }
    PT_DEVICE_MEMBER void load(uint32_t (&r)[4], int shift, int k, int first, int down,
                               int across) const {
        PT_UNROLL for (int i = 0; i < 4; i++) {
            const int column = first + (i & across ? 8 : 0);
            r[i] = load_word(((at + shift) ^ (column / 4 << 4)) + (k + (i & down ? 4 : 0)) * BYTES);
        }
    }
    PT_DEVICE_MEMBER void load_left(uint32_t (&r)[4], int shift, int k, int first) const {
        load(r, shift, k, first, 2, 1);
    }
    PT_DEVICE_MEMBER void load_right(uint32_t (&r)[4], int shift, int k, int first) const {
        load(r, shift, k, first, 1, 2);
    }
};

}  // namespace

/* Which levels of x86-64 the processor has and the system lets programs use.
 *
 * The processor itself is asked: __builtin_cpu_supports is a function of the compiler's library,
 * which says no to everything in Zig's, and Microsoft's compiler does not have it.
 */
#ifndef PTCORE_CPU_HPP
#define PTCORE_CPU_HPP

#if defined(__x86_64__) || defined(_M_X64)
#define PT_X86_64 1
#if defined(_MSC_VER) && !defined(__clang__)
#include <immintrin.h>
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#else
#define PT_X86_64 0
#endif

namespace pt_cpu {

#if PT_X86_64
struct registers {
    unsigned a, b, c, d;
};

inline registers ask(unsigned leaf) {
    registers r = {0, 0, 0, 0};
#if defined(_MSC_VER) && !defined(__clang__)
    int found[4];
    __cpuidex(found, (int)leaf, 0);
    r = {(unsigned)found[0], (unsigned)found[1], (unsigned)found[2], (unsigned)found[3]};
#else
    __cpuid_count(leaf, 0, r.a, r.b, r.c, r.d);
#endif
    return r;
}

/* The registers that the operating system saves: bits of XCR0. */
inline unsigned saved_by_system() {
#if defined(_MSC_VER) && !defined(__clang__)
    return (unsigned)_xgetbv(0);
#else
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
#endif
}

inline bool has_all(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

/* 1 for the base level, or 3 or 4 for x86-64-v3 and -v4. */
inline int level() {
    enum : unsigned {
        FMA = 1u << 12,
        MOVBE = 1u << 22,
        OSXSAVE = 1u << 27,
        AVX = 1u << 28,
        F16C = 1u << 29,      /* leaf 1, c */
        BMI1 = 1u << 3,
        AVX2 = 1u << 5,
        BMI2 = 1u << 8,                                             /* leaf 7, b */
        AVX512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31, /* F, DQ, CD, BW, VL */
        LZCNT = 1u << 5, /* leaf 0x80000001, c */
        SAVES_AVX = 0x6,
        SAVES_AVX512 = 0xe6
    };
    if (ask(0).a < 7 || ask(0x80000000u).a < 0x80000001u) return 1;
    const unsigned first = ask(1).c, seventh = ask(7).b;
    if (!has_all(first, FMA | MOVBE | OSXSAVE | AVX | F16C) || !has_all(seventh, BMI1 | AVX2 | BMI2)
        || !has_all(ask(0x80000001u).c, LZCNT) || !has_all(saved_by_system(), SAVES_AVX))
        return 1;
    return has_all(seventh, AVX512) && has_all(saved_by_system(), SAVES_AVX512) ? 4 : 3;
}
#else
inline int level() { return 1; }
#endif

}  // namespace pt_cpu
#endif

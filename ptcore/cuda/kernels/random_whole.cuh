// Random integers, bits and truth values of any real dtype: the same text and bits as on the CPU.
#include "ptcore/config.h"
#undef PT_HAVE_FMA                       // no explicit fused operations either
#define PT_HAVE_FMA 0
#include "random_args.h"
#include "report.cuh"
#include "stream_place.cuh"

namespace {

typedef raw<PT_T>::type Out;

PT_DEVICE void bits(const RandomArgs &a) {
    const StreamPlace at = stream_place(a);
    const int each = sizeof(Out) == 8 ? 2 : 4;
    const int64_t blocks = (a.n + each - 1) / each;
    PT_GRID_STRIDE(k, blocks) {
        const pt::philox_block b = pt::philox(at.seed, at.offset, (uint64_t)k, 0);
        for (int i = 0; i < each && k * each + i < a.n; i++) {
            const uint64_t w = each == 2       ? pt::word64(b.w, i)
                               : PT_TCODE == 0 ? b.w[i] & 1u
                                               : b.w[i];
            reinterpret_cast<Out *>(a.out)[k * each + i] = pt::element<uint64_t, Out>::cast(w);
        }
    }
}

PT_DEVICE void integers(const RandomArgs &a) {
    const StreamPlace at = stream_place(a);
    PT_GRID_STRIDE(i, a.n) {
        const pt::philox_block b = pt::philox(at.seed, at.offset, (uint64_t)i, 0);
        const uint64_t value = pt::below(a.range, b, at.seed, at.offset, (uint64_t)i);
        reinterpret_cast<Out *>(a.out)[i] =
            pt::element<int64_t, Out>::cast((int64_t)((uint64_t)a.low + value));
    }
}

PT_DEVICE void chances(const RandomArgs &a) {
    const StreamPlace at = stream_place(a);
    const int64_t blocks = (a.n + 3) / 4;
    PT_GRID_STRIDE(k, blocks) {
        const pt::philox_block b = pt::philox(at.seed, at.offset, (uint64_t)k, 0);
        for (int i = 0; i < 4 && 4 * k + i < a.n; i++) {
#ifdef PT_U
            const double p = (double)up(reinterpret_cast<const PT_U *>(a.in)[4 * k + i]);
            if (!(p >= 0 && p <= 1)) report_number(a.fault, a.op, p, PT_FAULT_PROBABILITY);
            const bool hit = (double)b.w[i] < p * 4294967296.0;
#else
            const bool hit = b.w[i] < a.threshold;
#endif
            reinterpret_cast<Out *>(a.out)[4 * k + i] =
                pt::element<uint8_t, Out>::cast((uint8_t)hit);
        }
    }
}

// The elements that attention's dropout keeps. Seed and offset are read from memory.
PT_DEVICE void keep(const RandomArgs &a) {
    const uint64_t seed = (uint64_t)a.state[0], offset = (uint64_t)a.state[a.state_step];
    PT_GRID_STRIDE(k, (a.n + 3) / 4) {
        const pt::philox_block b = pt::philox(seed, offset, (uint64_t)k, 0);
        for (int i = 0; i < 4 && 4 * k + i < a.n; i++)
            reinterpret_cast<uint8_t *>(a.out)[4 * k + i] = b.w[i] >= a.threshold;
    }
}

}  // namespace

PT_KERNEL(random_bits, RandomArgs, a, 256) { bits(a); }
PT_KERNEL(random_integers, RandomArgs, a, 256) { integers(a); }
PT_KERNEL(random_chances, RandomArgs, a, 256) { chances(a); }
PT_KERNEL(random_keep, RandomArgs, a, 256) { keep(a); }

// The step of an optimizer, PT_STEP, over many tensors at once. Numbers that depend on counters,
// such as Adam's corrections, come from the host by value. In graphs the counters lie on the
// device: one kernel computes the numbers and steps, one counts.
#include "many_chunks.cuh"

namespace {

typedef PT_STEP<C> Step;

struct Apply {
    Step step;
    PT_DEVICE_MEMBER void operator()(C *x) const { step.apply(x); }
};

// The numbers of a tensor's step: first those that all tensors share, then the tensor's own, which
// follow the addresses in its record.
struct MakeStep {
    const ManyArgs &a;
    PT_DEVICE_MEMBER Apply operator()(const uint64_t *record) const {
        Apply f;
        const C *shared = reinterpret_cast<const C *>(a.numbers);
        const C *own = reinterpret_cast<const C *>(record + PT_MANY_HEAD + Step::written + 1);
        for (int k = 0; k < Step::shared; k++) f.step.number[k] = shared[k];
        for (int k = 0; k < Step::own; k++) f.step.number[Step::shared + k] = own[k];
        return f;
    }
};

// A tensor's counters, and the numbers computed from them. The counters' addresses follow those of
// the operands in the tensor's record.
struct Counted {
    double counters[Step::counters + 1], numbers[Step::shared + Step::own];
    PT_DEVICE_MEMBER Counted(const ManyArgs &a, const uint64_t *record) {
        double options[Step::options];
        for (int k = 0; k < Step::options; k++) {
            options[k] = a.numbers[k];
            if (a.option_at >> k & 1) {
                const void *const from = *reinterpret_cast<const void *const *>(&a.numbers[k]);
                options[k] = a.wide_option >> k & 1 ? *static_cast<const double *>(from)
                                                    : (double)*static_cast<const float *>(from);
            }
        }
        for (int k = 0; k < Step::counters; k++)
            counters[k] = a.single ? (double)*at<float>(record, k) : *at<double>(record, k);
        Step::numbers_of(options, counters, a.single, numbers);
    }
    template <class N> static PT_DEVICE_MEMBER N *at(const uint64_t *record, int k) {
        return reinterpret_cast<N *>(record[PT_MANY_HEAD + Step::written + 1 + k]);
    }
};

}  // namespace

PT_KERNEL_SYNC(step_counted, ManyArgs, a, PT_MANY_THREADS) {
    __shared__ C numbers[Step::shared + Step::own];
    for (int64_t chunk = blockIdx.x; chunk < a.chunks; chunk += gridDim.x) {
        const uint64_t *record = record_of(a, chunk);
        __syncthreads();                // waits for readers of the last tensor's numbers
        if (threadIdx.x == 0) {
            const Counted counted(a, record);
            for (int k = 0; k < Step::shared + Step::own; k++) numbers[k] = (C)counted.numbers[k];
        }
        __syncthreads();
        Apply f;
        for (int k = 0; k < Step::shared + Step::own; k++) f.step.number[k] = numbers[k];
        over_chunk<Step::written + 1, Step::written>(record, chunk, f);
    }
}

PT_KERNEL(step_count, ManyArgs, a, PT_MANY_THREADS) {
    PT_GRID_STRIDE(i, a.count) {
        const uint64_t *record = a.records + i * a.words;
        const Counted counted(a, record);
        for (int k = 0; k < Step::counters; k++) {
            if (a.single) *Counted::at<float>(record, k) = (float)counted.counters[k];
            else *Counted::at<double>(record, k) = counted.counters[k];
        }
    }
}

PT_KERNEL(step, ManyArgs, a, PT_MANY_THREADS) {
    over_chunks<Step::written + 1, Step::written>(a, MakeStep{a});
}

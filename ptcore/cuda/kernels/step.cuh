// The step of an optimizer, PT_STEP, over many tensors at once.
#include "many_chunks.cuh"

namespace {

typedef PT_STEP<C> Step;

struct Apply {
    Step step;
    PT_DEVICE_MEMBER void operator()(C *x) const { step.apply(x); }
};

// The numbers of a tensor: those of all, then its own, which lie behind the addresses in its record.
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

}  // namespace

PT_KERNEL(step, ManyArgs, a, PT_MANY_THREADS) { over_chunks<Step::written + 1, Step::written>(a, MakeStep{a}); }

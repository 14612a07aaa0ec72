// The first `kept` entries of long lines by their digits of 8 bits, the highest first (Alabi,
// Blanchard, Gordon, Steinbach, 2012): in a part of a line, a block finds the bound below which
// there are `kept` entries, and writes these in any order. Positions make all entries different, so
// that the bound exists; of equal elements the first ones are taken.
#include "sort_keys.cuh"

namespace {

enum { THREADS = 512, DIGITS = 256, COPIES = 4, AT_ONCE = 4 };

// The bits of the bound that have been decided, of key and position.
struct Bound {
    uint64_t key, key_mask, position, position_mask;
    PT_DEVICE_MEMBER bool has(uint64_t k, uint64_t p) const {
        return (k & key_mask) == key && (p & position_mask) == position;
    }
    PT_DEVICE_MEMBER bool covers(uint64_t k, uint64_t p) const {
        return (k & key_mask) < key || ((k & key_mask) == key && (p & position_mask) <= position);
    }
};

// Calls use(key, position) for each of a part's elements.
template <class Use> PT_DEVICE void walk(const SortArgs &a, const T *line, int64_t begin,
                                         int64_t end, Use use) {
    for (int64_t first = begin + threadIdx.x; first < end; first += THREADS * AT_ONCE) {
        T x[AT_ONCE];
        PT_UNROLL for (int j = 0; j < AT_ONCE; j++) {
            const int64_t i = first + j * THREADS;
            x[j] = load(line, (i < end ? i : first) * a.inner.by);
        }
        PT_UNROLL for (int j = 0; j < AT_ONCE; j++) {
            const int64_t i = first + j * THREADS;
            if (i < end) use(ordered(a, x[j]), (uint64_t)i);
        }
    }
}

}  // namespace

// A block for each part of a line; the entries that it keeps go to the part's place among the
// line's a.size.by entries.
PT_KERNEL_SYNC(topk_select, SortArgs, a, 512) {
    __shared__ int counts[COPIES * DIGITS], found[2];
    const int64_t line = blockIdx.x / (unsigned)a.parts, part = blockIdx.x % (unsigned)a.parts;
    const int64_t begin = part * a.part,
                  end = begin + a.part < a.length ? begin + a.part : a.length;
    const T *const from = reinterpret_cast<const T *>(a.in) + place(a, line, 0, a.length);
    Bound bound = {};
    int needed = (int)(a.kept.by < end - begin ? a.kept.by : end - begin),
        shift = 8 * (int)sizeof(T) - 8;
    const int there = needed;
    bool by_position = false;
    if (needed == end - begin) needed = 0;              // all entries are kept
    while (needed) {
        for (int i = threadIdx.x; i < COPIES * DIGITS; i += THREADS) counts[i] = 0;
        __syncthreads();
        walk(a, from, begin, end, [&](uint64_t key, uint64_t position) {
            if (bound.has(key, position))
                atomicAdd(&counts[threadIdx.x / 32 % COPIES * DIGITS +
                                  ((by_position ? position : key) >> shift & 255u)],
                          1);
        });
        __syncthreads();
        if (threadIdx.x < 32) {                         // lane l: digits 8 l to 8 l + 7
            int many[8], own = 0;
            for (int i = 0; i < 8; i++) {
                many[i] = 0;
                for (int c = 0; c < COPIES; c++)
                    many[i] += counts[c * DIGITS + 8 * threadIdx.x + i];
                own += many[i];
            }
            int before = running_sum(own) - own;
            for (int i = 0; i < 8; before += many[i++])
                if (before < needed && needed <= before + many[i]) {
                    found[0] = 8 * threadIdx.x + i;
                    found[1] = many[i] == needed - before ? 0 : needed - before;
                }
        }
        __syncthreads();
        (by_position ? bound.position : bound.key) |= (uint64_t)found[0] << shift;
        (by_position ? bound.position_mask : bound.key_mask) |= (uint64_t)255 << shift;
        needed = found[1];    // 0: all entries with the bound's bits are taken
        if (shift) {
            shift -= 8;
        } else {    // equal elements: positions decide
            by_position = true;
            for (shift = 24; shift && !((a.length - 1) >> shift);) shift -= 8;
        }
        __syncthreads();                                // waits for readers of `found`
    }
    if (threadIdx.x == 0) found[0] = 0;
    __syncthreads();
    const int64_t to = line * a.size.by + part * a.kept.by;
    walk(a, from, begin, end, [&](uint64_t key, uint64_t position) {
        if (bound.covers(key, position))
            put_entry(a, to + atomicAdd(&found[0], 1), key, (int64_t)position);
    });
    const int64_t left = part == a.parts - 1 ? line * a.size.by + a.size.by - to : a.kept.by;
    for (int64_t i = there + threadIdx.x; i < left; i += THREADS)
        put_entry(a, to + i, ~(uint64_t)0, (int64_t)(~(uint64_t)0 >> 1));
}

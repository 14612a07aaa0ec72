/* Connectionist temporal classification: the probability of a sequence of labels over all its
 * alignments.
 *
 *    ctc(log_probs, labels, input_lengths, target_lengths; blank) -> loss (N,), alpha (N, T, 2 S+1)
 *    ctc_backward(g, log_probs, labels, input_lengths, target_lengths, loss, alpha; blank) -> gx
 *
 * log_probs (T, N, C), labels (N, S). A path goes through the states blank, label, blank, ...,
 * label, blank. alpha[n, t, s] is the log of the probability of all ways to be in state s
 * after step t. Inputs are contiguous. Source: Graves et al., ICML 2006; here for log_probs,
 * so that no softmax is needed.
 */
#include "common.hpp"

#include <atomic>
#include <cmath>

namespace {

template <class E> constexpr E NOWHERE = -std::numeric_limits<E>::infinity();

/* log(exp(a) + exp(b) + exp(c)) */
template <class E>
inline E log_sum(E a, E b, E c) {
    const E m = a > b ? (a > c ? a : c) : (b > c ? b : c);
    if (!(m > NOWHERE<E>)) return a != a || b != b || c != c ? a + b + c : NOWHERE<E>;
    return m + std::log(std::exp(a - m) + std::exp(b - m) + std::exp(c - m));
}

/* The sequences of a batch. */
template <class E>
struct sequences {
    int64_t steps, n, classes, width, states, blank;
    const int64_t *labels, *input_lengths, *target_lengths;
    const E *x;                 /* log_probs, as elements of type E */
    scratch<E> wide;

    sequences(pt_call *call, int first)
        : steps(call->in[first].sizes[0]), n(call->in[first].sizes[1]),
          classes(call->in[first].sizes[2]), width(call->in[first + 1].sizes[1]),
          states(2 * width + 1), blank(call->params[0].i), labels(input<int64_t>(call, first + 1)),
          input_lengths(input<int64_t>(call, first + 2)),
          target_lengths(input<int64_t>(call, first + 3)), x(nullptr),
          wide(pt_is(call->in[first].dtype, HALVES) ? call->in[first].numel : 0) {
        const pt_view &given = call->in[first];
        if (!pt_is(given.dtype, HALVES)) x = reinterpret_cast<const E *>(given.data);
        else if (wide) {
            for (int64_t i = 0; i < given.numel; ++i) wide[i] = E(get_real(given, i));
            x = wide.data;
        }
    }
    int64_t label(int64_t i, int64_t s) const { return s & 1 ? labels[i * width + s / 2] : blank; }
    /* whether a path may go to state s from two states before: over a
     * blank, from a different label */
    bool jumps(int64_t i, int64_t s) const {
        return (s & 1) && s > 1 && label(i, s) != blank && label(i, s) != label(i, s - 2);
    }
    E emitted(int64_t i, int64_t t, int64_t s) const {
        return x[(t * n + i) * classes + label(i, s)];
    }
};

template <class E>
int forward(pt_call *call) {
    const sequences<E> q(call, 0);
    if (!q.x) return no_memory(call, call->in[0].numel * int64_t(sizeof(E)));
    E *alphas = output<E>(call, 1);
    parallel_for(q.n, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t length = 2 * q.target_lengths[i] + 1, steps = q.input_lengths[i];
            E *alpha = alphas + i * q.steps * q.states;
            for (int64_t t = 0; t < q.steps; ++t, alpha += q.states) {
                const E *before = alpha - q.states;
                for (int64_t s = 0; s < q.states; ++s) {
                    if (s >= length || t >= steps) alpha[s] = NOWHERE<E>;
                    else if (t == 0) alpha[s] = s < 2 ? q.emitted(i, 0, s) : NOWHERE<E>;
                    else
                        alpha[s] = q.emitted(i, t, s) +
                                   log_sum(before[s], s > 0 ? before[s - 1] : NOWHERE<E>,
                                           q.jumps(i, s) ? before[s - 2] : NOWHERE<E>);
                }
            }
            E loss = length == 1 ? E(0) : -NOWHERE<E>;        /* no steps: no labels were emitted */
            if (steps > 0) {
                const E *last = alphas + (i * q.steps + steps - 1) * q.states;
                loss = -log_sum(last[length - 1], length > 1 ? last[length - 2] : NOWHERE<E>,
                                NOWHERE<E>);
            }
            put_real(call->out[0], i, double(loss));
        }
    });
    return PT_OK;
}

/* The derivative by log_probs[t, k] is minus the share of the paths that emit k at step t. beta[s]
 * covers the rest of a path: from state s at step t on. */
template <class E>
int backward(pt_call *call) {
    const sequences<E> q(call, 1);
    if (!q.x) return no_memory(call, call->in[1].numel * int64_t(sizeof(E)));
    const E *alphas = input<E>(call, 6);
    pt_view &out = call->out[0];
    for (int64_t i = 0; i < out.numel && !q.n; ++i) put_real(out, i, 0);
    std::atomic<bool> starved{false};
    parallel_for(q.n, 1, [&](int64_t begin, int64_t end) {
        scratch<E> room(2 * q.states + q.classes);
        if (!room) {
            starved = true;
            return;
        }
        E *beta = room.data, *rest = beta + q.states, *shares = rest + q.states;
        for (int64_t i = begin; i < end; ++i) {
            const int64_t length = 2 * q.target_lengths[i] + 1, steps = q.input_lengths[i];
            const double g = get_real(call->in[0], i), loss = get_real(call->in[5], i);
            for (int64_t t = q.steps - 1; t >= 0; --t) {
                const int64_t row = (t * q.n + i) * q.classes;
                for (int64_t k = 0; k < q.classes; ++k) shares[k] = 0;
                if (t < steps && g != 0) {
                    for (int64_t s = 0; s < length; ++s) {
                        if (t == steps - 1) rest[s] = s >= length - 2 ? E(0) : NOWHERE<E>;
                        else
                            rest[s] = log_sum(beta[s], s + 1 < length ? beta[s + 1] : NOWHERE<E>,
                                              s + 2 < length && q.jumps(i, s + 2) ? beta[s + 2]
                                                                                  : NOWHERE<E>);
                    }
                    const E *alpha = alphas + (i * q.steps + t) * q.states;
                    for (int64_t s = 0; s < length; ++s) {
                        shares[q.label(i, s)] += std::exp(alpha[s] + rest[s] + E(loss));
                        beta[s] = rest[s] + q.emitted(i, t, s);
                    }
                }
                for (int64_t k = 0; k < q.classes; ++k)
                    put_real(out, row + k, shares[k] == 0 ? 0.0 : -g * double(shares[k]));
            }
        }
    });
    return starved ? no_memory(call, (2 * q.states + q.classes) * int64_t(sizeof(E))) : int(PT_OK);
}

bool are_sequences(pt_call *call, int first) {
    const pt_view *in = call->in + first;
    const int64_t blank = call->params[0].i;
    const bool shaped = in[0].ndim == 3 && in[1].ndim == 2 && in[1].sizes[0] == in[0].sizes[1] &&
                        in[2].numel == in[0].sizes[1] && in[3].numel == in[0].sizes[1] &&
                        in[1].dtype == PT_INT64 && in[2].dtype == PT_INT64 &&
                        in[3].dtype == PT_INT64;
    if (!shaped || blank < 0 || blank >= in[0].sizes[2]) return false;
    const int64_t *labels = input<int64_t>(call, first + 1);
    const int64_t *steps = input<int64_t>(call, first + 2),
                  *lengths = input<int64_t>(call, first + 3);
    for (int64_t i = 0; i < in[1].numel; ++i)
        if (labels[i] < 0 || labels[i] >= in[0].sizes[2]) return false;
    for (int64_t i = 0; i < in[0].sizes[1]; ++i)
        if (steps[i] < 0 || steps[i] > in[0].sizes[0] || lengths[i] < 0 ||
            lengths[i] > in[1].sizes[1])
            return false;
    return true;
}

int refused(pt_call *call) {
    return fail(
        call, PT_RUNTIME_ERROR,
        "expected log_probs (T, N, C), labels (N, S) below C, and lengths (N) up to T and S");
}

int ctc_kernel(pt_call *call) {
    if (!are_sequences(call, 0)) return refused(call);
    return call->in[0].dtype == PT_FLOAT64 ? forward<double>(call) : forward<float>(call);
}

int ctc_backward_kernel(pt_call *call) {
    const pt_view *in = call->in;
    if (!are_sequences(call, 1)) return refused(call);
    const int64_t n = in[1].sizes[1], states = 2 * in[2].sizes[1] + 1;
    const int kept = in[1].dtype == PT_FLOAT64 ? PT_FLOAT64 : PT_FLOAT32;
    if (in[0].numel != n || in[5].numel != n || !pt_is(in[0].dtype, FLOATS) ||
        !pt_is(in[5].dtype, FLOATS) || in[6].numel != n * in[1].sizes[0] * states ||
        in[6].dtype != kept)
        return fail(call, PT_RUNTIME_ERROR, "g, loss and alpha must be those of the forward call");
    return call->in[1].dtype == PT_FLOAT64 ? backward<double>(call) : backward<float>(call);
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_ctc_, PT_ISA)[] = {
    {"ctc", ctc_kernel},
    {"ctc_backward", ctc_backward_kernel},
    {nullptr, nullptr},
};

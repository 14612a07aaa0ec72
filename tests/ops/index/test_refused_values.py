"""Positions, offsets and probabilities that do not fit are refused in every mode that sees their values: at once, by
compiled and traced programs at their run, and for a sample of a batch."""
from itertools import pairwise

import numpy as np
import pytest
from _walk import every_case

import ptcore
from ptcore.nn import functional as F

pytestmark = pytest.mark.core

W, X, S = ptcore.arange(12.0).reshape(6, 2), ptcore.zeros(3, 2), ptcore.ones(2, 2)
ROWS = ptcore.tensor([1, 2, 3, 4])

# name: (function of one tensor, what fits, what does not)
CASES = {
    **{f"embedding_bag {mode} {word}": (lambda o, mode=mode, last=last: F.embedding_bag(
        ROWS, W, o, mode=mode, include_last_offset=last), [0, 1, 3], wrong)
       for mode in ("sum", "mean", "max")
       for word, wrong, last in (("falls", [0, 3, 1], False), ("negative", [0, -3, 1], False),
                                 ("beyond", [0, 3, 5], False), ("end falls", [0, 3, 1], True),
                                 ("begin", [1, 2, 3], False))},
    "embedding_bag position": (lambda i: F.embedding_bag(i, W, ptcore.tensor([0, 1]), mode="sum"), [0, 1, 3],
                               [0, 6, 1]),
    "embedding": (lambda i: F.embedding(i, W), [0, 1], [0, -1]),
    "index_select": (lambda i: X.index_select(0, i), [0, 1], [0, 3]),
    "index_add": (lambda i: X.index_add(0, i, S), [0, 1], [0, 3]),
    "index_copy": (lambda i: X.index_copy(0, i, S), [0, 1], [0, 3]),
    "index_fill": (lambda i: X.index_fill(0, i, 1.0), [0, 1], [0, 3]),
    "index_reduce": (lambda i: X.index_reduce(0, i, S, "amax"), [0, 1], [0, 3]),
    "index_put": (lambda i: X.index_put((i,), S), [0, 1], [0, 3]),
    "item": (lambda i: X[i], [0, 1], [0, 3]),
    "take": (lambda i: X.take(i), [0, 1], [0, 6]),
    "put": (lambda i: X.put(i, S[0]), [0, 1], [0, 6]),
    "gather": (lambda i: X.gather(0, i), [[0, 1]], [[0, 3]]),
    "scatter": (lambda i: X.scatter(0, i, S), [[0, 1]], [[0, 3]]),
    "one_hot": (lambda i: F.one_hot(i, 3), [0, 1], [0, 3]),
    "multinomial negative": (lambda p: ptcore.multinomial(p, 1), [1.0, 1.0], [-1.0, 1.0]),
    "multinomial too many": (lambda p: ptcore.multinomial(p, 2), [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]),
    "multinomial of nothing": (lambda p: ptcore.multinomial(p, 1, True), [1.0, 1.0], [0.0, 0.0]),
    **{f"segment_reduce {word} {wrong}": (lambda t, word=word: ptcore.segment_reduce(
        ptcore.arange(4.0), "sum", **{word: t}), good, wrong)
       for word, good, some in (("lengths", [1, 3], ([1, 9], [1, 2], [-1, 5])),
                                ("offsets", [0, 1, 4], ([0, 5, 4], [-1, 1, 4], [0, 1, 9]))) for wrong in some},
}
ERRORS = (IndexError, RuntimeError, ValueError)


@pytest.mark.parametrize("mode", ["eager", "compiled", "traced", "vmap"])
def test_refused(mode):
    with every_case() as case:
        for name, (function, good, wrong) in CASES.items():
            with case(name):
                good, wrong = ptcore.tensor(good), ptcore.tensor(wrong)
                run = function
                if mode == "compiled":
                    run = ptcore.compile(lambda x, function=function: function(x))
                    run(good)
                elif mode == "traced":
                    run = ptcore.jit.trace(function, (good,), check_trace=False)
                elif mode == "vmap":
                    run = ptcore.func.vmap(function, randomness="different")
                    good, wrong = ptcore.stack([good, good]), ptcore.stack([good, wrong])
                run(good)
                with pytest.raises(ERRORS):
                    run(wrong)


def test_more_that_does_not_fit():
    for call in (lambda: X.index_reduce(0, ptcore.tensor([0]), S[:1], "sum"),
                 lambda: X.index_add(0, ptcore.tensor([0, 1]), S[:1]),
                 lambda: X.index_copy(0, ptcore.tensor([0]), S[:1, :1]),
                 lambda: ptcore.multinomial(ptcore.tensor([[1.0, 1, 0], [1, 0, 0]]), 2)):
        with pytest.raises(ERRORS):
            call()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_what_is_behind_the_last_offset_is_in_no_bag(mode):
    def bags(offsets, weights=None):
        return F.embedding_bag(ROWS, W, offsets, mode=mode, include_last_offset=True, per_sample_weights=weights)
    reduce = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    rows = W.numpy()[[1, 2, 3, 4]]
    for offsets in ([0, 2], [0, 1, 3], [0, 4], [0, 1, 4]):
        want = [reduce(rows[a:b], 0) for a, b in pairwise(offsets)]
        np.testing.assert_allclose(bags(ptcore.tensor(offsets)).numpy(), want)
    both = ptcore.func.vmap(bags)(ptcore.tensor([[0, 1, 3], [0, 2, 4]]))
    np.testing.assert_allclose(both[0].numpy(), [reduce(rows[0:1], 0), reduce(rows[1:3], 0)])
    np.testing.assert_allclose(both[1].numpy(), [reduce(rows[0:2], 0), reduce(rows[2:4], 0)])


def test_index_methods_give_ints():
    class Half:
        def __index__(self):
            return 1.5
    for read in (lambda x, k: x[k], lambda x, k: x[k:], lambda x, k: x[:, k]):
        with pytest.raises(TypeError, match=r"__index__ returned non-int|__index__\(\) must return an int"):
            read(ptcore.ones(3, 3), Half())

"""``LinearCrossEntropyOptions``: the loss by pieces of a batch is that of the whole, and so are its gradients."""
import numpy as np
import pytest

import ptcore as pt

F = pt.nn.functional


def setting(samples, weighted, dtype=pt.float64):
    rng = np.random.default_rng(0)
    x, w, b = [pt.tensor(rng.normal(size=s), dtype=dtype, requires_grad=True) for s in ((samples, 4), (7, 4), (7,))]
    target = pt.tensor(rng.integers(0, 7, samples))
    if samples > 2:
        target[1] = 3           # the class that does not count
    return x, w, b, target, pt.tensor(rng.random(7) + 0.5, dtype=dtype) if weighted else None


@pytest.mark.parametrize("options", [
    {"batch_chunk_size": 2}, {"batch_chunk_size": 100}, {}, {"chunking_method": "aspect_ratio"},
    {"chunking_method": "aspect_ratio:4"}, {"chunking_method": None}], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_as_the_whole(options, reduction, weighted):
    for samples in (1, 5, 8):
        x, w, b, target, weight = setting(samples, weighted)
        keywords = {"linear_bias": b, "weight": weight, "reduction": reduction, "ignore_index": 3,
                    "label_smoothing": 0.1}
        results = []
        for chosen in (None, pt.nn.LinearCrossEntropyOptions(**options)):
            loss = F.linear_cross_entropy(x, w, target, **keywords, options=chosen)
            results.append([loss, *pt.autograd.grad(loss.sum(), (x, w, b))])
        for a, b_ in zip(*results):
            np.testing.assert_allclose(b_.detach().numpy(), a.detach().numpy(), rtol=1e-10, atol=1e-12)


def test_one_sample_halves_and_no_samples():
    x, w, b, target, _ = setting(1, False)
    options = pt.nn.LinearCrossEntropyOptions(batch_chunk_size=1)
    one = F.linear_cross_entropy(x[0], w, target[0], linear_bias=b, options=options)
    assert one.shape == () and pt.allclose(one, F.linear_cross_entropy(x[0], w, target[0], linear_bias=b))
    half = F.linear_cross_entropy(x.half(), w.half(), target, options=options)
    assert half.dtype is pt.float16
    assert F.linear_cross_entropy(x[:0], w, target[:0], reduction="none", options=options).shape == (0,)


def test_logits_of_a_piece_at_a_time():
    """The largest tensor that is saved for the backward pass is no larger than the input."""
    sizes = []
    x = pt.ones(64, 8, requires_grad=True)
    w = pt.ones(512, 8, requires_grad=True)
    target = pt.zeros(64, dtype=pt.int64)
    with pt.autograd.graph.saved_tensors_hooks(lambda t: (sizes.append(t.numel()), t)[1], lambda t: t):
        F.linear_cross_entropy(x, w, target, options=pt.nn.LinearCrossEntropyOptions(batch_chunk_size=4)).backward()
    assert sizes and max(sizes) <= w.numel() and x.grad.shape == x.shape


@pytest.mark.parametrize(("keywords", "message"), [
    ({"acc_policy": "fast"}, "acc_policy must be one of"), ({"chunking_method": "rows"}, "chunking_method must be"),
    ({"chunking_method": "aspect_ratio:0"}, "chunking_method must be"), ({"chunking_method": 3}, "must be 'auto'"),
    ({"batch_chunk_size": 0}, "must be a positive int"),
    ({"acc_dtype": pt.int64}, "acc_dtype must be a floating-point")], ids=str)
def test_wrong_settings(keywords, message):
    with pytest.raises(ValueError, match=f"LinearCrossEntropyOptions: .*{message}"):
        pt.nn.LinearCrossEntropyOptions(**keywords)


@pytest.mark.parametrize("targets", [4, 6, 8])
def test_as_many_targets_as_samples(targets):
    """None is left out or counted twice where the pieces end elsewhere."""
    _, w, _, target, _ = setting(targets, False)
    for options in (None, pt.nn.LinearCrossEntropyOptions(batch_chunk_size=2)):
        with pytest.raises(ValueError, match="target"):
            F.linear_cross_entropy(pt.zeros(2, 4, dtype=pt.float64), w, target, options=options)


def test_what_is_no_options():
    x, w, _, target, _ = setting(2, False)
    with pytest.raises(TypeError, match="options must be LinearCrossEntropyOptions or None, got dict"):
        F.linear_cross_entropy(x, w, target, options={})
    both = pt.nn.LinearCrossEntropyOptions(batch_chunk_size=2, chunking_method="aspect_ratio")
    with pytest.raises(ValueError, match="must agree; give one of them"):
        F.linear_cross_entropy(pt.ones(64, 4), w.float(), pt.zeros(64, dtype=pt.int64), options=both)


@pytest.mark.parametrize("which", range(4))
def test_arguments_that_are_written_to_before_the_backward(which):
    """The backward computes the logits again."""
    leaves = [pt.ones(5, 3, dtype=pt.float64, requires_grad=True), pt.ones(4, 3, dtype=pt.float64, requires_grad=True),
              pt.ones(4, dtype=pt.float64, requires_grad=True)]
    x, w, b = (t * 2 for t in leaves)
    target = pt.tensor([0, 1, 2, 3, 0])
    options = pt.nn.LinearCrossEntropyOptions(batch_chunk_size=2, chunking_method=None)
    loss = F.linear_cross_entropy(x, w, target, linear_bias=b, options=options)
    with pt.no_grad():
        (x, w, b, target)[which].mul_(0)
    with pytest.raises(RuntimeError, match=r"linear_cross_entropy: one of the variables .* modified by an inplace"):
        loss.backward()

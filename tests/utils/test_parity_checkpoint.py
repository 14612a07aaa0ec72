"""utils.checkpoint against torch: gradients, random numbers, memory, errors."""
import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")
pytest.importorskip("torch.utils.checkpoint")

pytestmark = pytest.mark.parity
LIBS = (pt, torch)


def model(lib):
    layers = [lib.nn.Linear(4, 8), lib.nn.Tanh(), lib.nn.Linear(8, 8), lib.nn.ReLU(), lib.nn.Linear(8, 2)]
    rng = np.random.default_rng(0)
    module = lib.nn.Sequential(*layers).double()
    module.load_state_dict({k: lib.tensor(rng.normal(size=tuple(v.shape))) for k, v in module.state_dict().items()})
    return module


@pytest.mark.parametrize("segments, error", [(0, ValueError), (-1, ValueError), (4, ValueError), (1.5, TypeError)])
def test_wrong_numbers_of_segments(segments, error):
    net = pt.nn.Sequential(*[pt.nn.Tanh() for _ in range(3)])
    with pytest.raises(error, match="checkpoint_sequential: segments must be"):
        pt.utils.checkpoint.checkpoint_sequential(net, segments, pt.ones(2), use_reentrant=False)


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("segments", [1, 2, 5])
def test_gradients(reentrant, segments):
    results = []
    for lib in LIBS:
        net = model(lib)
        x = lib.tensor(np.random.default_rng(1).normal(size=(3, 4)), requires_grad=True)
        plain = net(x)
        grads = lib.autograd.grad((plain**2).sum(), [x, *net.parameters()])
        out = lib.utils.checkpoint.checkpoint_sequential(net, segments, x, use_reentrant=reentrant)
        (out**2).sum().backward()
        again = [x.grad, *[p.grad for p in net.parameters()]]
        for a, b in zip(again, grads, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
        results.append([out.detach().numpy(), *[g.numpy() for g in again]])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize("reentrant", [True, False])
def test_runs_twice_with_the_same_random_numbers(reentrant):
    for lib in LIBS:
        calls = []

        def f(x, lib=lib, calls=calls):
            calls.append(1)
            return lib.nn.functional.dropout(x, 0.5) * x

        x = lib.ones(100, requires_grad=True)
        lib.manual_seed(3)
        out = lib.utils.checkpoint.checkpoint(f, x, use_reentrant=reentrant)
        after = lib.rand(3).tolist()
        assert len(calls) == 1
        out.sum().backward()
        assert len(calls) == 2
        # d(mask x x) / dx = 2 mask x
        np.testing.assert_allclose(x.grad.numpy(), 2 * out.detach().numpy())
        lib.manual_seed(3)
        f(x)
        assert lib.rand(3).tolist() == after


def test_keywords_several_outputs_and_second_order():
    for lib in LIBS:
        x = lib.tensor([0.3, 0.7], dtype=lib.float64, requires_grad=True)
        a, b = lib.utils.checkpoint.checkpoint(lambda x, *, by: ((x * by).sin(), x.exp()), x, by=2.0,
                                               use_reentrant=False)
        (g,) = lib.autograd.grad((a * b).sum(), x, create_graph=True)
        g.sum().backward()
        v = x.detach().numpy()
        want = np.exp(v) * (4 * np.cos(2 * v) - 3 * np.sin(2 * v))
        np.testing.assert_allclose(x.grad.numpy(), want)
        contexts = []

        class Seen:
            def __init__(self, name, contexts=contexts):
                self.name, self.contexts = name, contexts

            def __enter__(self):
                self.contexts.append(self.name)

            def __exit__(self, *error):
                pass

        out = lib.utils.checkpoint.checkpoint(lambda x: x.sin(), x, use_reentrant=False,
                                              context_fn=lambda Seen=Seen: (Seen("first"), Seen("second")))
        out.sum().backward()
        assert contexts == ["first", "second"]
        with lib.no_grad():
            assert not lib.utils.checkpoint.checkpoint(lambda x: x.sin(), x, use_reentrant=False).requires_grad


def test_errors():
    for lib in LIBS:
        c = lib.utils.checkpoint
        x = lib.ones(2, requires_grad=True)
        with pytest.raises(ValueError, match="Unexpected keyword"):
            c.checkpoint(lambda x: x, x, use_reentrant=True, by=1)
        with pytest.raises(ValueError, match="context_fn"):
            c.checkpoint(lambda x: x, x, use_reentrant=True, debug=True)
        with pytest.warns(UserWarning, match="use_reentrant"):
            c.checkpoint(lambda x: x * 2, x)
        count = []

        def different(x, count=count):
            count.append(1)
            return (x.sin() if len(count) > 1 else x.exp().exp()).sin()

        out = c.checkpoint(different, x, use_reentrant=False)
        with pytest.raises(c.CheckpointError):
            out.sum().backward()


def test_what_is_in_between_is_dropped():
    """The first run keeps none of what it saves."""
    x = pt.ones(1000, requires_grad=True)
    kept = []

    def f(x):
        y = x.sin()
        z = y.exp()
        kept.append(__import__("weakref").ref(z))
        return z.sin().sum()

    out = pt.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
    assert kept[0]() is None
    out.backward()
    np.testing.assert_allclose(x.grad.numpy()[:1], np.cos(np.exp(np.sin(1))) * np.exp(np.sin(1)) * np.cos(1), rtol=1e-6)


@pytest.mark.parametrize("how", ["", "argument", "context", "inner context"])
def test_early_stop(how):
    """The second run ends with the last tensor that the backward asks for."""
    counts = []
    for lib in LIBS:
        checkpoint, calls = lib.utils.checkpoint.checkpoint, []

        def f(x, lib=lib, calls=calls):
            y = x.sin().exp()
            calls.append(lib.is_grad_enabled())
            return y + 1

        x = lib.ones(2, requires_grad=True, dtype=lib.float64)
        setting = {"context": False, "argument": None}.get(how, True)
        with lib.utils.checkpoint.set_checkpoint_early_stop(setting):
            out = checkpoint(f, x, use_reentrant=False, **({"early_stop": False} if how == "argument" else {}))
        with lib.utils.checkpoint.set_checkpoint_early_stop(how != "inner context"):
            out.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.cos(1) * np.exp(np.sin(1)))
        counts.append(len(calls))
    assert counts[0] == counts[1] == (2 if how in ("argument", "context") else 1)


def test_early_stop_of_checkpoints_inside_others():
    def run(lib, f):
        x = lib.tensor([0.5, 0.7], requires_grad=True, dtype=lib.float64)
        f(x).sum().backward()
        return x.grad.numpy()

    def nested(lib):
        checkpoint = lib.utils.checkpoint.checkpoint

        def inner(x):
            return checkpoint(lambda x: x.sin().exp() * x, x, use_reentrant=False).tanh()

        return lambda x: checkpoint(lambda x: inner(inner(x)) * x, x, use_reentrant=False)

    def part(x):
        return (x.sin().exp() * x).tanh()

    want = run(torch, lambda x: part(part(x)) * x)
    for lib in LIBS:
        np.testing.assert_allclose(run(lib, nested(lib)), want, rtol=1e-12)


def test_settings():
    for lib in LIBS:
        module = lib.utils.checkpoint
        with module.set_checkpoint_debug_enabled(None):
            pass
        kind = module.DefaultDeviceType
        assert kind.get_device_type() == ("cuda" if lib.cuda.is_available() else "cpu")
        try:
            kind.set_device_type("cuda")
            assert kind.get_device_type() == "cuda"
        finally:
            kind.set_device_type(None)
        assert module.get_device_states(lib.ones(1), [1, lib.zeros(2)]) == ([], [])
        assert module.set_device_states([], []) is None


@pytest.mark.parametrize("last", [True, False])
def test_running_statistics_move_in_both_runs(last):
    seen = []
    for lib in LIBS:
        norm = lib.nn.BatchNorm1d(2).double()
        x = lib.tensor([[1.0, 2.0], [4.0, 3.0]], dtype=lib.float64, requires_grad=True)
        out = lib.utils.checkpoint.checkpoint(norm if last else lambda x, f=norm: f(x).sin(), x, use_reentrant=False)
        out.sum().backward()
        seen.append([norm.running_mean.tolist(), norm.running_var.tolist(), int(norm.num_batches_tracked)])
    np.testing.assert_allclose(seen[0][0] + seen[0][1], seen[1][0] + seen[1][1], rtol=1e-12)
    assert seen[0][2] == seen[1][2] == 2


@pytest.mark.parametrize("keep", ["mm", "addmm", "both", "relu", "nothing"])
def test_selective(keep):
    """What a policy is asked about of an MLP, and the gradients."""
    found = []
    for lib in LIBS:
        c = lib.utils.checkpoint
        net = model(lib)
        net.append(lib.nn.Linear(2, 2, bias=False).double())
        with lib.no_grad():
            net[-1].weight.copy_(lib.tensor([[0.3, -0.2], [0.1, 0.7]], dtype=lib.float64))
        ops = {n: getattr(lib, n) if lib is pt else getattr(lib.ops.aten, n).default for n in ("mm", "addmm", "relu")}
        chosen = {"both": ["mm", "addmm"], "nothing": []}.get(keep, [keep])
        asked = []

        def policy(ctx, op, *args, ops=ops, asked=asked, chosen=chosen, c=c, **kwargs):
            asked.extend([n for n, f in ops.items() if f == op])
            wanted = any(op == ops[n] for n in chosen)
            return c.CheckpointPolicy.MUST_SAVE if wanted else c.CheckpointPolicy.PREFER_RECOMPUTE

        for how in (policy, [ops[n] for n in chosen]):
            x = lib.tensor(np.random.default_rng(1).normal(size=(3, 4)), requires_grad=True)
            net.zero_grad()
            out = c.checkpoint(net, x, use_reentrant=False,
                               context_fn=lambda c=c, how=how: c.create_selective_checkpoint_contexts(how))
            (out**2).sum().backward()
            found.append([x.grad.numpy(), *[p.grad.numpy() for p in net.parameters()]])
        found.append(asked)
    assert found[2] == found[5] == ["addmm", "addmm", "relu", "addmm", "mm"]
    for other in (found[1], found[3], found[4]):
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)


def test_policies():
    for name in ("MUST_SAVE", "PREFER_SAVE", "MUST_RECOMPUTE", "PREFER_RECOMPUTE", "MUST_CPU_OFFLOAD",
                 "PREFER_CPU_OFFLOAD"):
        ours, theirs = (getattr(lib.utils.checkpoint.CheckpointPolicy, name) for lib in LIBS)
        assert ours.value == theirs.value

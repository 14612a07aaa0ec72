"""Hooks on tensors, leaves, nodes and saved tensors: when they run, in which order, on what."""
import weakref

import pytest

import ptcore as pt
from ptcore.autograd.graph import allow_mutation_on_saved_tensors, save_on_cpu, saved_tensors_hooks

pytestmark = pytest.mark.core


def leaf(*values):
    return pt.tensor(list(values), dtype=pt.float64, requires_grad=True)


def values(t):
    return t.detach().numpy().tolist()


def test_tensor_hook_replaces_the_gradient():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    assert values(x.grad) == [22, 22]


def test_tensor_hook_sees_the_sum():
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(values(g)))
    (y * 3 + y * 4).sum().backward()
    assert seen == [[7]]


def test_leaf_hook_runs_once_on_the_sum_and_before_accumulation():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append((values(g), x.grad is None)))
    x.register_hook(lambda g: g * 2)
    (x * 3 + x * 4).sum().backward()
    assert seen == [([7], True)]
    assert values(x.grad) == [14]


def test_leaf_hook_of_an_output_of_several():
    x = leaf(1.0, 3.0, 2.0)
    y = x * 1
    top, _ = y.max(0)
    seen = []
    top.register_hook(lambda g: seen.append(values(g)))
    (top * 5).backward()
    assert seen == [5]
    assert values(x.grad) == [0, 5, 0]


def test_removal():
    x = leaf(1.0)
    y = x * 2
    seen = []
    first = y.register_hook(lambda g: seen.append("first"))
    with y.register_hook(lambda g: seen.append("block")):
        y.sum().backward(retain_graph=True)
    y.sum().backward(retain_graph=True)
    first.remove()
    first.remove()
    y.sum().backward()
    assert seen == ["first", "block", "first"]


def test_hook_that_removes_itself():
    x = leaf(1.0)
    seen = []

    def hook(g):
        seen.append(1)
        handle.remove()

    handle = x.register_hook(hook)
    x.register_hook(lambda g: seen.append(2))
    for _ in range(2):
        (x * 1).sum().backward()
    assert seen == [1, 2, 2]


def test_leaf_hook_where_a_branch_has_no_gradient():
    """A rule that returns None for an input leaves out what that leads to; the leaf's other gradients still come."""
    class Nothing(pt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return None

    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append(values(g)))
    (Nothing.apply(x * 2) + x * 3).sum().backward()
    assert seen == [[3]] and values(x.grad) == [3]


def test_leaf_hook_that_another_hook_adds():
    """It is on a leaf whose gradient is still to come, beside one that is expected already."""
    x, z = leaf(1.0), leaf(2.0)
    log = []
    y = x * z
    x.register_hook(lambda g: log.append(("x", values(g))))
    last = (y * 3 + x) * x

    def add(g):
        log.append("y")
        z.register_hook(lambda g: log.append(("z", values(g))))

    y.register_hook(add)
    last.sum().backward()
    assert log == ["y", ("x", [14]), ("z", [3])]
    assert values(x.grad) == [14] and values(z.grad) == [3]


def test_leaf_hooks_of_roots_that_are_leaves():
    x, z = leaf(1.0), leaf(2.0)
    log = []
    x.register_hook(lambda g: log.append(("x", values(g))))
    z.register_hook(lambda g: log.append(("z", values(g))))
    one = pt.ones(1, dtype=pt.float64)
    pt.autograd.backward([x, z, x * 5, x], [one, one, one, one])
    assert log == [("z", [1]), ("x", [7])]
    assert values(x.grad) == [7] and values(z.grad) == [1]


def test_leaf_hook_that_is_removed_while_gradients_come():
    x, log = leaf(1.0), []
    y = x * 2
    handle = x.register_hook(lambda g: log.append(values(g)))
    y.register_hook(lambda g: handle.remove())
    (y + x).sum().backward()
    assert log == [] and values(x.grad) == [3]


def test_order_of_kinds():
    x = leaf(1.0)
    y = x * 2
    log = []
    y.register_hook(lambda g: log.append("tensor"))
    y.grad_fn.register_prehook(lambda g: log.append("pre"))
    y.grad_fn.register_hook(lambda i, o: log.append("post"))
    x.register_hook(lambda g: log.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda t: log.append("accumulated"))
    y.sum().backward()
    assert log.index("tensor") < log.index("post")
    assert log.index("pre") < log.index("post")
    assert log[-3:] == ["post", "leaf", "accumulated"]


def test_post_accumulate_hook_sees_and_clears_grad():
    x = leaf(1.0)
    seen = []

    def step(t):
        seen.append(values(t.grad))
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    for _ in range(2):
        (x * 3 + x).sum().backward()
    assert seen == [[4], [4]]
    assert x.grad is None


def test_post_accumulate_hook_needs_a_leaf():
    with pytest.raises(RuntimeError, match="leaf"):
        (leaf(1.0) * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="leaf"):
        pt.ones(1).register_post_accumulate_grad_hook(print)


def test_grad_runs_tensor_hooks_but_accumulates_nothing():
    x = leaf(1.0)
    x.register_hook(lambda g: g * 2)
    x.register_post_accumulate_grad_hook(lambda t: pytest.fail("no accumulation in grad"))
    (g,) = pt.autograd.grad((x * 3).sum(), x)
    assert values(g) == [6]
    assert x.grad is None


def test_retained_grad_comes_after_hooks():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    assert y.retains_grad
    (y * 3).sum().backward()
    assert values(y.grad) == [15]
    assert not x.retains_grad


def test_retained_grad_follows_a_write():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * 5).sum().backward()
    assert values(y.grad) == [5]
    assert values(x.grad) == [30]


def test_hook_stays_with_the_old_value_after_a_write():
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(values(g)))
    y.mul_(3)
    y.sum().backward()
    assert seen == [[3]]


def test_retain_grad_of_a_constant_is_refused():
    with pytest.raises(RuntimeError, match="retain_grad"):
        pt.ones(1).retain_grad()


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (pt.ones(3, dtype=pt.float64), RuntimeError),
        (pt.ones(1, dtype=pt.float32), RuntimeError),
        (3.0, TypeError),
        ("text", TypeError),
    ],
)
@pytest.mark.parametrize("on_leaf", [True, False])
def test_wrong_results_are_refused(result, error, on_leaf):
    x = leaf(1.0)
    y = x * 2
    (x if on_leaf else y).register_hook(lambda g: result)
    with pytest.raises(error, match="hook '<lambda>'"):
        y.sum().backward()


def test_node_hooks_see_and_replace():
    x, w = leaf(1.0), leaf(5.0)
    y = x * w
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 2,))
    seen = []

    def hook(inputs, outputs):
        seen.append(([values(g) for g in inputs], [values(g) for g in outputs]))
        return inputs[0] * 10, inputs[1]

    y.grad_fn.register_hook(hook)
    y.sum().backward()
    assert seen == [([[10], [2]], [[2]])]
    assert (values(x.grad), values(w.grad)) == ([100], [2])


def test_node_hook_must_return_as_many():
    y = leaf(1.0) * leaf(2.0)
    y.grad_fn.register_hook(lambda i, o: (i[0],))
    with pytest.raises(RuntimeError, match="2 gradients"):
        y.sum().backward()


def test_node_describes_itself():
    y = leaf(1.0) * 2
    assert y.grad_fn.name() == "MulBackward0"
    assert repr(y.grad_fn).startswith("<MulBackward0 object at 0x")
    assert y.sum().grad_fn.next_functions[0][0] is y.grad_fn


def test_saved_hooks_see_what_is_saved_and_only_in_the_block():
    x = leaf(2.0)
    packed, unpacked = [], []

    def pack(t):
        packed.append(values(t))
        return len(packed) - 1

    def unpack(k):
        unpacked.append(k)
        return pt.tensor(packed[k], dtype=pt.float64)

    with saved_tensors_hooks(pack, unpack):
        y = x * x
    z = y * y
    assert packed == [[2], [2]]
    z.sum().backward()
    assert sorted(unpacked) == [0, 1]
    assert values(x.grad) == [32]


def test_saved_hooks_are_undone_by_an_exception():
    x = leaf(2.0)
    with pytest.raises(KeyError), saved_tensors_hooks(lambda t: pytest.fail("packed"), None):
        raise KeyError
    assert (x * x).requires_grad


def test_pack_hook_that_raises():
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: 1 / 0, lambda v: v), pytest.raises(ZeroDivisionError):
        x.exp()


def test_unpack_hook_must_return_a_tensor():
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: t, lambda v: None):
        y = x.exp()
    with pytest.raises(TypeError, match="unpack_hook must return a Tensor"):
        y.sum().backward()


@pytest.mark.parametrize("is_leaf", [True, False])
@pytest.mark.parametrize("create_graph", [True, False])
def test_a_recorded_backward_takes_the_value_of_the_hook(is_leaf, create_graph):
    """The hook's value is the one of the plain backward; its history is that of the tensor that was saved."""
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: t * 5, lambda t: t):
        y = (x if is_leaf else x * 1) ** 3
    g, = pt.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert values(g) == [3 * 10**2]
    if create_graph:
        assert values(pt.autograd.grad(g.sum(), x)[0]) == [3 * 2 * 10]


def test_a_leaf_may_be_written_to_before_a_recorded_backward():
    x = leaf(2.0)
    with allow_mutation_on_saved_tensors():
        y = x ** 3
    with pt.no_grad():
        x.zero_()
    g, = pt.autograd.grad(y.sum(), x, create_graph=True)
    assert values(g) == [12]
    g.sum().backward()
    assert values(x.grad) == [12]


def test_a_hook_that_gives_the_leaf_itself():
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x ** 3
    g, = pt.autograd.grad(y.sum(), x, create_graph=True)
    assert g.grad_fn is not None and values(pt.autograd.grad(g.sum(), x)[0]) == [12]


def test_save_on_cpu():
    x = leaf(2.0)
    with save_on_cpu():
        y = (x * x).exp()
    y.sum().backward()
    assert values(x.grad) == pytest.approx([4 * 2.718281828459045**4])


# -- hooks of the node that accumulates ------------------------------------------------------------

def end_of(x):
    return x.expand_as(x).grad_fn.next_functions[0][0]


def test_hooks_of_the_node_that_accumulates():
    x, seen = pt.ones(2, requires_grad=True), []
    end = end_of(x)
    x.register_hook(lambda g: seen.append(("tensor", g.tolist())))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(("accumulated", t.grad.tolist())))
    before = end.register_prehook(lambda grads: seen.append(("before", grads[0].tolist())) or (grads[0] * 2,))
    after = end.register_hook(lambda inputs, grads: seen.append(("after", inputs, grads[0].tolist(), x.grad.tolist())))
    (x * 3).sum().backward()
    assert seen == [("tensor", [3, 3]), ("before", [3, 3]), ("accumulated", [6, 6]), ("after", (), [6, 6], [6, 6])]
    del seen[:]
    pt.autograd.grad((x * 3).sum(), x)          # nothing is accumulated
    assert seen == [("tensor", [3, 3])]
    before.remove()
    after.remove()
    del seen[:]
    x.grad = None
    (x * 3).sum().backward()
    assert seen == [("tensor", [3, 3]), ("accumulated", [3, 3])]


def test_hooks_of_a_node_that_accumulates_nothing():
    with pytest.raises(AttributeError):
        end_of(pt.ones(2)).register_hook(print)


# -- hooks on several tensors ----------------------------------------------------------------------

@pytest.mark.parametrize("mode", ["all", "any"])
def test_hooks_on_several_tensors_keep_nothing_alive(mode):
    from ptcore.autograd import engine
    watched, dead = len(engine._watched), []
    for _ in range(3):
        a = pt.ones(4, requires_grad=True) * 2
        leaf = pt.ones(4, requires_grad=True)
        pt.autograd.graph.register_multi_grad_hook([a, leaf], lambda grads: None, mode=mode)
        dead += [weakref.ref(a), weakref.ref(leaf), weakref.ref(a.grad_fn)]
        (a * leaf).sum().backward()
        del a, leaf
    assert [ref() for ref in dead] == [None] * len(dead) and len(engine._watched) == watched


def test_hooks_on_a_tensor_that_is_gone():
    """The graph remembers the tensor's place."""
    x, seen = pt.ones(2, requires_grad=True), []
    a, b = x * 2, x * 3
    handle = pt.autograd.graph.register_multi_grad_hook([a, b], seen.append)
    y = (a * b).sum()
    del a, b
    y.backward()
    assert [[g.tolist() for g in grads] for grads in seen] == [[[3, 3], [2, 2]]]
    handle.remove()

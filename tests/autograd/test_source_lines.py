"""The user's line on nodes: right, shown in errors of a backward, and it keeps nothing alive."""
import copy
import gc
import linecache
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import ptcore as pt
from ptcore import _node
from ptcore.autograd import Function, detect_anomaly, set_source_lines

pytestmark = [pytest.mark.core, pytest.mark.skipif(not _node.HAS_FRAMES, reason="this Python has no cheap frames")]


def leaf(*shape):
    return pt.ones(shape, dtype=pt.float64, requires_grad=True)


def here():
    """(file, line, function) of the caller."""
    frame = sys._getframe(1)
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


def line_of(x):
    return x.grad_fn.source_line


class Net(pt.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = pt.nn.Sequential(pt.nn.Linear(2, 3), pt.nn.Tanh())
        self.norm = pt.nn.LayerNorm(3)

    def forward(self, x):
        self.at = here(); x = self.first(x)             # noqa: E702
        self.hidden = x
        return self.norm(x)


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raise KeyError("no rule")


CALLS = {
    "unary": lambda x: x.exp(),
    "binary": lambda x: x * x,
    "number": lambda x: 3 - x,
    "rows": lambda x: x + x[0],
    "strides": lambda x: x.t() + x,
    "product": lambda x: x @ x,
    "reduction": lambda x: x.sum(0),
    "several outputs": lambda x: x.max(0)[0],
    "split": lambda x: x.split(1)[1],
    "view": lambda x: x.view(4),
    "index": lambda x: x[0, 1],
    "list": lambda x: pt.cat([x, x]),
    "composite": lambda x: pt.nn.functional.cross_entropy(x, pt.tensor([0, 1])),
    "decomposition": lambda x: pt.linalg.svd(x + pt.eye(2))[1],
    "custom": lambda x: Double.apply(x),
    "in place": lambda x: (x * 1).mul_(x),
    "assigned": lambda x: assigned(x),
    "checkpoint": lambda x: pt.utils.checkpoint.checkpoint(lambda x: x.exp(), x, use_reentrant=False),
    "einsum": lambda x: pt.einsum("ij,jk->ik", x, x),
}


def assigned(x):
    y = x * 1
    y[0] = x[1]
    return y


@pytest.mark.parametrize("name", CALLS)
def test_every_kind_of_call(name):
    file, line, function = line_of(CALLS[name](leaf(2, 2)))
    text = linecache.getline(file, line)
    assert file == __file__
    assert name in text or function == "assigned"
    assert function == ("assigned" if name == "assigned" else "<lambda>")


def test_where_python_code_runs():
    x = leaf(2)
    y = x.exp(); at = here()                            # noqa: E702
    assert line_of(y) == at
    y = [x.exp() for _ in range(2)][1]; at = here()     # noqa: E702
    assert line_of(y)[:2] == at[:2]

    def steps():
        yield x.exp(), here()
        y = (yield)
        yield (
            y.sin()
        ), here()

    g = steps()
    y, at = next(g)
    assert line_of(y) == at
    next(g)
    y, at = g.send(x)
    assert line_of(y)[2] == "steps"
    assert at[1] - 2 <= line_of(y)[1] <= at[1]
    (y,) = map(pt.exp, [x]); at = here()                # noqa: E702
    assert line_of(y) == at
    y = sorted([x, x], key=lambda t: float(t.exp().sum()))[0]
    y = max([x], key=len).exp(); at = here()            # noqa: E702
    assert line_of(y) == at


def test_modules_of_the_package_are_not_the_user():
    net = Net()
    out = net(pt.ones(4, 2))
    assert line_of(net.hidden) == net.at
    assert line_of(out)[2] == "forward"
    assert line_of(out)[1] == net.at[1] + 2
    fused = pt.nn.Sequential(pt.nn.Linear(2, 3), pt.nn.ReLU())
    y = fused(pt.ones(1, 2)); at = here()               # noqa: E702
    n = y.grad_fn
    while n is not None and hasattr(n, "source_line"):
        assert n.source_line == at
        n = n.next_functions[0][0] if n.next_functions else None


def test_in_threads():
    found = {}

    def work(k):
        y = leaf(2)
        for _ in range(100):
            y = y.exp() if k % 2 else y.sin()
        found[k] = line_of(y), here()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(a[2] == "work" and a[1] == b[1] - 1 for a, b in found.values())


def test_they_stay_off_behind_a_profile_of_memory():
    with set_source_lines(False):
        with pt.autograd.profiler.profile(profile_memory=True):
            assert leaf(2).exp().grad_fn.source_line is None
        assert leaf(2).exp().grad_fn.source_line is None
    assert leaf(2).exp().grad_fn.source_line is not None


def test_code_that_is_gone():
    """The node keeps the code; nothing is looked up by an address that something else has got."""
    x = leaf(2)
    nodes = []
    for k in range(10000):
        space = {"x": x}
        exec(compile("\n" * (k % 50) + f"def f{k}():\n    return x.exp()\n", f"<ipython-input-{k}-abc>", "exec"), space)
        y = space[f"f{k}"]()
        if k % 10 == 0:
            nodes.append((k, y.grad_fn))
        del space, y
    gc.collect()
    for k, node in nodes:
        assert node.source_line == (f"<ipython-input-{k}-abc>", k % 50 + 2, f"f{k}")


def test_names_of_files_of_any_characters():
    x = leaf(2)
    package = os.path.dirname(pt.__file__)
    for name in ("/tmp/файл.py", "x", "", package, package[:-1], package + "2/a.py", "<stdin>", "<ptcore"):
        space = {"x": x}
        exec(compile("y = x.exp()", name, "exec"), space)
        assert line_of(space["y"]) == (name, 1, "<module>")
    for name in (package + os.sep + "a.py", "<ptcore step>"):
        space = {"x": x}
        exec(compile("y = x.exp()", name, "exec"), space)
        assert line_of(space["y"])[0] == __file__


def test_a_name_that_is_more_than_a_string():
    class Name(str):
        pass

    def f(x):
        pt._errors.warn("a warning")
        return x.exp()

    f.__code__ = f.__code__.replace(co_filename=Name("here.py"))
    with pytest.warns(UserWarning, match="a warning") as caught:
        y = f(leaf(2))
    assert caught[0].filename == line_of(y)[0] == "here.py"


def test_no_reference_is_kept():
    space = {"x": leaf(2)}
    exec("def f():\n    return x.exp()", space)
    code = weakref.ref(space["f"].__code__)
    y = space["f"]()
    space.clear()
    gc.collect()
    assert code() is not None
    assert y.grad_fn.source_line[1] == 2
    del y
    assert code() is None


def test_no_frame_is_kept():
    class Big:
        pass

    def f():
        big = Big()
        seen.append(weakref.ref(big))
        return leaf(2).exp()

    seen = []
    y = f()
    assert seen[0]() is None
    assert y.grad_fn.source_line is not None


def test_off_and_on():
    x = leaf(2)
    set_source_lines(False)
    try:
        assert x.exp().grad_fn.source_line is None
        with set_source_lines(True):
            assert x.exp().grad_fn.source_line is not None
        assert x.exp().grad_fn.source_line is None
        other = []
        t = threading.Thread(target=lambda: other.append(x.exp()))
        t.start()
        t.join()
        assert other[0].grad_fn.source_line is not None
    finally:
        set_source_lines(True)
    assert x.exp().grad_fn.source_line is not None

    @set_source_lines(False)
    def without():
        return x.exp()

    assert x.exp().grad_fn.source_line is not None
    assert without().grad_fn.source_line is None
    assert x.exp().grad_fn.source_line is not None
    with pytest.raises(KeyError), set_source_lines(False):
        raise KeyError
    assert x.exp().grad_fn.source_line is not None
    with pytest.raises(TypeError, match="mode"):
        set_source_lines("x")


def notes_of(call, error):
    with pytest.raises(error) as caught:
        call()
    return "\n".join(caught.value.__notes__)


def test_errors_name_the_forward_line():
    x = leaf(2)
    y = x.exp(); at = here()                            # noqa: E702
    y += 1
    note = notes_of(y.sum().backward, RuntimeError)
    assert "ExpBackward0" in note
    assert f"{at[0]}:{at[1]} in {at[2]}: y = x.exp()" in note
    y = Double.apply(x); at = here()                    # noqa: E702
    assert f"{at[0]}:{at[1]} in {at[2]}: y = Double.apply(x)" in notes_of(y.sum().backward, KeyError)

    class Wide(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return pt.ones(3, 3)

    y = Wide.apply(x); at = here()                      # noqa: E702
    assert f"{at[0]}:{at[1]} in {at[2]}" in notes_of(y.sum().backward, RuntimeError)
    y = x * x; at = here()                              # noqa: E702
    y.sum().backward()
    assert f"{at[0]}:{at[1]} in {at[2]}" in notes_of(y.sum().backward, RuntimeError)


def test_nan_is_located_without_the_mode_in_the_forward():
    y = (leaf(1) - 1).sqrt() * 0; at = here()           # noqa: E702
    with detect_anomaly(), pytest.warns(UserWarning, match=f"{at[1]} in {at[2]}: y = "), pytest.raises(
            RuntimeError, match="nan"):
        y.sum().backward()


def test_a_view_that_was_written_through_its_base():
    """Its node is made when somebody asks; the line is that of the write."""
    base = leaf(4) * 1
    view = base[:2]
    base.mul_(2); at = here()                           # noqa: E702
    assert view.grad_fn.source_line == at


def test_second_order_and_functions():
    x = leaf(2)
    y = (x**3).sum()
    (g,) = pt.autograd.grad(y, x, create_graph=True); at = here()       # noqa: E702
    assert line_of(g) == at
    np.testing.assert_allclose(pt.func.grad(lambda x: (x**3).sum())(x.detach()).numpy(), 3)


def test_copies_and_pickles_know_nothing_of_it():
    import pickle
    x = leaf(2)
    assert copy.deepcopy(x).equal(x)
    with pytest.raises(RuntimeError):
        copy.deepcopy(x.exp())
    assert pickle.loads(pickle.dumps(x)).equal(x)


def test_in_anomaly_mode_without_cheap_frames():
    """What other Pythons have: nothing outside anomaly mode, the line and the whole stack in it."""
    x = leaf(2)
    with set_source_lines(False):
        y = x.exp()
        assert y.grad_fn.source_line is None
        y += 1
        assert "detect_anomaly" in notes_of(y.sum().backward, RuntimeError)
        with detect_anomaly():
            y = x.exp(); at = here()                    # noqa: E702
            assert line_of(y) == at
            y += 1
            with pytest.warns(UserWarning, match="Error detected in ExpBackward0"):
                assert "y = x.exp()" in notes_of(y.sum().backward, RuntimeError)


def test_the_header_knows_each_python_by_name():
    """A build for a Python that is not named compiles, and finds no frame."""
    header = os.path.join(os.path.dirname(pt.__file__), "_source_line.h")
    if not os.path.exists(header):
        pytest.skip("needs the source tree")
    with open(header) as f:
        text = f.read()
    assert "PY_VERSION_HEX < 0x030F0000" in text
    for word in ("PYPY_VERSION", "Py_GIL_DISABLED"):
        assert word in text


def test_graphs_of_the_compiler_and_of_fx_use_it():
    def f(x):
        y = x.sin()
        return y + 1

    from ptcore.fx.experimental.proxy_tensor import make_fx
    first = f.__code__.co_firstlineno
    traced = make_fx(f)(pt.ones(2))
    assert [n.meta["where"][1] for n in traced.graph.nodes if n.op == "call_function"] == [first + 1, first + 2]
    traced = pt.fx.symbolic_trace(f)
    nodes = [n for n in traced.graph.nodes if n.op.startswith("call")]
    assert [n.meta["where"] for n in nodes] == [(__file__, first + 1, "f"), (__file__, first + 2, "f")]
    assert "y = x.sin()" in nodes[0].stack_trace
    with set_source_lines(False):
        for graph in make_fx(f)(pt.ones(2)).graph, pt.fx.symbolic_trace(f).graph:
            assert all(n.stack_trace is None for n in graph.nodes)


def test_a_script_of_no_file():
    out = subprocess.run([sys.executable, "-P", "-c", "import ptcore as pt; x = pt.ones(2, requires_grad=True)\n"
                          "print(x.exp().grad_fn.source_line)"], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "('<string>', 2, '<module>')"

"""What tensors say of themselves without arguments, read in a compiled function, of tensors that differ in it."""
import warnings

import pytest

import ptcore as pt

BASE = pt.arange(12.0)
# Reads of the address or of objects that are made anew, and what writes or moves.
LEFT_OUT = {"data_ptr", "_cdata", "cuda", "__hash__", "__repr__", "__str__"}


def tensors():
    leaf = pt.ones(3).requires_grad_()
    kept = pt.ones(3).requires_grad_() * 2
    kept.retain_grad()
    named = pt.ones(3)
    named.mark = 1
    hooked = pt.ones(3).requires_grad_()
    hooked.register_hook(lambda g: None)
    written = pt.ones(3)
    written.add_(1)
    with pt.inference_mode():
        inference = pt.ones(3)
    return [pt.ones(3), BASE[0:3], BASE[4:7], BASE[:6:2], leaf, leaf * 2, leaf.detach(), kept, named, hooked, written,
            inference, pt.nn.Parameter(pt.ones(3)), pt.ones(3).share_memory_(), pt.ones(3)[None][0], leaf[:],
            pt.nn.Buffer(pt.ones(3)), pt.ones(3).data]


def plain(x):
    """A value that can be compared, or None for tensors and other objects."""
    if isinstance(x, (bool, int, float, str, pt.dtype, pt.device)) or x is None:
        return x
    if type(x) in (tuple, pt.Size) and all(isinstance(v, (bool, int)) for v in x):
        return tuple(x)
    return None


def answers(name):
    """(text of the read, the answers of all tensors), or None where the answers are no plain values."""
    for text in (f"x.{name}", f"x.{name}()"):
        found = []
        for t in tensors():
            try:
                value = eval(text, {"x": t})
            except Exception as error:
                found.append(type(error).__name__)
                continue
            if plain(value) is None and value is not None:
                break
            found.append(repr(value))
        else:
            if len(set(found)) > 1:
                return text
    return None


def readable():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = [n for n in dir(pt.Tensor) if n not in LEFT_OUT and not n.startswith("__") and not (
            n.endswith("_") or n.startswith(("set_", "_set")))]
        return sorted({text for text in map(answers, names) if text})


@pytest.mark.parametrize("backend", ["cpu", "eager"])
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", readable())
def test_what_a_tensor_says(text, backend, tmp_path, monkeypatch):
    (tmp_path / "said.py").write_text(f"def f(x, y):\n    return y + 1, {text}\n")
    space = {}
    path = str(tmp_path / "said.py")
    exec(compile((tmp_path / "said.py").read_text(), path, "exec"), space)
    f, y = space["f"], pt.ones(2)
    g = pt.compile(f, backend=backend, recompile_limit=100)
    for _ in range(2):
        for k, t in enumerate(tensors()):
            got, want = outcome(g, t, y), outcome(f, t, y)
            assert got == want, (k, got, want)


def outcome(f, *args):
    try:
        return repr(f(*args)[1])
    except Exception as error:
        return type(error).__name__


def test_there_are_such_reads():
    found = readable()
    assert {"x.is_leaf", "x.requires_grad", "x.storage_offset()", "x._version"} <= set(found), found

"""Views in place and small methods of Tensor against torch."""
import array
import subprocess
import sys

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity
LIBS = (pt, torch)

CHANGES = [
    ((1, 3, 1), lambda x: x.squeeze_()), ((1, 3, 1), lambda x: x.squeeze_(0)),
    ((1, 3, 1), lambda x: x.squeeze_((0, 2))),
    ((2, 3), lambda x: x.squeeze_(0)), ((2, 3), lambda x: x.unsqueeze_(1)), ((2, 3), lambda x: x.unsqueeze_(-1)),
    ((), lambda x: x.unsqueeze_(0)), ((2, 3), lambda x: x.t_()), ((3,), lambda x: x.t_()),
    ((2, 3, 4), lambda x: x.transpose_(0, -1)), ((2, 3, 4), lambda x: x.swapaxes_(1, 2)),
    ((2, 3, 4), lambda x: x.swapdims_(0, 1)), ((2, 3), lambda x: x.as_strided_((3,), (2,), 1)),
    ((1, 2, 3, 1, 1, 2), lambda x: x.squeeze_().transpose_(0, 2)), ((2,), lambda x: x.unsqueeze_(0).unsqueeze_(0).t_),
]


@pytest.mark.parametrize("k", range(len(CHANGES)))
def test_dims_in_place(k):
    shape, change = CHANGES[k]
    data = np.random.default_rng(0).normal(size=shape)
    results = []
    for lib in LIBS:
        x = lib.tensor(data)
        version, pointer = x._version, x.data_ptr()
        got = change(x)
        assert got is x or callable(got)
        record = [tuple(x.shape), x.stride(), x.storage_offset(), x.tolist(), x._version > version or x.ndim < 2,
                  x.is_contiguous(), x.data_ptr() >= pointer]
        leaf = lib.tensor(data, requires_grad=True)
        y = leaf * 2.0
        change(y)
        (y * y).sum().backward()
        record.append(leaf.grad.tolist())
        base = lib.tensor(np.stack([data, data]), requires_grad=True) * 1.0
        view = base[1]
        change(view)
        view.mul_(3.0)
        record += [tuple(view.shape), base.tolist(), base.requires_grad, view.requires_grad]
        results.append(record)
    assert results[0] == results[1]


def test_history():
    for lib in LIBS:
        x = lib.ones(2, 3, requires_grad=True)
        for change in (lambda t: t.t_(), lambda t: t.unsqueeze_(0), lambda t: t.squeeze_()):
            with pytest.raises(RuntimeError, match="leaf"):
                change(x)
            with pytest.raises(RuntimeError, match="leaf"):
                change(x[:1])
        with lib.no_grad():
            x.t_()
        assert tuple(x.shape) == (3, 2)
        assert x.is_leaf
        # what was saved with its dims as they were is refused
        y = lib.ones(2, 3, requires_grad=True) * 2.0
        z = (y * y).sum()
        y.t_()
        with pytest.raises(RuntimeError, match=r"in-?place"):
            z.backward()
        leaf = lib.tensor([[1.0, 2.0]], requires_grad=True)
        base = leaf * 1.0
        view = base[0]
        view.unsqueeze_(1)
        base.mul_(5.0)
        (view * view).sum().backward()
        assert leaf.grad.tolist() == [[50.0, 100.0]]
        assert tuple(view.shape) == (2, 1)


def test_errors():
    for call, kind in ((lambda lib: lib.ones(2, 2, 2).t_(), RuntimeError),
                       (lambda lib: lib.ones(2).unsqueeze_(3), IndexError),
                       (lambda lib: lib.ones(2, 2).transpose_(0, 5), IndexError),
                       (lambda lib: lib.ones(2).float_power_(2), RuntimeError),
                       (lambda lib: lib.ones(2).fill_diagonal_(1.0), RuntimeError),
                       (lambda lib: lib.ones(2, 2, 3).fill_diagonal_(1.0), RuntimeError),
                       (lambda lib: lib.ones(2).is_nonzero(), RuntimeError),
                       (lambda lib: lib.ones(2, 3).sum_to_size(3, 3), RuntimeError),
                       (lambda lib: lib.ones(2).pin_memory(), RuntimeError),
                       (lambda lib: lib.ones(2).clone(memory_format=3), TypeError),
                       (lambda lib: lib.ones(2).clone(memory_format=lib.channels_last), RuntimeError)):
        for lib in LIBS:
            with pytest.raises(kind):
                call(lib)


CALLS = [
    lambda lib: lib.tensor([1.0, 2.0], dtype=lib.float64).float_power_(2),
    lambda lib: lib.zeros(3, 4).fill_diagonal_(2.0),
    lambda lib: lib.zeros(7, 3).fill_diagonal_(2.0), lambda lib: lib.zeros(7, 3).fill_diagonal_(2.0, wrap=True),
    lambda lib: lib.zeros(2, 2, 2).fill_diagonal_(1.0), lambda lib: lib.ones(2, 3).is_same_size(lib.zeros(2, 3)),
    lambda lib: lib.ones(2, 3).is_same_size(lib.zeros(3, 2)), lambda lib: lib.ones(1).is_nonzero(),
    lambda lib: lib.ones(1).get_device(), lambda lib: lib.ones(1).is_conj(), lambda lib: lib.ones(1).is_neg(),
    lambda lib: lib.ones(1).is_shared(), lambda lib: lib.ones(1).is_sparse, lambda lib: lib.ones(1).is_quantized,
    lambda lib: lib.ones(2, 3).narrow_copy(1, 0, 2), lambda lib: lib.ones(2, 3, 4).sum_to_size(3, 1),
    lambda lib: lib.ones(2, 3).sum_to_size((2, 3)), lambda lib: lib.ones(1).is_pinned(),
    lambda lib: lib.ones(2, 3).resolve_conj(), lambda lib: lib.zeros(3).index_add_(0, lib.tensor([1, 1]), lib.ones(2)),
    lambda lib: lib.zeros(3, dtype=lib.int64).index_add_(0, lib.tensor([0, 2]), lib.tensor([4, 5]), alpha=2),
    lambda lib: lib.arange(24.0).reshape(1, 2, 3, 4).clone(memory_format=lib.channels_last).stride(),
    lambda lib: lib.arange(24.0).reshape(1, 2, 3, 4).clone(memory_format=lib.channels_last),
    lambda lib: lib.ones(2, 2).clone(memory_format=lib.contiguous_format).stride(),
    lambda lib: lib.clone(lib.ones(2, 2), memory_format=lib.preserve_format),
    lambda lib: lib.ones(2, 2, dtype=lib.complex64).var(),
]


@pytest.mark.parametrize("k", range(len(CALLS)))
def test_small_methods(k):
    mine, theirs = [CALLS[k](lib) for lib in LIBS]
    if hasattr(theirs, "tolist"):
        assert str(mine.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
        mine, theirs = mine.tolist(), theirs.tolist()
    assert mine == theirs


def test_clone_in_a_format_copies():
    x = pt.arange(24.0).reshape(1, 2, 3, 4).contiguous(memory_format=pt.channels_last)
    y = x.clone(memory_format=pt.channels_last)
    assert y.data_ptr() != x.data_ptr()
    assert y.stride() == x.stride()
    leaf = pt.ones(1, 2, 3, 4, requires_grad=True)
    leaf.clone(memory_format=pt.channels_last).mul(3).sum().backward()
    assert float(leaf.grad.sum()) == 72


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_moments_of_complex(name, dtype):
    rng = np.random.default_rng(0)
    data = (rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))).astype(dtype)
    for options in ({}, {"dim": 1}, {"dim": (0, 1), "correction": 0, "keepdim": True}, {"dim": 0, "unbiased": False}):
        results = []
        for lib in LIBS:
            x = lib.tensor(data, requires_grad=True)
            out = getattr(lib, name)(x, **options)
            outs = out if isinstance(out, tuple) else (out,)
            sum([o.abs().sum() for o in outs]).backward()
            results.append([o.detach().numpy() for o in outs] + [x.grad.numpy()])
        for mine, theirs in zip(*results, strict=True):
            assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
            np.testing.assert_allclose(mine, theirs, rtol=1e-4 if dtype == "complex64" else 1e-12, atol=1e-7)


ANTIALIASED = [
    ("bilinear", (3, 4), False, None), ("bilinear", (3, 4), True, None), ("bicubic", (3, 4), False, None),
    ("bicubic", (5, 3), True, None), ("bilinear", (20, 25), False, None), ("bicubic", (20, 25), False, None),
    ("bilinear", None, False, 0.4), ("bicubic", None, None, (0.3, 0.7)), ("bilinear", None, False, 1.7),
    ("bicubic", (1, 1), False, None), ("bicubic", (1, 1), True, None), ("bilinear", (9, 11), False, None),
]


@pytest.mark.parametrize(("mode", "size", "align", "scale"), ANTIALIASED, ids=str)
def test_antialias(mode, size, align, scale):
    data = np.random.default_rng(0).normal(size=(2, 3, 9, 11))
    results = []
    for lib in LIBS:
        x = lib.tensor(data, requires_grad=True)
        out = lib.nn.functional.interpolate(x, size, scale, mode, align, antialias=True)
        (out**2).sum().backward()
        results.append([out.detach().numpy(), x.grad.numpy()])
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


def test_antialias_errors():
    for lib in LIBS:
        f = lib.nn.functional.interpolate
        for args in ((lib.ones(1, 1, 4), 2, None, "linear"), (lib.ones(1, 1, 4, 4), 2, None, "nearest")):
            with pytest.raises(ValueError, match=r"[Aa]nti-?alias"):
                f(*args, antialias=True)


def test_methods_read_late():
    """A subclass that overrides one reaches the method itself, before and after its file is read."""
    script = ("import ptcore as pt, inspect, sys\n"
              "class Mine(pt.Tensor):\n"
              "    def is_nonzero(self): return super().is_nonzero() + 1\n"
              "assert 'ptcore._ops.compare.functions' not in sys.modules\n"
              "x = pt.ones(1).as_subclass(Mine)\n"
              "assert x.is_nonzero() == x.is_nonzero() == 2\n"
              "assert str(inspect.signature(pt.Tensor.apply_)) == '(self, callable)'\n"
              "assert inspect.isroutine(vars(pt.Tensor)['apply_']) and not pt.ones(1).is_conj()\n")
    subprocess.run([sys.executable, "-P", "-c", script], check=True)


# -- numbers beside bools and integers -----------------------------------------------------------------------------

def said(f, lib):
    """The result with its dtype, or the class of the error."""
    try:
        x = f(lib)
    except Exception as e:
        return next(c.__name__ for c in (RuntimeError, TypeError, ValueError) if isinstance(e, c))
    return x.tolist(), str(x.dtype).split(".")[1]


def bools(lib):
    return lib.tensor([True, False, True]), lib.tensor([True, True, False])


@pytest.mark.parametrize("alpha", [True, False, 1, 0, 2, 1.0, 1.5, 1j])
def test_alpha_of_bools(alpha):
    for call in (lambda lib, a, b: lib.add(a, b, alpha=alpha), lambda lib, a, b: a.clone().add_(b, alpha=alpha),
                 lambda lib, a, b: a.add(True, alpha=alpha), lambda lib, a, b: a.add(2, alpha=alpha),
                 lambda lib, a, b: lib.add(a, b, alpha=alpha, out=lib.zeros(3)),
                 lambda lib, a, b: lib.add(a.long(), b, alpha=alpha), lambda lib, a, b: a.float().add(b, alpha=alpha),
                 lambda lib, a, b: lib.add(a, b.half(), alpha=alpha), lambda lib, a, b: lib.sub(a, b, alpha=alpha),
                 lambda lib, a, b: lib.sub(a.long(), 3, alpha=alpha), lambda lib, a, b: lib.rsub(a, b, alpha=alpha),
                 lambda lib, a, b: lib.rsub(a.float(), 2, alpha=alpha), lambda lib, a, b: lib.rsub(a, 2, alpha=alpha),
                 lambda lib, a, b: a[:, None].add(b, alpha=alpha)):
        assert said(lambda lib, call=call: call(lib, *bools(lib)), pt) == said(
            lambda lib, call=call: call(lib, *bools(lib)), torch)


def test_power_of_bools():
    for call in (lambda lib, a, b: a ** True, lambda lib, a, b: a ** False, lambda lib, a, b: lib.pow(a, True),
                 lambda lib, a, b: a.clone().pow_(True), lambda lib, a, b: a.clone().pow_(False),
                 lambda lib, a, b: lib.pow(a, False, out=lib.zeros(3)), lambda lib, a, b: a ** b,
                 lambda lib, a, b: True ** b, lambda lib, a, b: a.pow(b), lambda lib, a, b: a.clone().pow_(b),
                 lambda lib, a, b: a ** 2, lambda lib, a, b: a ** 0, lambda lib, a, b: a ** -1,
                 lambda lib, a, b: 2 ** b, lambda lib, a, b: a ** 0.5, lambda lib, a, b: 2.5 ** a,
                 lambda lib, a, b: a ** b.long(), lambda lib, a, b: a.long() ** b, lambda lib, a, b: a[0] ** True,
                 lambda lib, a, b: a[::2] ** True, lambda lib, a, b: a.expand(2, 3) ** False):
        assert said(lambda lib, call=call: call(lib, *bools(lib)), pt) == said(
            lambda lib, call=call: call(lib, *bools(lib)), torch)
    x = pt.empty(3, dtype=pt.bool, device="meta") ** True
    assert x.is_meta and x.dtype is pt.bool


@pytest.mark.parametrize("threshold", [(0.5, 2), (1.7, 2.9), (-1.5, 7), (-1.5, -7.9), (np.nan, 1), (np.inf, 1),
                                       (1, np.inf), (True, False), (1e30, 1), (300, 1), (1, 2), (1j, 1), (1, 1j)])
@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8", "bool", "float32", "float16", "complex64"])
def test_threshold_of_numbers_that_are_none(threshold, dtype):
    data = np.arange(7 if dtype == "uint8" else 4) - (0 if dtype == "uint8" else 3)
    for inplace in (False, True):
        def call(lib, inplace=inplace):
            return lib.nn.functional.threshold(lib.tensor(data).to(getattr(lib, dtype)), *threshold, inplace)
        assert said(call, pt) == said(call, torch)


def test_xlog1py_with_numbers():
    data = [0.0, 1.0, 2.5, float("nan")]
    for args in ((None, 2), (2, None), (None, 2.5), (0, None), (None, True), (None, -1), (None, float("nan")),
                 (float("nan"), None), (2, 3)):
        for dtype in ("float64", "float32", "int64", "bool", "float16"):
            results = []
            for lib in LIBS:
                def call(lib, args=args, dtype=dtype):
                    x = lib.tensor([1, 0, 2, 1] if dtype in ("int64", "bool") else data).to(getattr(lib, dtype))
                    return lib.special.xlog1py(*[x if a is None else a for a in args])
                results.append(said(call, lib))
            if isinstance(results[1], str):
                assert results[0] == results[1]
            else:
                assert results[0][1] == results[1][1]
                np.testing.assert_allclose(results[0][0], results[1][0], rtol={"float64": 1e-15, "float16": 2e-3}.get(
                    dtype, 3e-7))
    grads = []
    for lib in LIBS:
        x, y = [lib.tensor([0.5, 2.0], dtype=lib.float64, requires_grad=True) for _ in range(2)]
        (lib.special.xlog1py(x, 3).sum() + lib.special.xlog1py(0.5, y).sum()).backward()
        grads.append([x.grad.tolist(), y.grad.tolist()])
    np.testing.assert_allclose(*grads, rtol=1e-15)


def test_hash():
    rng = np.random.default_rng(0)
    for dtype in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
                  "complex64"):
        for shape in ((), (1,), (5,), (3, 4), (2, 3, 7), (0, 3)):
            data = rng.normal(size=shape) * 50
            for args in ((), (0,), (-1,), ((0, 1),), (None,), ((),), (3,), *[((0, 0),)] * (0 not in shape)):
                for keepdim in (False, True):
                    def call(lib, data=data, dtype=dtype, args=args, keepdim=keepdim):
                        x = lib.tensor(data).to(getattr(lib, dtype))
                        return lib.hash_tensor(x, *args, **({"keepdim": keepdim} if args else {}))
                    if dtype == "complex64":
                        if args == ():
                            with pytest.raises(NotImplementedError):
                                call(pt)
                        continue
                    mine, theirs = [call_or_class(call, lib) for lib in LIBS]
                    assert mine == theirs, (dtype, shape, args, keepdim)
    for lib in LIBS:
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        assert not x.hash_tensor().requires_grad
        assert lib.hash_tensor(x.detach(), 0, out=lib.empty((), dtype=lib.uint64)).dtype is lib.uint64
        with pytest.raises(RuntimeError):
            lib.hash_tensor(x, mode=1)
        with pytest.raises(RuntimeError):
            lib.hash_tensor(x.detach(), 0, out=lib.empty(()))


def call_or_class(call, lib):
    try:
        x = call(lib)
    except Exception as e:
        return next(c.__name__ for c in (IndexError, RuntimeError, TypeError) if isinstance(e, c))
    return tuple(x.shape), x.dtype == lib.uint64, x.tolist()


# -- buffers --------------------------------------------------------------------------------------------------------

@pytest.mark.filterwarnings("ignore:The given buffer is not writable")
def test_asarray_of_buffers():
    numbers = array.array("i", [1, 2, 3, 4])
    objects = (b"\0\0\x80\x3f\0\0\0\x40", bytearray(b"\1\2\3\4"), numbers, memoryview(numbers), b"", b"abc",
               memoryview(np.arange(4.0).reshape(2, 2)), memoryview(np.arange(4.0))[::2], np.arange(3), [1, 2])
    for data in objects:
        for options in ({}, {"dtype": "uint8"}, {"dtype": "int32"}, {"copy": True}, {"copy": False},
                        {"dtype": "float64", "copy": False}, {"dtype": "float64", "requires_grad": True}):
            def call(lib, data=data, options=options):
                given = {k: getattr(lib, v) if k == "dtype" else v for k, v in options.items()}
                return lib.asarray(data, **given)
            assert said(call, pt) == said(call, torch), (data, options)
    for lib in LIBS:
        data = bytearray(b"\1\2\3\4")
        x, y = lib.asarray(data, dtype=lib.uint8), lib.asarray(data, dtype=lib.uint8, copy=True)
        x[0] = 9
        data[1] = 7
        assert data == b"\x09\7\3\4" and x.tolist() == [9, 7, 3, 4] and y.tolist() == [1, 2, 3, 4]

"""float8 and complex32 beside torch: which rows run and what they give, casts, promotion, fills, printing, exchange."""
import io
import itertools
import math

import numpy as np
import pytest

import ptcore as pt
from ptcore import _dtype

torch = pytest.importorskip("torch")

from _cases import cases  # noqa: E402
from test_parity_ops import COMPARED, both, call_torch, counterpart, has_values, ours_of, results  # noqa: E402

pytestmark = pytest.mark.parity
FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
STORED = (*FLOAT8, "complex32")
OTHERS = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128")
FEW_CASES = 3


def torchs(x):
    """A ptcore tensor as one of torch, by its bytes."""
    if x.dtype.name not in STORED:
        return torch.from_dlpack(x.contiguous())
    bits = x.contiguous().view(pt.int32 if x.dtype is pt.complex32 else pt.uint8)
    return torch.from_numpy(bits.numpy().copy()).view(getattr(torch, x.dtype.name))


def numbers(x):
    """The elements of a tensor of either library as complex128."""
    x = x.detach()
    if isinstance(x, torch.Tensor):
        return x.resolve_conj().resolve_neg().to(torch.complex128).numpy()
    return x.to(pt.complex128).numpy()


def converted(v, m, name):
    """An argument with its float32 tensors, and float32 itself, in a stored dtype."""
    if isinstance(v, m.Tensor):
        return v.to(getattr(m, name)) if v.dtype is m.float32 else v
    if type(v) in (list, tuple):
        return type(v)(converted(x, m, name) for x in v)
    return getattr(m, name) if v is m.float32 else v


def outcome(f, *args):
    try:
        return f(*args)
    except Exception as e:
        return e


# Rows that run here and not in torch, for some of the types: they are made of rows that do.
MORE = set("""addr channel_shuffle conv_tbc count_nonzero div einsum embedding_bag equal gradient hash_tensor index_put
    ldexp masked_fill masked_scatter mul nan_to_num nonzero_static normalize pad pixel_shuffle pixel_unshuffle renorm
    softsign unique_consecutive""".split())
# Rows that torch makes of others than are used here: of addmm, of means of the parts, and of copies alone.
FEWER = {"conv_tbc", "addbmm", "std_mean", "var_mean"}


def outcomes(row, case, name):
    (args, keywords), forms = both(row, case, "float32", "contiguous")
    ours = outcome(lambda: ours_of(row)(*converted(list(args), pt, name),
                                        **{k: converted(v, pt, name) for k, v in keywords.items()}))
    forms = [(converted(p, torch, name), {k: converted(v, torch, name) for k, v in kw.items()}) for p, kw in forms]
    return ours, outcome(lambda: call_torch(counterpart(row), forms))


def differs(ours, theirs):
    """What is wrong with results beside torch's, or None."""
    for a, b in zip(results(ours), results(theirs)):
        if not isinstance(b, torch.Tensor):
            if isinstance(b, (bool, int, float)) and a != b:
                return "value"
            continue
        if a.dtype.name != str(b.dtype).removeprefix("torch."):
            return f"dtype {a.dtype}, torch {b.dtype}"
        if tuple(a.shape) != tuple(b.shape):
            return f"shape {a.shape}, torch {b.shape}"
        x, y = numbers(a), numbers(b)
        limit = {"complex32": 4e-3, "float16": 4e-3, "float64": 1e-12, "complex128": 1e-12}.get(a.dtype.name, 0)
        if not np.allclose(x, y, rtol=limit, atol=limit, equal_nan=True):
            return f"values {a}, torch {b}"
    return None


@pytest.mark.parametrize("name", STORED)
def test_rows(name):
    wrong, run, more, fewer, partly = [], 0, set(), set(), set()
    for row in COMPARED:
        if "float32" not in row.types or not has_values(row, "float32"):
            continue
        for case in cases(row)[:FEW_CASES]:
            try:
                ours, theirs = outcomes(row, case, name)
            except NotImplementedError:             # a layout that torch lacks
                continue
            if isinstance(theirs, Exception):
                partly.add(row.name)                # of other arguments torch has nothing to do, as of no elements
                if not isinstance(ours, Exception):
                    more.add(row.name)
                elif isinstance(theirs, NotImplementedError) and not isinstance(ours, (RuntimeError, TypeError)):
                    wrong.append(f"{row.name}: {ours!r}, torch {theirs!r}")
            elif isinstance(ours, Exception):
                fewer.add(row.name)
            else:
                problem = differs(ours, theirs)
                run += problem is None
                if problem:
                    wrong.append(f"{row.name}: {problem}")
    assert not wrong, "\n".join(wrong)
    assert sorted(more - MORE) == [], "run here alone"
    assert sorted(fewer - partly - FEWER) == [], "run in torch alone"
    assert run > 200


def special(name):
    """Numbers of a dtype, as a torch tensor."""
    dtype = getattr(torch, name)
    if name in STORED and name != "complex32":
        return torch.arange(256, dtype=torch.uint8).view(dtype)
    if dtype.is_floating_point or dtype.is_complex:
        rng = np.random.default_rng(0)
        drawn = rng.integers(0, 1 << 64, 3000, dtype=np.uint64).view(np.float64)
        near = np.float32(rng.standard_normal(3000) * 10 ** rng.uniform(-8, 8, 3000)).astype(np.float64)
        edge = [0.0, -0.0, math.inf, -math.inf, 448, 464, 464.1, 480, 57344, 61440, 61439, 65536, 240, 248, 247.9, 2.0**-10,
                2.0**-11, 2.0**-17, 2.0**-18, 1e-45, 1e300, -1e300, 1 + 2.0**-4 + 2.0**-40, 65519.9, 65520]
        x = torch.from_numpy(np.concatenate([drawn[~np.isnan(drawn)], near, edge]))
        return (torch.complex(x, x.flip(0)) if dtype.is_complex else x).to(dtype)
    return torch.arange(-3, 120).to(dtype)


def from_torch(x):
    if str(x.dtype).removeprefix("torch.") in STORED:
        bits = x.view(torch.int32 if x.dtype is torch.complex32 else torch.uint8)
        return pt.from_numpy(bits.numpy().copy()).view(getattr(pt, str(x.dtype).removeprefix("torch.")))
    return pt.from_dlpack(x)


def same(ours, theirs):
    a, b = numbers(ours), numbers(theirs)
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=True) and np.array_equal(
        np.signbit(a.real[~np.isnan(a.real)]), np.signbit(b.real[~np.isnan(b.real)]))


@pytest.mark.parametrize(("a", "b"), [p for p in itertools.product((*OTHERS, *STORED), repeat=2)
                                      if p[0] in STORED or p[1] in STORED])
def test_casts(a, b):
    x = special(a)
    if b[:3] in ("int", "uin"):             # numbers that the integers hold: others are undefined
        real = numbers(x).real
        x = x[torch.from_numpy((real >= 0) & (real <= 100))]
    ours, theirs = from_torch(x).to(getattr(pt, b)), x.to(getattr(torch, b))
    assert len(x) > 10 and same(ours, theirs)
    if b in FLOAT8:
        assert ours.view(pt.uint8).tolist() == theirs.view(torch.uint8).tolist()


NUMBERS = (0.0, -0.0, 1e9, math.inf, -math.inf, math.nan, -1.0, 448.0, 449.0, 240.0, 241.0, 57344.0, 57345.0, 61000.0,
           1e-50, 1e39, 5, -5, True, 500, 1 + 1j, 1e9j)


def written(m, x, key, value):
    x[key] = value
    return x


MADE = {
    "full": lambda m, dtype, v: m.full((2,), v, dtype=dtype), "full of one": lambda m, dtype, v: m.full((1,), v, dtype=dtype),
    "fill_": lambda m, dtype, v: m.ones(3, dtype=dtype).fill_(v),
    "fill_ of one": lambda m, dtype, v: m.ones(1, dtype=dtype).fill_(v),
    "x[0]": lambda m, dtype, v: written(m, m.ones(2, dtype=dtype), 0, v),
    "tensor": lambda m, dtype, v: m.tensor([v], dtype=dtype),
    "where": lambda m, dtype, v: m.where(m.tensor([False, True]), m.ones(2, dtype=dtype), v),
    "eq": lambda m, dtype, v: m.ones(2, dtype=dtype) == v, "ne": lambda m, dtype, v: m.ones(2, dtype=dtype) != v}
# Numbers beside complex32, in arithmetic.
SUMS = {"div": lambda m, x, v: v / x.real, "add": lambda m, x, v: x + v, "sub": lambda m, x, v: v - x, "mul": lambda m, x, v: x * v,
        "masked_fill": lambda m, x, v: x.masked_fill(m.tensor([True, False, True]), v),
        "0-d": lambda m, x, v: x * m.tensor(v)}


@pytest.mark.parametrize("how", SUMS)
def test_numbers_beside_complex32(how):
    infinite = [70000.0, math.inf] if how in ("mul", "masked_fill", "0-d") else []      # a sum is x + 1 * y in torch
    for value in (0.1, -3, 2.5 + 0.3j, *infinite):
        ours, theirs = (outcome(SUMS[how], m, m.tensor([1 + 1j, 0.3 - 2j, 30000 + 5j], dtype=m.complex32), value)
                        for m in (pt, torch))
        if isinstance(theirs, Exception):
            assert isinstance(ours, type(theirs)), (value, ours, theirs)
        else:
            assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.") and np.allclose(numbers(ours), numbers(theirs), rtol=2e-3, equal_nan=True), (
                value, ours, theirs)


@pytest.mark.parametrize("how", MADE)
@pytest.mark.parametrize("name", STORED)
def test_numbers(name, how):
    for value in NUMBERS:
        ours = outcome(MADE[how], pt, getattr(pt, name), value)
        theirs = outcome(MADE[how], torch, getattr(torch, name), value)
        if isinstance(theirs, Exception):
            assert isinstance(ours, (type(theirs), TypeError)), (value, ours, theirs)
        else:
            assert not isinstance(ours, Exception) and same(ours, theirs), (value, ours, theirs)


def test_promotion():
    kinds = (*OTHERS, *STORED)
    for a, b in itertools.product(kinds, repeat=2):
        if a not in STORED and b not in STORED:
            continue
        assert pt.can_cast(getattr(pt, a), getattr(pt, b)) == torch.can_cast(getattr(torch, a), getattr(torch, b))
        theirs = outcome(torch.promote_types, getattr(torch, a), getattr(torch, b))
        ours = outcome(pt.promote_types, getattr(pt, a), getattr(pt, b))
        if isinstance(theirs, Exception):
            if "uint16, uint32, uint64" not in str(theirs):     # promoted as other integers are here
                assert isinstance(ours, RuntimeError) and str(ours) in str(theirs)
        else:
            assert ours.name == str(theirs).removeprefix("torch.")
        for x, y in ((1, ()), ((), 1)):                         # with dims beside without
            ours, theirs = (outcome(m.result_type, m.ones(x, dtype=getattr(m, a)), m.ones(y, dtype=getattr(m, b)))
                            for m in (pt, torch))
            if not isinstance(theirs, Exception):
                assert ours.name == str(theirs).removeprefix("torch."), (a, b, x)
            elif "uint16, uint32, uint64" not in str(theirs):
                assert isinstance(ours, RuntimeError), (a, b, x)
    for name in ("float16", "bfloat16", "float32", *STORED):
        for number in (True, 2, 2.5, 1j):
            ours, theirs = (outcome(m.result_type, m.ones(1, dtype=getattr(m, name)), number) for m in (pt, torch))
            assert str(ours).rpartition(".")[2] == str(theirs).rpartition(".")[2]


@pytest.mark.parametrize("name", STORED)
def test_limits_and_words(name):
    ours, theirs = getattr(pt, name), getattr(torch, name)
    assert repr(pt.finfo(ours)) == repr(torch.finfo(theirs))
    for field in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution"):
        assert getattr(pt.finfo(ours), field) == getattr(torch.finfo(theirs), field)
    for field in ("is_floating_point", "is_complex", "is_signed", "itemsize"):
        assert getattr(ours, field) == getattr(theirs, field)
    assert pt.zeros(1, dtype=ours).type().replace("ptcore", "torch") == torch.zeros(1, dtype=theirs).type()
    assert pt.chalf is pt.complex32 and torch.chalf is torch.complex32
    assert pt.ones(2).chalf().dtype.name == str(torch.ones(2).chalf().dtype).removeprefix("torch.")
    assert pt.float16.to_complex().name == str(torch.float16.to_complex()).removeprefix("torch.")


@pytest.fixture
def printed_as_torchs():
    """The package's name is part of the lines' length."""
    _dtype.show_as("torch")
    yield
    _dtype.show_as("ptcore")


@pytest.mark.parametrize("name", STORED)
def test_printing(name, printed_as_torchs):
    rng = np.random.default_rng(0)
    for shape in ((), (3,), (0,), (40,), (4, 5), (2000,), (3, 2, 2), (60, 70)):
        for scale in (1, 100, 1e-3, 1e4):
            values = rng.standard_normal(shape) * scale
            ours = pt.tensor(values, dtype=pt.float64).to(getattr(pt, name))
            theirs = torch.tensor(values, dtype=torch.float64).to(getattr(torch, name))
            assert repr(ours) == repr(theirs)
    values = [0.0, 1.5] if name == "float8_e8m0fnu" else [math.nan, math.inf, -math.inf, 0.0, 1.5]      # NaN is finite there
    assert repr(pt.tensor(values, dtype=getattr(pt, name))) == repr(torch.tensor(values, dtype=getattr(torch, name)))


@pytest.mark.parametrize("name", FLOAT8[:4])
def test_products(name):
    rng = np.random.default_rng(1)
    for m, k, n in ((1, 1, 1), (5, 40, 7), (33, 3, 20), (2, 300, 2)):
        a, b = (torch.from_numpy(rng.standard_normal(s).astype(np.float32)).to(getattr(torch, name))
                for s in ((m, k), (k, n)))
        ours, theirs = (from_torch(a) @ from_torch(b)).view(pt.uint8), (a @ b).view(torch.uint8)
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("name", STORED)
def test_dlpack(name):
    x = pt.tensor([[1.0, 2.0, 4.0], [0.5, 8.0, 16.0]], dtype=getattr(pt, name))
    for made in (x, x.t(), x[:, 1:]):
        there = torch.from_dlpack(made)
        assert there.dtype is getattr(torch, name) and same(made, there) and there.data_ptr() == made.data_ptr()
        back = pt.from_dlpack(there)
        assert back.dtype is x.dtype and back.tolist() == made.tolist() and back.data_ptr() == made.data_ptr()


@pytest.mark.parametrize("name", STORED)
def test_files_of_torch(name, tmp_path):
    ours = {"a": pt.tensor([[1.0, 2.0, 4.0], [0.5, 8.0, 16.0]], dtype=getattr(pt, name)), "d": getattr(pt, name)}
    ours["b"] = ours["a"][:, 1:]
    theirs = {k: torchs(v) if isinstance(v, pt.Tensor) else getattr(torch, name) for k, v in ours.items()}
    file = io.BytesIO()
    torch.save(theirs, file)
    file.seek(0)
    loaded = pt.load(file)
    assert loaded["d"] is ours["d"] and loaded["a"].dtype is ours["d"] and loaded["a"].tolist() == ours["a"].tolist()
    assert loaded["b"].tolist() == ours["b"].tolist()
    pt.save(ours, tmp_path / "x.pt")
    loaded = torch.load(tmp_path / "x.pt")
    assert loaded["d"] is theirs["d"] and loaded["a"].dtype is theirs["d"] and same(ours["a"], loaded["a"])
    assert same(ours["b"], loaded["b"]) and loaded["b"].data_ptr() == loaded["a"].data_ptr() + ours["a"].element_size()


@pytest.mark.parametrize("name", [n for n in FLOAT8 if n != "float8_e8m0fnu"])
def test_safetensors(name, tmp_path):
    from safetensors.torch import load_file, save_file

    x = pt.tensor([[1.0, 2.0, 4.0], [0.5, 8.0, 16.0]], dtype=getattr(pt, name))
    save_file({"a": torchs(x)}, tmp_path / "theirs.safetensors")
    assert pt.load(tmp_path / "theirs.safetensors")["a"].dtype is x.dtype
    assert pt.load(tmp_path / "theirs.safetensors")["a"].tolist() == x.tolist()
    pt.save({"a": x}, tmp_path / "ours.safetensors")
    loaded = load_file(tmp_path / "ours.safetensors")["a"]
    assert loaded.dtype is getattr(torch, name) and same(x, loaded)


@pytest.mark.parametrize("name", STORED)
def test_gradients(name):
    found = []
    for m in (pt, torch):
        x = m.tensor([1.0, 2.0, 0.3, 500.0], requires_grad=True)
        y = x.to(getattr(m, name))
        z = y.to(m.complex64 if name == "complex32" else m.float32)
        (z * m.tensor([1.0, 2.0, 3.0, 4.0])).real.sum().backward()
        found.append((y.grad_fn.name(), y.requires_grad, x.grad.tolist(), str(x.grad.dtype).rpartition(".")[2]))
        leaf = m.ones(3, dtype=getattr(m, name), requires_grad=True)
        leaf.to(m.float32 if name in FLOAT8 else m.complex64).real.sum().backward()
        found[-1] += (str(leaf.grad.dtype).rpartition(".")[2], numbers(leaf.grad).tolist())
    assert found[0] == found[1]


def test_least_powers_are_rounded_to_the_nearest():
    """Between 2**-127 and the middle to 2**-126 PyTorch gives 2**-126, which is not the nearest; beyond it both do."""
    least = 2.0 ** -127
    values = np.array([0, least / 2, least, least * 1.25, least * 1.5, least * 1.75, least * 2, least * 3], np.float32)
    ours = pt.from_numpy(values).to(pt.float8_e8m0fnu).view(pt.uint8).tolist()
    theirs = torch.from_numpy(values).to(torch.float8_e8m0fnu).view(torch.uint8).tolist()
    assert ours == [0, 0, 0, 0, 1, 1, 1, 2]
    assert [k for k, (a, b) in enumerate(zip(ours, theirs)) if a != b] == [3]

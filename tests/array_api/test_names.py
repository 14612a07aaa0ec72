"""Names and signatures of the standard, and what the namespace says of itself."""
import ast
import inspect

import numpy as np
import pytest
from _array_api_standard import ATTRIBUTES, CONSTANTS, DTYPES, SIGNATURES

import ptcore as pt
from ptcore import array_api as xp

pytestmark = pytest.mark.core
ALL = [(part, line) for part, lines in SIGNATURES.items() for line in lines if part != "fft"]


def owner_of(part):
    if part == "methods":
        return xp.ones((3, 3))
    if part == "linalg":
        return xp.linalg
    return xp.__array_namespace_info__() if part == "__array_namespace_info__()" else xp


def check_signature(function, line):
    """Positional-or-keyword parameters have the standard's name and place, keyword-only ones its name and default."""
    wanted = ast.parse(f"def {line}: ...").body[0].args
    found = list(inspect.signature(function).parameters.values())
    place = len(wanted.posonlyargs)
    for k, name in enumerate([a.arg for a in wanted.args]):
        assert found[place + k].name == name
        assert found[place + k].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    by_name = {p.name: p for p in found}
    for argument, default in zip(wanted.kwonlyargs, wanted.kw_defaults):
        p = by_name[argument.arg]
        assert p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
        assert p.default == ast.literal_eval(default) or (argument.arg, p.default) == ("keepdims", None)
    required = [p for p in found if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    positional = wanted.posonlyargs + wanted.args
    assert len(required) <= len(positional) - len(wanted.defaults)
    for p in found:
        assert p.kind is not p.VAR_KEYWORD


@pytest.mark.parametrize("part, line", [a for a in ALL if a[0] != "methods"], ids=lambda x: x.partition("(")[0])
def test_function(part, line):
    name = line.partition("(")[0]
    owner = xp if name == "__array_namespace_info__" else owner_of(part)
    check_signature(getattr(owner, name), line)
    assert getattr(owner, name).__doc__


@pytest.mark.parametrize("line", SIGNATURES["methods"], ids=lambda x: x.partition("(")[0])
def test_method(line):
    name = line.partition("(")[0]
    method = getattr(pt.Tensor, name)
    if name in ("__array_namespace__", "to_device", "__dlpack__"):
        check_signature(method.__get__(xp.ones(1)), line.replace("self, /, *, ", "*, ").replace("self, ", ""))
    else:
        assert callable(method)


def test_attributes_and_constants():
    x = xp.zeros((2, 3))
    for name in ATTRIBUTES:
        assert hasattr(x, name)
    for name, value in CONSTANTS.items():
        assert getattr(xp, name) == value or name == "nan"
    assert np.isnan(xp.nan)
    for name in DTYPES:
        assert getattr(xp, name) is getattr(pt, name)
    assert xp.__array_api_version__ == "2025.12"
    assert set(xp.__all__) <= set(dir(xp))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        xp.nothing  # noqa: B018


def test_one_hashable_namespace():
    """SciPy puts the namespaces of all arguments into a set, of which one must remain."""
    x, y = pt.tensor([1]), xp.asarray([1.0])
    assert {x.__array_namespace__(), y.__array_namespace__(api_version="2021.12"), xp} == {xp}
    assert xp.__name__ == "ptcore.array_api"
    assert x.__array_namespace__(api_version=None) is xp
    with pytest.raises(ValueError, match=r"api_version must be one of .* got '1999.12'"):
        x.__array_namespace__(api_version="1999.12")
    with pytest.raises(TypeError):
        x.__array_namespace__("2025.12")


def test_functions_with_the_semantics_of_the_standard_are_ptcores():
    for name in ("abs", "add", "sin", "maximum", "isfinite", "argmax", "pow", "logical_not"):
        assert getattr(xp, name) is getattr(pt, name)
    assert xp.equal is pt.eq
    assert xp.bitwise_invert is pt.bitwise_not
    assert xp.linalg.inv is pt.linalg.inv


def test_info():
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.default_device() in info.devices()
    assert isinstance(info.devices(), tuple)
    assert info.devices() + [None] == (*info.devices(), None)           # as SciPy 1.17 writes it
    assert [None] + info.devices() == (None, *info.devices())
    defaults = info.default_dtypes(device="cpu")
    assert defaults == {"real floating": pt.float32, "complex floating": pt.complex64, "integral": pt.int64,
                        "indexing": pt.int64}
    assert set(info.dtypes()) == set(DTYPES)
    assert set(info.dtypes(kind="real floating", device=info.devices()[0])) == {"float32", "float64"}
    assert set(info.dtypes(kind=("bool", "signed integer"))) == {"bool", "int8", "int16", "int32", "int64"}
    assert info.dtypes(kind="integral") == info.dtypes(kind=("signed integer", "unsigned integer"))
    with pytest.raises(ValueError, match="kind must be one of"):
        info.dtypes(kind="float")
    with pytest.raises(RuntimeError, match="type must be one of"):
        info.dtypes(device="nowhere")


def test_default_dtypes_follow(monkeypatch):
    pt.set_default_dtype(pt.float64)
    try:
        defaults = xp.__array_namespace_info__().default_dtypes()
        assert (defaults["real floating"], defaults["complex floating"]) == (pt.float64, pt.complex128)
        assert xp.zeros(1).dtype is xp.asarray(1.0).dtype is xp.linspace(0, 1, 2).dtype is pt.float64
    finally:
        pt.set_default_dtype(pt.float32)


def test_to_device():
    x = xp.ones(2)
    assert x.to_device(x.device) is x
    assert x.to_device("cpu") is x
    assert x.to_device("meta").device.type == "meta"
    with pytest.raises(ValueError, match="stream must be None"):
        x.to_device("cpu", stream=1)
    with pytest.raises(TypeError, match="type must be str"):
        x.to_device(None)

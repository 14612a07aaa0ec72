"""float8 and complex32 on a device: held, viewed and copied by their bytes; casts and kernels are refused by name."""
import pytest

import ptcore as pt

STORED = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "complex32")


@pytest.fixture(params=STORED)
def x(request):
    dtype = getattr(pt, request.param)
    raw = pt.arange(1, 121) if dtype.itemsize == 1 else pt.arange(15360, 15480)
    return raw.to(pt.uint8 if dtype.itemsize == 1 else pt.int32).view(dtype).reshape(10, 12)


def bits(t):
    return t.cpu().reshape(-1).clone().view(pt.uint8).tolist()


def test_bytes_go_there_and_back(x):
    y = x.to("cuda")
    assert y.dtype is x.dtype and y.is_cuda and bits(y) == bits(x)
    for f in (lambda t: t[2:, ::3], lambda t: t.t(), lambda t: t.t().contiguous(), lambda t: t.clone(),
              lambda t: t[3, 4], lambda t: t.view(pt.uint8), lambda t: t.unsqueeze(0),
              lambda t: t.expand(2, 10, 12).contiguous()):
        assert bits(f(y)) == bits(f(x))
    z = pt.zeros(3, 4, dtype=x.dtype, device="cuda")
    assert bits(z) == bits(pt.zeros(3, 4, dtype=x.dtype))
    y.copy_(x.view(pt.uint8).flip(0).view(x.dtype))
    assert bits(y) == bits(x.view(pt.uint8).flip(0).view(x.dtype))
    assert bits(pt.empty(10, 12, dtype=x.dtype).copy_(y.t().contiguous().t())) == bits(y)


def test_what_no_kernel_does(x):
    y = x.to("cuda")
    for f in (lambda: y == y, lambda: y.fill_(1), lambda: y * y, lambda: pt.where(pt.ones(12, device="cuda") > 0, y, y),
              lambda: pt.cat([y, y]), lambda: y[pt.tensor([1, 2], device="cuda")], lambda: y.any(), lambda: y.isnan(),
              lambda: pt.full((2,), 1, dtype=x.dtype, device="cuda")):
        with pytest.raises(NotImplementedError, match=r"there is no kernel|no cast"):
            f()
    for f in (lambda: y.to(pt.float32), lambda: pt.ones(3, device="cuda").to(x.dtype),
              lambda: pt.ones(10, 12, device="cuda").copy_(y)):
        with pytest.raises(NotImplementedError, match=r"there is no (cast|kernel)"):
            f()
    assert bits(y) == bits(x)

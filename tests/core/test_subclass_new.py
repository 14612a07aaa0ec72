"""``Tensor.__new__(cls, data)`` of subclasses makes the tensor, whatever ``__init__`` does."""
import pytest

import ptcore as pt

pytestmark = pytest.mark.core


class WithBoth(pt.Tensor):
    def __new__(cls, x, extra):
        return super().__new__(cls, x)

    def __init__(self, x, extra):
        self.extra = extra


class WithInit(pt.Tensor):
    def __init__(self, *args):
        self.count = len(args)


class Plain(pt.Tensor):
    pass


def test_data_and_sizes():
    source = pt.tensor([1.0, 2.0])
    for x in ([1.0, 2.0], source):
        made = WithBoth(x, 3)
        assert type(made) is WithBoth and made.extra == 3 and made.tolist() == [1, 2]
    assert WithBoth(source, 1).data_ptr() == source.data_ptr() == Plain(source).data_ptr()
    assert WithInit([1.0, 2.0]).tolist() == [1, 2] and WithInit(2, 3).shape == (2, 3) and WithInit(2, 3).count == 2
    assert WithInit().shape == (0,) and Plain().shape == (0,)
    assert pt.Tensor.__new__(Plain, [4.0]).tolist() == [4]
    assert (WithBoth(source, 3) * 2).tolist() == [2, 4]


def test_what_is_not_data():
    with pytest.raises(TypeError):
        Plain("text")
    with pytest.raises(TypeError):
        Plain([1.0], other=2)
    left = WithInit("text", 3)                          # its own __init__ may fill it, or not
    assert left.shape == (0,) and left.count == 2


def test_init_that_fills():
    class Loaded(pt.Tensor):
        def __init__(self, text, scale):
            super().__init__([float(x) * scale for x in text.split()])

    assert Loaded("1 2", 3).tolist() == [3, 6]


def test_conversion_to_the_type_of_a_class_is_in_the_class():
    class Sub(pt.Tensor):
        pass

    plain, sub = pt.zeros(2), pt.ones(2).as_subclass(Sub)
    for other in (sub, sub.double()):
        got = plain.to(other)
        assert type(got) is Sub and got.dtype is other.dtype and got.tolist() == [0, 0]
    assert type(plain.to(plain)) is pt.Tensor and type(sub.to(plain)) is Sub
    assert plain.to(sub).data_ptr() == plain.data_ptr()

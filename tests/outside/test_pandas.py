"""pandas takes a tensor where it takes an array; the same program on both gives the same frame."""
import numpy as np
import pytest
from _same_program import evaluated

import ptcore as pt

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.core

FRAME = {"k": ["a", "b", "a"], "v": [1.0, 2.0, 3.0]}


def with_column(values, names="c"):
    frame = pd.DataFrame(FRAME)
    frame[names] = values
    return frame


def with_rows(key, value, how="loc"):
    frame = pd.DataFrame(FRAME)
    getattr(frame, how)[key] = value
    return frame


SCOPE = {"with_rows": with_rows, "pd": pd, "frame": pd.DataFrame(FRAME), "s": pd.Series([1.0, 2.0, 3.0], name="s"),
         "with_column": with_column}
MADE = """
pd.Series(x)
pd.Series(f4)
pd.Series(b)
pd.Series(z)
pd.Series(u2)
pd.Series(x, dtype="int64", name="a", copy=True)
pd.Series([1, 2, 3], index=i)
pd.Index(i)
pd.Index(x)
pd.DataFrame(m, columns=["a", "b"])
pd.DataFrame(x)
pd.DataFrame({"x": x, "i": i, "b": b, "f4": f4}, index=i)
pd.DataFrame([x, x])
with_column(x)
with_column(f4)
with_column(m[:, :1])
with_column(m, ["p", "q"])
frame.assign(w=x)
frame.loc[i - 1]
frame.iloc[i - 1]
frame.take(i - 1)
pd.concat([frame, pd.DataFrame({"v": x})], ignore_index=True)
pd.merge(pd.DataFrame({"k": i, "a": x}), pd.DataFrame({"k": i, "b": f4}), on="k")
pd.Series(i).value_counts()
pd.Series(f4).rolling(2).mean()
pd.DataFrame(m).corr()
pd.get_dummies(i)
pd.cut(s, A([0.0, 1.5, 4.0])).cat.codes
pd.to_datetime(i, unit="D")
pd.DataFrame({"r": i, "c": i, "v": f4}).pivot(index="r", columns="c", values="v")
pd.DataFrame({"t": x, "i": i}).groupby("i").mean()
s.reindex(i)
frame[b]
frame.loc[b]
frame.iloc[b]
frame.loc[b, "v"]
frame.loc[:, b[:2]]
frame.iloc[:, b[:2]]
frame.iloc[i - 1, i[:1]]
frame[~b]
s[b]
s.loc[b]
s.iloc[b]
s.index[b]
s[(s > 1) & b]
with_rows((b, "v"), 9.0)
with_rows((A([0, 2]), "v"), 9.0)
with_column(number)
pd.DataFrame({"x": number}, index=[0, 1])
pd.merge(frame, frame, left_on=i, right_on=i)
s.where(b, x)
s.mask(b, x)
np.sin(pd.Series(x))
np.add(s, x)
np.add(x, s)
np.maximum(x, s)
np.maximum(s, x)
np.hypot(x, s)
pd.isna(nan)
(s > 1) & b
b & (s > 1)
s * number
number * s
""".strip().splitlines()
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">="]


def check(program):
    want, got = evaluated(program, SCOPE)
    assert type(got) is type(want)
    if isinstance(want, pd.DataFrame):
        pd.testing.assert_frame_equal(got, want)
    elif isinstance(want, pd.Series):
        pd.testing.assert_series_equal(got, want)
    elif isinstance(want, pd.Index):
        pd.testing.assert_index_equal(got, want)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("program", MADE)
def test_same(program):
    check(program)


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators(operator):
    """A tensor gives way to a column, as an array does, on both sides."""
    check(f"s {operator} x")
    check(f"x {operator} s")


def test_masks_of_another_length():
    for mask in (pt.tensor([True, False]), pt.tensor([True] * 4)):
        for select in (lambda m: SCOPE["frame"][m], lambda m: SCOPE["s"].iloc[m], lambda m: SCOPE["s"].loc[m]):
            with pytest.raises((ValueError, IndexError), match="wrong length"):
                select(mask)


def test_product():
    assert float(SCOPE["s"] @ pt.tensor([1.0, 2.0, 3.0], dtype=pt.float64)) == 14.0


def test_back():
    frame = pd.DataFrame({"t": pt.tensor([1.0, 2.0, 4.0], dtype=pt.float64), "i": pt.tensor([1, 1, 2])})
    means = frame.groupby("i")["t"].mean()
    assert pt.tensor(means).tolist() == [1.5, 4.0]
    assert pt.asarray(means.index).dtype is pt.int64
    assert pt.as_tensor(frame).tolist() == [[1, 1], [2, 1], [4, 2]]
    assert pt.from_numpy(frame["t"].to_numpy(copy=True)).dtype is pt.float64
    x = pt.zeros(3)
    x[:] = frame["t"]
    assert x.tolist() == [1, 2, 4]
    assert x[frame["i"] == 1].tolist() == [1, 2]
    assert x[pd.Index([0, 2])].tolist() == [1, 4]


def test_requires_grad():
    with pytest.raises(RuntimeError, match=r"tensor.detach\(\).numpy\(\)"):
        pd.Series(pt.zeros(2, requires_grad=True))

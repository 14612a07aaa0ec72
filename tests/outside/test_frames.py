"""pandas and xarray take a tensor where they take an array: the same program gives the same with both."""
import copy
import pickle

import numpy as np
import pytest

import ptcore as pt

V, K = np.array([3.0, 1.0, 2.0, 2.0]), np.array([0, 1, 0, 1])
M = np.array([True, False, True, True])
X = np.arange(1.0, 13.0).reshape(4, 3)
HOLES = np.where(X > 5, np.nan, X)


def frame(pd):
    return pd.DataFrame({"a": V, "k": K})


def written(pd, T):
    d = frame(pd)
    d["b"], d["c"] = T(V), T(M)
    d.insert(0, "z", T(K))
    return d


# What a program makes with pandas of T(array): an array, or a tensor with its elements.
PANDAS = {
    "frame": lambda pd, T: pd.DataFrame(T(X), columns=list("abc"), index=T(K)),
    "columns": lambda pd, T: pd.DataFrame({"a": T(V.astype(np.float32)), "k": T(K.astype(np.int8)), "m": T(M)}),
    "columns_of": lambda pd, T: pd.DataFrame(dict(zip("abc", T(X).T, strict=True))),
    "rows": lambda pd, T: pd.DataFrame([T(X)[0], T(X)[1]]),
    "series": lambda pd, T: pd.Series(T(V), index=T(K), name="n"),
    "series_as": lambda pd, T: pd.Series(T(K), dtype="float32"), "index": lambda pd, T: pd.Index(T(K)),
    "written": written, "assign": lambda pd, T: frame(pd).assign(b=T(V)),
    "iloc": lambda pd, T: frame(pd).iloc[T(K), T(np.array([1, 0]))], "loc": lambda pd, T: frame(pd).loc[T(K)],
    "take": lambda pd, T: frame(pd).take(T(K)), "drop": lambda pd, T: frame(pd).drop(T(np.array([0, 2]))),
    "reindex": lambda pd, T: frame(pd).reindex(T(K)),
    "add": lambda pd, T: frame(pd)["a"] + T(V), "radd": lambda pd, T: T(V) + frame(pd)["a"],
    "rsub": lambda pd, T: T(V) - frame(pd)["a"], "pow": lambda pd, T: frame(pd)["a"] ** T(V),
    "mul": lambda pd, T: frame(pd) * T(np.array([1.0, 2.0])), "rmul": lambda pd, T: T(np.array([1.0, 2.0])) * frame(pd),
    "number": lambda pd, T: frame(pd)["a"] + T(np.float64(2)),
    "rnumber": lambda pd, T: T(np.float64(2)) * frame(pd)["a"],
    "compare": lambda pd, T: frame(pd)["a"] > T(V), "rcompare": lambda pd, T: T(V) <= frame(pd)["a"],
    "matmul": lambda pd, T: frame(pd) @ T(np.ones((2, 2))), "rmatmul": lambda pd, T: T(np.ones((2, 4))) @ frame(pd),
    "dot": lambda pd, T: frame(pd).dot(T(np.ones(2))), "ufunc": lambda pd, T: np.add(frame(pd)["a"], T(V)),
    "where": lambda pd, T: frame(pd)["a"].where(T(M), T(V * 2)), "mask": lambda pd, T: frame(pd)["a"].mask(T(M)),
    "cut": lambda pd, T: pd.Series(pd.cut(T(V), T(np.array([0.0, 1.5, 4.0])), labels=False)),
    "qcut": lambda pd, T: pd.Series(pd.qcut(T(V), 2, labels=False, duplicates="drop")),
    "groupby": lambda pd, T: pd.DataFrame({"a": T(V), "k": T(K)}).groupby("k").agg(["mean", "max"]),
    "concat": lambda pd, T: pd.concat([pd.DataFrame(T(X)), pd.DataFrame(T(X))]),
    "merge": lambda pd, T: pd.DataFrame({"k": T(K), "x": T(V)}).merge(frame(pd), on="k"),
    "pivot": lambda pd, T: pd.DataFrame({"k": T(K), "m": T(M),
    "v": T(V)}).pivot_table(index="k", columns="m", values="v"),
    "crosstab": lambda pd, T: pd.crosstab(T(K), T(M)), "get_dummies": lambda pd, T: pd.get_dummies(T(K)),
    "isna": lambda pd, T: pd.Series(pd.isna(T(HOLES[1]))), "to_datetime": lambda pd, T: pd.to_datetime(T(K), unit="s"),
    "to_numeric": lambda pd, T: pd.Series(pd.to_numeric(T(K))), "array": lambda pd, T: pd.Series(pd.array(T(K))),
    "rolling": lambda pd, T: pd.Series(T(V)).rolling(2).mean(),
    "searchsorted": lambda pd, T: pd.Series(pd.Series([1.0, 2.0, 3.0]).searchsorted(T(V))),
    "agg": lambda pd, T: frame(pd).groupby("k")["a"].agg(lambda c: float(T(c.to_numpy()).max())),
}


@pytest.mark.filterwarnings("ignore:Treating an array-like object:DeprecationWarning")    # pandas 4 will take fewer
@pytest.mark.parametrize("program", PANDAS)
def test_pandas(program):
    pd = pytest.importorskip("pandas")
    ours, theirs = [PANDAS[program](pd, T) for T in (pt.tensor, np.array)]
    assert type(ours) is type(theirs)
    check = {pd.DataFrame: pd.testing.assert_frame_equal, pd.Series: pd.testing.assert_series_equal}
    check.get(type(theirs), pd.testing.assert_index_equal)(ours, theirs, check_exact=True)


def test_tensors_of_pandas():
    pd = pytest.importorskip("pandas")
    d = frame(pd)
    for got, expected in ((pt.tensor(d["a"]), V), (pt.asarray(d["a"]), V), (pt.as_tensor(d), np.stack([V, K], 1)),
                          (pt.from_numpy(d["k"].to_numpy()), K), (pt.tensor(d.index), np.arange(4)),
                          (pt.tensor(d.groupby("k")["a"].sum()), np.array([5.0, 3.0])),
                          (pt.tensor(pd.array([1, 2])), np.array([1, 2])), (pt.tensor(d["a"].iloc[0]), np.array(3.0)),
                          (pt.arange(4)[d["k"]], K), (pt.tensor(V)[d["k"] == 1], V[K == 1]),
                          (pt.stack([pt.tensor(g.to_numpy()) for _, g in d.groupby("k")["a"]]),
                           np.array([[3.0, 2.0], [1.0, 2.0]])),
                          (pt.where(d["k"] == 1, pt.tensor(V), 0.0), np.where(K == 1, V, 0))):
        assert got.numpy().dtype == expected.dtype
        np.testing.assert_array_equal(got.numpy(), expected)


def table(xr, T):
    return xr.DataArray(T(X), dims=("a", "b"), coords={"a": [10, 20, 30, 40], "b": list("uvw")}, name="n")


def column(xr, T):
    return xr.DataArray(T(V), dims="a", coords={"a": [10, 20, 30, 40]})


def holes(xr, T):
    return xr.DataArray(T(HOLES), dims=("a", "b"))


def key(xr):
    return xr.DataArray(K, dims="a", name="k")


def set_items(xr, T):
    x = table(xr, T).copy()
    x[0] = 5.0
    x.loc[{"b": "u"}] = 0.0
    x[{"a": [1, 2]}] = T(X[:2])
    x += 1
    return x


# The results hold tensors.
XARRAY = {
    "add": lambda xr, T: 2 * table(xr, T) + 1, "tensor": lambda xr, T: table(xr, T) + T(X),
    "broadcast": lambda xr, T: table(xr, T) * column(xr, T), "reversed": lambda xr, T: column(xr, T) - table(xr, T),
    "align": lambda xr, T: table(xr, T)[1:] - table(xr, T)[:3], "pow": lambda xr, T: -(table(xr, T) ** 2),
    "compare": lambda xr, T: (table(xr, T) > 3) & ~(table(xr, T) >= 9), "ufunc": lambda xr, T: np.exp(table(xr, T)),
    "ufunc2": lambda xr, T: np.maximum(table(xr, T), column(xr, T)),
    "xufunc": lambda xr, T: xr.ufuncs.sin(table(xr, T)),
    "sum": lambda xr, T: table(xr, T).sum("a"), "sum_all": lambda xr, T: table(xr, T).sum(),
    "nansum": lambda xr, T: holes(xr, T).sum("b"), "count": lambda xr, T: holes(xr, T).count("a"),
    "mean": lambda xr, T: holes(xr, T).mean("a", skipna=False), "all": lambda xr, T: (table(xr, T) > 2).all("a"),
    "any": lambda xr, T: (table(xr, T) > 11).any("b"), "isel": lambda xr, T: table(xr, T).isel(a=slice(None, None, -2)),
    "isel_tensor": lambda xr, T: table(xr, T).isel(a=T(np.array([0, 2])), b=1),
    "sel": lambda xr, T: table(xr, T).sel(b="v"),
    "sel_near": lambda xr, T: table(xr, T).sel(a=22, method="nearest"), "loc": lambda xr, T: table(xr, T).loc[20:, "u"],
    "where": lambda xr, T: table(xr, T).where(table(xr, T) > 3, 0.0),
    "where_of": lambda xr, T: xr.where(table(xr, T) > 3, table(xr, T), -1.0),
    "fillna": lambda xr, T: holes(xr, T).fillna(0.0), "isnull": lambda xr, T: holes(xr, T).isnull(),
    "clip": lambda xr, T: table(xr, T).clip(2, 5), "transpose": lambda xr, T: table(xr, T).transpose("b", "a"),
    "expand": lambda xr, T: table(xr, T).expand_dims(z=2), "squeeze": lambda xr, T: table(xr, T)[:1].squeeze(),
    "unstack": lambda xr, T: table(xr, T).stack(z=("a", "b")).unstack("z"),
    "roll": lambda xr, T: table(xr, T).roll(a=1),
    "diff": lambda xr, T: table(xr, T).diff("a"), "sortby": lambda xr, T: table(xr, T).sortby("a", ascending=False),
    "concat": lambda xr, T: xr.concat([table(xr, T), table(xr, T)], "z"),
    "dot": lambda xr, T: xr.dot(table(xr, T), column(xr, T)), "matmul": lambda xr, T: table(xr, T) @ table(xr, T),
    "groupby": lambda xr, T: table(xr, T).groupby(key(xr)).sum(),
    "groupby_map": lambda xr, T: table(xr, T).groupby(key(xr)).map(lambda g: g - g.sum("a")),
    "integrate": lambda xr, T: table(xr, T).integrate("a"), "apply": lambda xr, T: xr.apply_ufunc(
        lambda x: x.mean(-1), table(xr, T), input_core_dims=[["b"]]),
    "reduce": lambda xr, T: table(xr, T).reduce(np.sum, "a"), "set": set_items,
    "dataset": lambda xr, T: xr.Dataset({"n": table(xr, T), "m": table(xr, T)}).map(lambda x: x * 2).to_dataarray(),
    "pickle": lambda xr, T: pickle.loads(pickle.dumps(table(xr, T))),
    "deepcopy": lambda xr, T: copy.deepcopy(table(xr, T)),
    "full_like": lambda xr, T: xr.full_like(table(xr, T), 2.0), "thin": lambda xr, T: table(xr, T).thin(a=2),
}
# xarray works these out with NumPy's functions: the results hold arrays.
XARRAY_OF_ARRAYS = {
    "mean": lambda xr, T: table(xr, T).mean("b"), "std": lambda xr, T: table(xr, T).std("a", ddof=1),
    "nanmean": lambda xr, T: holes(xr, T).mean("a"), "max": lambda xr, T: holes(xr, T).max("a"),
    "min": lambda xr, T: table(xr, T).min(), "prod": lambda xr, T: table(xr, T).prod("b"),
    "argmax": lambda xr, T: table(xr, T).argmax("a"), "median": lambda xr, T: table(xr, T).median("a"),
    "cumsum": lambda xr, T: table(xr, T).cumsum("a"), "groupby": lambda xr, T: table(xr, T).groupby(key(xr)).mean(),
    "coarsen": lambda xr, T: table(xr, T).coarsen(a=2).mean(),
}


@pytest.mark.parametrize("kept", [True, False])
def test_xarray(kept):
    xr = pytest.importorskip("xarray")
    for name, program in (XARRAY if kept else XARRAY_OF_ARRAYS).items():
        ours, theirs = [program(xr, T) for T in (pt.tensor, np.array)]
        assert isinstance(ours.data, pt.Tensor if kept else np.ndarray), name
        xr.testing.assert_allclose(ours.copy(data=np.asarray(ours.data)), theirs, rtol=1e-14, atol=0)
        assert np.asarray(ours.data).dtype == theirs.dtype, name


def test_xarray_gives_numbers_and_arrays():
    xr = pytest.importorskip("xarray")
    x = table(xr, pt.tensor)
    for got in (x.to_numpy(), x.values, np.asarray(x), x.to_pandas().to_numpy()):
        np.testing.assert_array_equal(got, X)
    assert x.sum().item() == float(x.sum()) == X.sum() and x.shape == (4, 3) and x.nbytes == 96
    assert x.equals(table(xr, pt.tensor)) and "n" in repr(x) and len(x._repr_html_()) > 100


def test_gradients_through_xarray():
    xr = pytest.importorskip("xarray")
    leaf = pt.tensor(X, requires_grad=True)
    x = xr.DataArray(leaf, dims=("a", "b"))
    (x.isel(a=slice(1, None)) * x[:3]).sum().data.backward()
    expected = np.zeros_like(X)
    expected[1:] += X[:3]
    expected[:3] += X[1:]
    np.testing.assert_array_equal(leaf.grad.numpy(), expected)

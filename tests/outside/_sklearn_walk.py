"""Runs scikit-learn's own checks of the array API for every estimator and metric that documents it, with tensors.

    SCIPY_ARRAY_API=1 python tests/outside/_sklearn_walk.py            one JSON object: name -> what went wrong, or null

SciPy reads the variable when it is first imported: this is a process of its own.
"""
import json
import os
import sys
import unittest
import warnings

import numpy as np

import ptcore
from ptcore import array_api

os.environ["SCIPY_ARRAY_API"] = "1"

from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, RidgeClassifierCV, RidgeCV
from sklearn.metrics.cluster.tests import test_common as cluster_metrics
from sklearn.metrics.tests import test_common as metrics
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.discovery import all_estimators
from sklearn.utils.estimator_checks import check_array_api_input, check_array_api_input_and_values

NAMESPACE = "ptcore.array_api"
# In float32 the last bits decide how many steps these take, with every library: dtypes and shapes are compared alone.
ITERATIVE = ("GaussianMixture", "LogisticRegression")
# Where the array API is for some settings alone, or something has to be given.
SETTINGS = {
    "GaussianMixture": GaussianMixture(n_components=2, init_params="random", reg_covar=0.1, random_state=0),
    "GridSearchCV": GridSearchCV(Ridge(solver="svd"), {"alpha": [0.1, 1.0]}),
    "LinearDiscriminantAnalysis": LinearDiscriminantAnalysis(solver="svd"),
    "LogisticRegression": LogisticRegression(solver="lbfgs", tol=1e-10),
    "Nystroem": Nystroem(n_components=5, random_state=0),
    "PCA": PCA(n_components=2, svd_solver="full"),
    "PoissonRegressor": PoissonRegressor(solver="lbfgs"),
    "RandomizedSearchCV": RandomizedSearchCV(Ridge(solver="svd"), {"alpha": [0.1, 1.0]}, n_iter=2, random_state=0),
    "Ridge": Ridge(solver="svd"),
    "RidgeClassifierCV": RidgeClassifierCV(),
    "RidgeCV": RidgeCV(),
    "FeatureUnion": FeatureUnion([("scaled", StandardScaler()), ("powers", PolynomialFeatures(2))]),
    "Pipeline": make_pipeline(StandardScaler(), Ridge(solver="svd")),
}


def estimators():
    """{name: instance} of those whose tags say that they take other libraries' arrays."""
    found = {}
    for name, cls in all_estimators():
        try:
            instance = SETTINGS[name] if name in SETTINGS else cls()
            supported = get_tags(instance).array_api_support
        except (TypeError, AttributeError):     # what wraps others and has no settings above
            continue
        if supported:
            found[name] = instance
    return found


def check_labels(name, estimator, array_namespace, dtype_name):
    labels = np.asarray([3, 1, 3, 7], dtype=dtype_name)
    want = estimator.fit_transform(labels)
    with config_context(array_api_dispatch=True):
        got = estimator.fit_transform(array_api.asarray(labels))
        back = estimator.inverse_transform(got)
    assert type(got) is type(back) is ptcore.Tensor
    assert got.tolist() == want.tolist()
    assert back.tolist() == labels.tolist()


def attempt(check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            check()
        except unittest.SkipTest as skipped:
            return f"skipped: {skipped}"
        except Exception as error:
            if os.environ.get("WALK_TRACE"):
                import traceback
                traceback.print_exc()
            return f"{type(error).__name__}: {error}"[:500]


def walk():
    results = {}
    for name, instance in estimators().items():
        for dtype in ("float64", "float32"):
            check = check_array_api_input_and_values
            if name in ITERATIVE and dtype == "float32":
                check = check_array_api_input
            if name == "LabelEncoder":          # it has no X
                check = check_labels
            results[f"{name} {dtype}"] = attempt(lambda check=check, instance=instance, name=name, dtype=dtype: (
                check(name, instance, array_namespace=NAMESPACE, dtype_name=dtype)))
    for module in (metrics, cluster_metrics):
        for metric, checks in module.array_api_metric_checkers.items():
            for check in checks:
                for dtype in ("float64", "float32"):
                    name = getattr(check, "func", check).__name__.removeprefix("check_array_api_")
                    results[f"{getattr(metric, 'func', metric).__name__} {name} {dtype}"] = attempt(
                        lambda check=check, metric=metric, dtype=dtype: check(metric, NAMESPACE, None, dtype))
    return results


if __name__ == "__main__":
    ptcore.set_default_dtype(ptcore.float64)        # means of float64 data are compared with NumPy's to 1e-7
    sys.stdout.write(json.dumps(walk(), indent=1) + "\n")

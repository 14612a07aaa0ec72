"""What every test starts from: fixed seeds and the library's default state."""
import random

import numpy as np
import pytest

import ptcore


@pytest.fixture(autouse=True)
def fixed_state():
    """Same numbers in every run and order; whatever a test sets is put back."""
    random.seed(0)
    np.random.seed(0)
    ptcore.manual_seed(0)
    dtype = ptcore.get_default_dtype()
    yield
    ptcore.set_default_dtype(dtype)
    assert ptcore.is_grad_enabled(), "a test left grad mode switched off"


@pytest.fixture
def rng():
    return np.random.default_rng(0)

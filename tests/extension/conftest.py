import pytest


@pytest.fixture(scope="session")
def root(extensions):
    """The cache of compiled extensions of this run."""
    return extensions

import pytest


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    """The cache of compiled extensions of this run."""
    return tmp_path_factory.mktemp("extensions")


@pytest.fixture(autouse=True)
def cache(root, monkeypatch):
    monkeypatch.setenv("PTCORE_EXTENSIONS_DIR", str(root))

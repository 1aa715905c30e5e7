import pytest

from lucid.compiler import runtime


@pytest.fixture(autouse=True, scope="session")
def private_cache(tmp_path_factory):
    """Tests neither read nor fill the user's own cache."""
    patch = pytest.MonkeyPatch()
    patch.setenv("LUCID_CACHE_DIR", str(tmp_path_factory.mktemp("cache") / "lucid"))
    yield
    patch.undo()


@pytest.fixture
def threads():
    """`threads(n)` sets the number of threads for one test."""
    before = runtime.get_num_threads()
    yield runtime.set_num_threads
    runtime.set_num_threads(before)

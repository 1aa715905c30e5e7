import pytest

from lucid.compiler.runtime import kernel_table as kernels
from lucid.compiler.runtime import threads as runtime


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


@pytest.fixture
def new_kernels(monkeypatch):
    """The names of kernels that were asked for and not known, since the list was cleared."""
    names: list[str] = []
    load_all = kernels.load_all

    def noted(requests):
        names.extend(name for request in requests for name in request.names)
        return load_all(requests)

    monkeypatch.setattr(kernels, "load_all", noted)
    monkeypatch.setattr(kernels, "_loaded", type(kernels._loaded)())
    return names

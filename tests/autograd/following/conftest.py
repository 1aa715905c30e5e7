"""Steps of a few operations on small tensors are followed too."""

import pytest

from lucid.autograd.following import step_sequence
from lucid.tape.node import followers


@pytest.fixture(autouse=True)
def everything_may_be_followed(monkeypatch):
    monkeypatch.setattr(step_sequence, "is_worthwhile", lambda cut, types: True)
    followers.clear()
    yield
    followers.clear()

"""pandas, matplotlib and NumPy's writers take tensors as they take arrays."""

import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest

import lucid

matplotlib.use("Agg")
import matplotlib.pyplot as plt

V, GRID = lucid.arange(1.0, 6.0), lucid.arange(6.0).reshape(2, 3)
NUMBER = V.mean()


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: ax.axhline(NUMBER),
        lambda ax: ax.axvspan(NUMBER, NUMBER + 1),
        lambda ax: ax.bar(V, V),
        lambda ax: ax.barh(V, V, height=NUMBER),
        lambda ax: ax.bar(["a", "b"], lucid.ones(2)),
        lambda ax: ax.boxplot(V),
        lambda ax: ax.contourf(lucid.rand(3, 3)),
        lambda ax: ax.errorbar(V, V, yerr=V),
        lambda ax: ax.fill_between(V, V - 1, V + 1),
        lambda ax: ax.hist(V),
        lambda ax: ax.imshow(GRID),
        lambda ax: ax.plot(V, V),
        lambda ax: ax.scatter(V, V, c=V, s=V),
        lambda ax: ax.set_xlim(NUMBER, NUMBER + 1),
        lambda ax: ax.set_xticks(V),
        lambda ax: ax.stem(V, V),
        lambda ax: ax.text(NUMBER, NUMBER, "a"),
        lambda ax: ax.vlines(NUMBER, NUMBER, NUMBER + 1),
    ],
)
def test_matplotlib_draws_tensors(draw):
    figure, ax = plt.subplots(figsize=(1, 1))
    try:
        draw(ax)
        figure.canvas.draw()
    finally:
        plt.close(figure)


def test_bars_have_the_heights_of_the_tensor():
    figure, ax = plt.subplots()
    assert [bar.get_height() for bar in ax.bar(V, V * 2)] == [2.0, 4.0, 6.0, 8.0, 10.0]
    plt.close(figure)


def test_pandas_makes_columns_of_tensors():
    frame = pd.DataFrame({"a": V, "b": V * 2})
    assert frame.dtypes.tolist() == [np.float32, np.float32] and frame["b"].sum() == 30.0
    assert pd.DataFrame(GRID).shape == (2, 3) and pd.Series(V).mean() == 3.0
    frame["c"] = lucid.arange(5)
    frame.loc[0, "a"] = lucid.tensor(9.0)
    assert frame["c"].tolist() == [0, 1, 2, 3, 4] and frame["a"][0] == 9.0
    assert lucid.tensor(frame["b"].to_numpy()).tolist() == (V * 2).tolist()
    assert lucid.tensor(frame["c"]).dtype == np.int64


def test_numpy_writes_tensors_to_files(tmp_path):
    np.save(tmp_path / "v.npy", V)
    assert np.load(tmp_path / "v.npy").tolist() == V.tolist()
    np.savez(tmp_path / "v.npz", v=V)
    assert np.load(tmp_path / "v.npz")["v"].tolist() == V.tolist()
    np.savetxt(tmp_path / "g.txt", GRID)
    assert np.loadtxt(tmp_path / "g.txt").tolist() == GRID.tolist()
    with pytest.raises(lucid.errors.GraphError, match="requires a gradient"):
        np.save(tmp_path / "w.npy", lucid.ones(2, requires_grad=True))


def test_the_bytes_of_a_tensor_are_those_of_its_array():
    assert bytes(V) == V.numpy().tobytes()
    if sys.version_info >= (3, 12):
        assert memoryview(V).tolist() == V.tolist()

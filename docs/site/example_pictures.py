"""The pictures of the examples for their page, each for light and for dark pages, as PNG.

    python -m docs.site.example_pictures [NAME ...]    (trains for a minute; needs matplotlib)

An example draws with `support.picture(file, draw, size)`. Here `draw` is collected instead, and
called twice, in the colors of either kind of page.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from docs.site.contents import ROOT
from docs.site.pictures import FOLDER, PALETTES, Palette

NAMES = ("vae", "gan", "pinn", "neural_ode", "hmc", "maml")
DPI = 88


def draws(
    name: str, arguments: Sequence[str] = ()
) -> list[tuple[Callable[[Any], None], tuple[float, float]]]:
    """Run an example and return what it would draw, with the sizes."""
    sys.path.insert(0, str(ROOT / "examples"))
    support: Any = importlib.import_module("support")
    found: list[tuple[Callable[[Any], None], tuple[float, float]]] = []

    def picture(
        file: Path, draw: Callable[[Any], None], size: tuple[float, float] = (6, 4)
    ) -> None:
        found.append((draw, size))

    original, support.picture = support.picture, picture
    try:
        importlib.import_module(name).main(list(arguments))
    finally:
        support.picture = original
        sys.path.remove(str(ROOT / "examples"))
    return found


def colors(palette: Palette) -> dict[str, Any]:
    """Return the settings of matplotlib for a palette."""
    text = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color")
    settings: dict[str, Any] = dict.fromkeys(text, palette.text)
    clear = ("figure.facecolor", "axes.facecolor", "legend.facecolor")
    return settings | dict.fromkeys(clear, "none") | {"axes.edgecolor": palette.line}


def save(name: str) -> None:
    """Write the pictures of an example."""
    import matplotlib
    from matplotlib.figure import Figure

    ((draw, size),) = draws(name)
    for suffix, palette in PALETTES.items():
        with matplotlib.rc_context(colors(palette)):
            figure = Figure(figsize=size, layout="constrained")
            draw(figure)
            file = FOLDER / f"example-{name.replace('_', '-')}{suffix}.png"
            figure.savefig(file, dpi=DPI, metadata={"Software": None})


if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        save(name)

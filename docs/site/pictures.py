"""The pictures of the documentation, each for light and for dark pages, as SVG.

    python -m docs.site.pictures            (writes docs/pictures; charts need matplotlib)

Diagrams are drawn here, from shapes. Charts are drawn by matplotlib: the loss curve from a short
training run, the speeds from docs/pictures/speed.json. `benchmarks/run.py --json FILE` measures
them, and `python -m docs.site.pictures --speed FILE` takes them over with date and processor.
"""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from docs.site.contents import ROOT

FOLDER = ROOT / "docs" / "pictures"
SPEED = FOLDER / "speed.json"
LABELS = {
    "mlp-medium": "MLP 784-128-10, SGD",
    "train-mlp": "MLP 784-512-256-10, Adam",
    "train-vae": "VAE 784-400-20, Adam",
    "layer-norm": "layer norm, 512 x 256",
    "logistic": "Hessian of logistic loss",
    "per-sample": "gradient per sample, MLP",
    "hvp": "Hessian-vector product, MLP",
    "rk4": "gradient of 300 RK4 steps",
}
SYSTEMS = {"lucid": "Lucid", "jax": "JAX jit", "torch": "PyTorch eager"}


@dataclass(frozen=True)
class Palette:
    """The colors of one kind of page."""

    text: str
    faint: str
    line: str
    fills: tuple[str, ...]
    strokes: tuple[str, ...]


LIGHT = Palette("#1f2328", "#59636e", "#8b949e", ("#eef4ff", "#eafaf0", "#fff4e5", "#f6f0ff"),
                ("#2f6fdb", "#1a8a4c", "#c46a00", "#7a4fd0"))  # fmt: skip
DARK = Palette("#e6edf3", "#9aa4af", "#6e7681", ("#14233d", "#10291b", "#33230c", "#241a3d"),
               ("#79aaff", "#5ccf8a", "#f0a94a", "#b795ff"))  # fmt: skip
PALETTES = {"": LIGHT, "-dark": DARK}


@dataclass
class Canvas:
    """An SVG picture in one palette."""

    width: int
    height: int
    palette: Palette
    parts: list[str] = field(default_factory=list)

    def text(
        self, x: float, y: float, words: str, size: int = 14, color: str = "", **style: str
    ) -> None:
        family = "ui-monospace, monospace" if style.get("mono") else "system-ui, sans-serif"
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-family="{family}" '
            f'font-weight="{style.get("weight", "400")}" text-anchor="{style.get("at", "middle")}" '
            f'fill="{color or self.palette.text}" xml:space="preserve">{escape(words)}</text>'
        )

    def box(self, x: float, y: float, width: float, height: float, color: int) -> None:
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8" '
            f'fill="{self.palette.fills[color]}" stroke="{self.palette.strokes[color]}"/>'
        )

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        self.parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{self.palette.line}" '
            'stroke-width="1.6" marker-end="url(#head)"/>'
        )

    def svg(self, title: str) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img">\n'
            f"<title>{escape(title)}</title>\n"
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
            'markerHeight="7" orient="auto-start-reverse">'
            f'<path d="M0 0L10 5L0 10z" fill="{self.palette.line}"/></marker></defs>\n'
        )
        return head + "\n".join(self.parts) + "\n</svg>\n"


def pipeline(palette: Palette) -> str:
    """Return the way from a user's code to one native call."""
    steps = [
        ("your code", "tensors, modules,", "if, while, print", 0),
        ("Graph", "recorded: SSA,", "typed, printable", 1),
        ("transforms", "grad, jvp, vmap:", "Graph to Graph", 1),
        ("passes", "simplify, cse,", "hoist, fuse", 2),
        ("kernels", "loops in LLVM IR,", "BLAS calls", 2),
        ("plan", "one native call,", "one arena", 3),
    ]
    canvas = Canvas(520, 290, palette)
    width, height, gap = 148, 92, 34
    for i, (name, first, second, color) in enumerate(steps):
        row, column = divmod(i, 3)
        x = 4 + (2 - column if row else column) * (width + gap)  # the second row runs back
        y = 10 + row * (height + 50)
        canvas.box(x, y, width, height, color)
        middle = x + width / 2
        canvas.text(middle, y + 28, name, 17, palette.strokes[color], weight="600")
        canvas.text(middle, y + 54, first, 14)
        canvas.text(middle, y + 74, second, 14)
        if i == 3:
            canvas.arrow(middle, y - 46, middle, y - 4)
        elif row:
            canvas.arrow(x + width + gap - 4, y + 46, x + width + 4, y + 46)
        elif i:
            canvas.arrow(x - gap + 4, y + 46, x - 4, y + 46)
    note = "without jit, NumPy computes each operation as it is recorded"
    canvas.text(260, 276, note, 13, palette.faint)
    return canvas.svg("From your code to one native call")


def fusion(palette: Palette) -> str:
    """Return what fusion does to tanh(x + b).sum()."""
    canvas = Canvas(860, 330, palette)
    canvas.text(210, 26, "before: one loop for each operation", 15, weight="600")
    rows = [("t = x + b", "reads x, b    writes t"), ("u = tanh(t)", "reads t    writes u"),
            ("s = sum(u)", "reads u    writes s")]  # fmt: skip
    for i, (code, traffic) in enumerate(rows):
        y = 46 + i * 92
        canvas.box(60, y, 300, 58, 2)
        canvas.text(210, y + 25, f"for i in range(n):  {code}", 13, mono="1")
        canvas.text(210, y + 46, traffic, 12, palette.faint)
        if i:
            canvas.arrow(210, y - 32, 210, y - 3)
            canvas.text(
                222, y - 12, f"array {'tu'[i - 1]} in memory", 12, palette.faint, at="start"
            )
    canvas.text(210, 318, "memory traffic: 5 n numbers", 13, palette.strokes[2])
    canvas.arrow(400, 150, 470, 150)
    canvas.text(435, 138, "fuse", 13, palette.faint)
    canvas.text(660, 26, "after: one kernel", 15, weight="600")
    canvas.box(490, 46, 340, 150, 1)
    code = ["s = 0", "for i in range(n):", "    s = s + tanh(x[i] + b[i])"]
    for i, line in enumerate(code):
        canvas.text(520, 96 + 28 * i, line, 14, at="start", mono="1")
    canvas.text(660, 222, "values stay in registers, several elements at a time", 12, palette.faint)
    canvas.text(660, 318, "memory traffic: 2 n numbers", 13, palette.strokes[1])
    return canvas.svg("Fusion: three loops become one kernel")


def compiled_step(palette: Palette) -> str:
    """Return the plan of the training step on the start page."""
    equations, instructions = plan_of_the_step()
    row, top = 30, 70
    canvas = Canvas(560, top + row * len(instructions) + 10, palette)
    head = f"{equations} recorded operations, {len(instructions)} instructions, one native call"
    canvas.text(280, 30, head, 16, weight="600")
    note = "forward, backward and the Adam update of a two-layer network"
    canvas.text(280, 52, note, 13, palette.faint)
    for i, operations in enumerate(instructions):
        is_product = operations == "matmul"
        y = top + i * row
        canvas.box(66, y, 490, row - 6, 3 if is_product else 1)
        canvas.text(311, y + 16, operations, 14, mono="1")
        canvas.text(58, y + 16, "BLAS" if is_product else "kernel", 12,
                    palette.strokes[3 if is_product else 1], at="end")  # fmt: skip
    return canvas.svg("The compiled training step")


def plan_of_the_step() -> tuple[int, list[str]]:
    """Return the number of recorded equations and the operations of each instruction."""
    import lucid
    from lucid import nn

    lucid.manual_seed(0)
    x, y, step = training_step(lucid, nn)
    graph = step.graph(x, y, stage="traced")
    lines = str(step.graph(x, y, stage="planned")).splitlines()[1:]
    return len(graph.equations), [line.partition("[")[0].strip() for line in lines]


def training_step(lucid: Any, nn: Any) -> tuple[Any, Any, Any]:
    """Return the data and the jitted step of the start page."""
    x = lucid.randn(256, 2)
    y = (x[:, :1] * x[:, 1:]).sign()
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = lucid.optim.Adam(model.parameters(), lr=0.02)

    @lucid.jit
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step(x, y)
    return x, y, step


def figure(palette: Palette, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return a matplotlib figure in the colors of a palette, and its axes."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "lucid"
    matplotlib.rcParams["svg.fonttype"] = "path"
    made = Figure(figsize=size, layout="constrained")
    axes = made.subplots()
    made.patch.set_alpha(0)
    axes.patch.set_alpha(0)
    axes.tick_params(colors=palette.text)
    for name, spine in axes.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(palette.line)
    return made, axes


def loss_curve(palette: Palette) -> Any:
    """Return the losses of the step on the start page."""
    import lucid
    from lucid import nn

    lucid.manual_seed(0)
    x, y, step = training_step(lucid, nn)
    losses = [step(x, y).item() for _ in range(300)]
    made, axes = figure(palette, (6.4, 3.2))
    axes.plot(losses, color=palette.strokes[0], linewidth=2)
    axes.set_yscale("log")
    axes.set_xlabel("step", color=palette.text)
    axes.set_ylabel("mean squared error", color=palette.text)
    axes.grid(color=palette.line, alpha=0.25, which="both", linewidth=0.6)
    axes.tick_params(which="both", colors=palette.text)
    return made


def speed_chart(palette: Palette) -> Any:
    """Return the times of a step, as multiples of Lucid's."""
    stored = json.loads(SPEED.read_text())
    names = [name for name in LABELS if name in stored["microseconds"]]
    made, axes = figure(palette, (6.2, 0.62 * len(names) + 1.3))
    for i, (system, label) in enumerate(SYSTEMS.items()):
        times = [stored["microseconds"][n].get(system) for n in names]
        own = [stored["microseconds"][n]["lucid"] for n in names]
        ratios = [t / o if t else 0.0 for t, o in zip(times, own)]
        places = [row + 0.27 * (i - 1) for row in range(len(names))]
        axes.barh(places, ratios, height=0.25, color=palette.strokes[i], label=label)
        for place, ratio, time in zip(places, ratios, times):
            if time:
                axes.text(
                    ratio, place, f" {time:,.0f} µs", va="center", fontsize=8, color=palette.faint
                )
    axes.set_yticks(range(len(names)), [LABELS[name] for name in names], color=palette.text)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(0.5, axes.get_xlim()[1] * 2.5)
    axes.axvline(1.0, color=palette.line, linewidth=0.8)
    axes.tick_params(which="both", colors=palette.text)
    axes.set_xlabel("time of a step, Lucid = 1 (shorter is faster)", color=palette.text)
    made.legend(loc="outside upper right", ncols=3, frameon=False, labelcolor=palette.text)
    facts = [stored["date"], f"{stored['machine']} shared with other work"]
    facts.append(f"best of {stored['rounds']} turns")
    made.supxlabel(", ".join(facts), fontsize=8, color=palette.faint)
    return made


DIAGRAMS = {"pipeline": pipeline, "fusion": fusion, "compiled-step": compiled_step}
CHARTS = {"loss": loss_curve, "speed": speed_chart}


def take_speed(file: Path) -> None:
    """Store the best times of a run of the benchmarks, with the date and the processor."""
    results = json.loads(file.read_text())
    best = {
        name: {system: round(min(turns), 1) for system, turns in found["rounds"].items() if turns}
        for name, found in results.items()
        if found.get("rounds")
    }
    counts = [len(turns) for found in results.values() for turns in found["rounds"].values()]
    taken = datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat()
    stored = {"date": taken, "machine": processor(), "rounds": max(counts), "microseconds": best}
    SPEED.write_text(json.dumps(stored, indent=1) + "\n")


def processor() -> str:
    """Return the name of the processor and the number of cores, as Linux gives them."""
    import os

    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        name = platform.processor()
    return f"{name}, {os.cpu_count()} cores"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    if sys.argv[1:2] == ["--speed"]:
        take_speed(Path(sys.argv[2]))
    for suffix, palette in PALETTES.items():
        for name, draw in DIAGRAMS.items():
            (FOLDER / f"{name}{suffix}.svg").write_text(draw(palette))
        for name, chart in CHARTS.items():
            chart(palette).savefig(FOLDER / f"{name}{suffix}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()

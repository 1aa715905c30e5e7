"""The table of contents: every page of the site, in the order of reading.

A page is named by its file in the repository. `START` becomes the first page of the site.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
START = "docs/start.md"
REFERENCE = "reference/index"


def decisions() -> list[str]:
    """Return the pages of single decisions."""
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    return [page.relative_to(ROOT).as_posix() for page in pages]


CONTENTS: dict[str, list[str]] = {
    "Tutorials": [
        "docs/tutorials/numpy.md",
        "docs/tutorials/pytorch.md",
        "docs/tutorials/jax.md",
        "docs/tutorials/ir.md",
        "docs/tutorials/fast.md",
        "docs/tutorials/debugging-gradients.md",
        "docs/tutorials/custom-rules.md",
        "docs/tutorials/control-flow.md",
        "docs/tutorials/jacobians.md",
        "docs/tutorials/primitive.md",
        "docs/tutorials/pass.md",
    ],
    "How to": [
        "docs/coming-from.md",
        "docs/numpy-and-scipy.md",
        "docs/training.md",
        "docs/jit.md",
        "docs/viewer.md",
        "docs/debugging.md",
        "docs/export.md",
        "docs/control-flow.md",
        "docs/jacobians.md",
        "docs/implicit.md",
        "docs/distributed.md",
        "docs/custom-rules.md",
        "docs/derivatives.md",
        "examples/README.md",
    ],
    "How it works": [
        "docs/index.md",
        "docs/semantics.md",
        "docs/ir.md",
        "docs/compiler.md",
        "docs/backends.md",
        "docs/caches.md",
        "docs/decisions.md",
        *decisions(),
        "benchmarks/README.md",
    ],
    "Extending Lucid": [
        "docs/adding-a-primitive.md",
        "docs/adding-a-transform.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
    ],
}
# Where a page of the repository is on the site, if not at its place below docs/.
MOVED = {
    START: "index",
    "docs/index.md": "system",
    "examples/README.md": "examples",
    "benchmarks/README.md": "benchmarks",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
    "SECURITY.md": "security",
}


def listed() -> list[str]:
    """Return the pages in the table of contents."""
    return [START, *[page for pages in CONTENTS.values() for page in pages]]


def existing() -> list[str]:
    """Return the pages there are: those in docs/, and those that the site takes from elsewhere."""
    found = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]
    return [*found, *[page for page in MOVED if not page.startswith("docs/")]]


def unlisted() -> list[str]:
    """Return the pages that are not in the table of contents; the site has them under "How to"."""
    return [page for page in existing() if page not in listed()]


def place(page: str) -> str:
    """Return the path of a page on the site, without extension."""
    return MOVED.get(page) or page.removeprefix("docs/").removesuffix(".md")


def toctrees() -> str:
    """Return the contents as MyST, to stand at the end of the first page."""
    parts = []
    for caption, pages in CONTENTS.items():
        more = unlisted() if caption == "How to" else []
        places = "\n".join(place(page) for page in [*pages, *more])
        parts.append(f"```{{toctree}}\n:caption: {caption}\n:hidden:\n\n{places}\n```\n")
    parts.append(f"```{{toctree}}\n:caption: Reference\n:hidden:\n\n{REFERENCE}\n```\n")
    return "\n".join(parts)

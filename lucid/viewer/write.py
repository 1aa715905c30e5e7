"""write: programs -> one HTML file that needs no network and no server."""

from __future__ import annotations

import base64
import html
import json
import zlib
from collections.abc import Sequence
from importlib import resources
from typing import Any

from lucid.viewer.collect import Files, program_data
from lucid.viewer.subjects import Program

SCRIPTS = ("vendor/dagre.min.js", "assets/model.js", "assets/graph.js", "assets/panes.js",
           "assets/main.js")  # fmt: skip


def page(programs: Sequence[Program]) -> str:
    """Return the page of these programs.

    Everything that comes from a program is deflated JSON in base64, which the page decodes and
    writes as text: no name or source line is ever HTML. Only the title is, and it is escaped.
    """
    files = Files()
    shown = [program_data(program, files) for program in programs]
    title = programs[0].graph.name
    return page_of_data({"title": title, "files": files.data(), "programs": shown})


def page_of_data(data: dict[str, Any]) -> str:
    """Return the page of data as `program_data` collects it."""
    packed = zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 9)
    parts = {
        "title": html.escape(f"{data['title']} · lucid"),
        "css": asset("assets/page.css"),
        "js": "\n".join(asset(name) for name in SCRIPTS),
        "data": base64.b64encode(packed).decode(),
    }
    head, *rest = asset("assets/page.html").split("@")
    out = [head]
    for i, part in enumerate(rest):
        out.append(parts[part] if i % 2 == 0 else part)
    return "".join(out)


def asset(name: str) -> str:
    """Return the text of a file of this package."""
    return resources.files("lucid.viewer").joinpath(name).read_text("utf-8")

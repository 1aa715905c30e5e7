"""Put the sources of the site together: pages of the repository, the reference, static files.

    python -m docs.site.assemble build/site-source

Links between files of the repository become links between pages of the site; links to files that
are not on the site become plain text. Only files that changed are written, so that Sphinx rebuilds
what it must.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from docs.site import notebooks, reference
from docs.site.contents import ROOT, START, existing, place, toctrees

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
HERE = Path(__file__).parent


def outside_code(text: str, change: re.Pattern[str], new: object) -> str:
    """Replace matches outside of code blocks."""
    out, end = [], 0
    for block in FENCE.finditer(text):
        out += [change.sub(new, text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*out, change.sub(new, text[end:])])


def with_links_of_the_site(page: str, text: str) -> str:
    """Return the text of a page with its links to other files turned into links of the site."""
    folder = (ROOT / page).parent
    pages = {(ROOT / name).resolve(): place(name) for name in existing()}

    def link(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        name, hash, heading = target.partition("#")
        if not name or "://" in name:
            return match[0]
        path = (folder / name).resolve()
        if path in pages:
            new = os.path.relpath(pages[path], Path(place(page)).parent) + ".md"
            return f"{mark}[{label}]({new}{hash}{heading})"
        if mark and path.with_stem(f"{path.stem}-dark").exists():
            return light_and_dark(label, path, place(page))
        if mark or path.is_relative_to(ROOT / "docs"):
            new = os.path.relpath(path.relative_to(ROOT / "docs"), Path(place(page)).parent)
            return f"{mark}[{label}]({new})"
        return label if path.exists() else match[0]

    return outside_code(text, LINK, link)


def light_and_dark(label: str, path: Path, page: str) -> str:
    """Return a picture as two, of which the page shows the one for its colors."""
    parts = []
    for kind, name in (("light", path.name), ("dark", f"{path.stem}-dark{path.suffix}")):
        file = os.path.relpath(Path("pictures") / name, Path(page).parent)
        parts.append(f"```{{image}} {file}\n:alt: {label}\n:class: only-{kind}\n```\n")
    return "\n".join(parts)


def sources() -> dict[str, str]:
    """Return the text of every page by its file on the site."""
    out = {f"{name}.rst": text for name, text in reference.pages().items()}
    for page in existing():
        text = with_links_of_the_site(page, (ROOT / page).read_text())
        if page.startswith("docs/tutorials/"):
            text += f"\n{{download}}`This tutorial as a notebook <{Path(page).stem}.ipynb>`\n"
        out[f"{place(page)}.md"] = text + ("\n" + toctrees() if page == START else "")
    return out


def write(target: Path, files: dict[str, str]) -> None:
    """Write what changed, and remove pages that are gone."""
    for name, text in files.items():
        path = target / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for path in [*target.rglob("*.md"), *target.rglob("*.rst")]:
        if path.relative_to(target).as_posix() not in files:
            path.unlink()


def main(target: Path) -> None:
    write(target, sources())
    notebooks.write(target / "tutorials")
    shutil.copytree(ROOT / "docs" / "pictures", target / "pictures", dirs_exist_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

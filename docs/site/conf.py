"""Sphinx's configuration. `make docs` assembles the sources and builds the site."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from docutils import nodes  # noqa: E402
from sphinx.addnodes import pending_xref  # noqa: E402

import lucid  # noqa: E402

project = "Lucid"
author = "The Lucid authors"
copyright = "The Lucid authors"
version = release = lucid.__version__

extensions = ["myst_parser", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["epub.unknown_project_files"]

html_theme = "furo"
html_title = f"Lucid {version}"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["lucid.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = True
toc_object_entries = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def unlink_other_types(app: object, doctree: nodes.document) -> None:
    """Leave the types of Python and NumPy in signatures as text: `bool` is not lucid.bool."""
    for node in list(doctree.findall(pending_xref)):
        if node.get("refdomain") == "py" and not node["reftarget"].startswith("lucid."):
            node.replace_self(nodes.Text(node.children[-1].astext()))


def setup(app: object) -> None:
    app.connect("doctree-read", unlink_other_types)  # type: ignore[attr-defined]

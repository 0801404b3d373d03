"""The site of the documents: `sphinx-build -W docs site`."""

import tomllib
from pathlib import Path

project = "gradinspect"
author = "the gradinspect developers"
copyright = "the gradinspect developers"  # noqa: A001  # Sphinx's name
version = release = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]["version"]
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
html_theme = "furo"
html_title = f"gradinspect {release}"
html_copy_source = False
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
nitpicky = True

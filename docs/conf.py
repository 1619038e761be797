"""Sphinx configuration. Nothing here needs a network: formulas are written in plain Unicode, not for MathJax."""

import importlib.metadata
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

project = "whosin"
author = "The whosin authors"
copyright = "2026, The whosin authors"
release = importlib.metadata.version("whosin")
version = ".".join(release.split(".")[:2])

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "run_blocks",
]
templates_path = ["_templates"]
# implications.md is generated, and included by the page of the same name
exclude_patterns = [
    "_build",
    "_generated/implications.md",
    "_generated/backreferences",
    "gallery/*.ipynb",
    "gallery/*.py",
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "backreferences_dir": "_generated/backreferences",
    "doc_module": ("whosin",),
    "show_signature": False,
    "min_reported_time": 10,
    "thumbnail_size": (640, 400),
}

html_theme = "pydata_sphinx_theme"
html_title = "whosin"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False, "header_links_before_dropdown": 6}


def _draw_implications(app: object) -> None:
    import draw_implications

    draw_implications.main(DOCS / "_generated")


def setup(app):  # the type is Sphinx's own
    app.connect("builder-inited", _draw_implications)
    return {"parallel_read_safe": True}


# Pages that stand alone need the room that an empty side bar would take.
html_sidebars = {
    name: []
    for name in (
        "index",
        "install",
        "quickstart",
        "which-tool",
        "theory",
        "references",
        "papers/**",
        "gallery/**",
        "search",
    )
}

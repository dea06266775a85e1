"""Sphinx's settings for the site that ``scripts/docs`` builds; ``scripts/site.py`` puts its sources together."""

import re

from torch import Tensor, autograd, nn

import regard

project = "Regard"
copyright = "the authors of Regard, Apache-2.0"
version = release = regard.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["attrs_inline", "html_image"]
myst_heading_anchors = 3
highlight_language = "none"  # of code without a language: shell lines and their output
nitpick_ignore_regex = [("py:.*", ".*")]  # torch and NumPy have no index here, and nothing is fetched
suppress_warnings = ["ref.python"]  # a type of an annotation whose name two modules have

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_use_rtype = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
add_module_names = False

html_theme = "furo"
html_title = f"Regard {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}

PAPER = re.compile(r"\[([A-Z][a-z]+\d{2}[a-z]?\b[^\[\]]*)\]")
"""A citation, such as [Vaswani17 §3.2.1; Ba16]."""
PLAIN = ("builtins", "abc", "typing", "enum")
"""Modules whose classes say nothing as a base."""
KEY = re.compile(r"\b([A-Z][a-z]+\d{2}[a-z]?)\b")
INHERITED = {
    str(member.__doc__).strip().partition("\n")[0]
    for base in (nn.Module, autograd.Function, Tensor)
    for member in (getattr(base, name) for name in dir(base))
    if member.__doc__
}
"""How torch's own docstrings begin: a method of ours without a docstring would show one."""


def _tidy(app, what, name, obj, options, lines):  # what autodoc calls for each docstring
    if lines and getattr(obj, "__doc__", None) is None and lines[0].strip() in INHERITED:
        lines.clear()
    for place, line in enumerate(lines):
        if not line.startswith((" " * 4, ">>>")):
            lines[place] = "".join(
                part if part.startswith("``") else PAPER.sub(lambda found: f"[{KEY.sub(_reference, found[1])}]", part)
                for part in re.split(r"(``.*?``)", line)
            )
    if what == "class" and (bases := [base for base in obj.__bases__ if base.__module__ not in PLAIN]):
        named = ", ".join(f":py:class:`~{base.__module__}.{base.__qualname__}`" for base in bases)
        lines[:0] = [f"A {named}.", ""]


def _reference(found):
    return f":ref:`{found[1]} <{found[1].lower()}>`"


def setup(app):
    """Let autodoc tidy each docstring."""
    app.connect("autodoc-process-docstring", _tidy, priority=900)  # after napoleon

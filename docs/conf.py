"""Sphinx configuration: ``sphinx-build -W -n docs build/docs``."""

import gc
import re
import sys
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

import dagster_dataops
from dagster_dataops.foundation.exports import public_names

# A build makes millions of objects that stay: looking for garbage takes a quarter of its time.
gc.disable()

project = "dagster-dataops"
author = "the dagster-dataops developers"
copyright = f"2026, {author}"  # noqa: A001 - Sphinx names it so
_about = metadata("dagster-dataops")
release = version = _about["Version"]

_ATTRIBUTE = re.compile(r"\.\. attribute:: ")
_TYPE = re.compile(r" +:type: ")
_MODULES = re.compile(r"\b(?!dagster_dataops\.[A-Z])(?:\w+\.)+(?=[A-Za-z])")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "llms_text",
    "reference_tables",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["build"]
html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
_addresses = dict(one.split(", ", 1) for one in _about.get_all("Project-URL", []))
html_baseurl = _addresses.get("Documentation", "")

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_use_rtype = False
default_role = "code"

nitpicky = True
# Types of other packages, and types that only signatures name, have no page here.
nitpick_ignore_regex = [("py:.*", r"(?!dagster_dataops\.[A-Z]).*")]

# Public names are documented where users import them from.
for _package in (dagster_dataops, dagster_dataops.assets):
    for _name in public_names(_package.__name__):
        _value = getattr(_package, _name)
        if isinstance(_value, type) and _value.__module__.startswith("dagster_dataops."):
            _value.__module__ = _package.__name__


def setup(app: Sphinx) -> None:
    """Let pages introduce modules in their own words."""
    app.connect("autodoc-process-docstring", leave_out_module_docstrings)
    app.connect("autodoc-process-docstring", add_described_fields, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", put_types_beside_names, priority=900)  # last


def leave_out_module_docstrings(_app: Sphinx, what: str, *rest: Any) -> None:
    """Empty the lines of the docstring of a module, the last argument."""
    if what == "module":
        rest[-1].clear()


def add_described_fields(_app: Sphinx, what: str, *rest: Any) -> None:
    """Append the fields of a resource or a component, which have descriptions for the UI."""
    value, lines = rest[1], rest[-1]
    fields = getattr(value, "model_fields", {}) if what == "class" else {}
    described = [
        f"    {name}: {one.description}" for name, one in fields.items() if one.description
    ]
    if described:
        lines += ["", "Attributes:", *described, ""]


def put_types_beside_names(_app: Sphinx, *rest: Any) -> None:
    """Move the type of each attribute into its heading, without the names of modules."""
    lines: list[str] = rest[-1]
    for index in [index for index, line in enumerate(lines) if _TYPE.match(line)]:
        heading = max(i for i in range(index) if _ATTRIBUTE.match(lines[i]))
        option = _MODULES.sub("", lines[index])
        del lines[index]
        lines.insert(heading + 1, option)

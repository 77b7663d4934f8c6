"""YamlPlace: a place in a defs.yaml, so that what is wrong there is said with file and line."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import dagster as dg
from pydantic import WithJsonSchema

from dagster_dataops.errors import DataOpsError, DefsYamlError
from dagster_dataops.operators.secret_options import without_named

_TEMPLATES: Final = ("{{", "{%", "{#")
TEMPLATE: Final = r"\{[{%]"  # what a text is matched by that may be one


def or_template(kind: str, **limits: Any) -> WithJsonSchema:
    """Return the JSON Schema of a field where a template may stand in place of a ``kind``.

    By hand: of a union, `dg check yaml` says no more than that no member fits.
    """
    return WithJsonSchema({"type": [kind, "string"], "pattern": TEMPLATE, **limits})


@dataclass(frozen=True, slots=True)
class YamlPlace:
    """A place in a defs.yaml.

    Attributes:
        context: What Dagster resolves the value with that stands there; None for what was
            written in Python.
    """

    context: dg.ResolutionContext | None = None

    def at(self, *path: str | int) -> "YamlPlace":
        """Return the place of what lies below this one."""
        context = self.context
        for part in path:
            context = context and context.at_path(part)
        return YamlPlace(context)

    def error(self, subject: str, error: Exception) -> Exception:
        """Return what to raise for ``error``: with file, line and excerpt if it is known where.

        Args:
            subject: What stands there, such as ``node 'upper'``.
            error: What was found wrong.
        """
        tree = self.context and self.context.source_position_tree
        if not tree or not self.context or isinstance(error, DefsYamlError):
            return error
        found = tree.source_error(
            yaml_path=self.context.path, inline_error_message="here", value_error=False
        )
        ours = isinstance(error, DataOpsError)
        reason = str(error) if ours else f"{type(error).__name__}: {error}"
        place = f"{found.file_name}:{found.start_line_no}"
        return DefsYamlError(place, subject, reason, without_named(found.snippet))


NOWHERE: Final = YamlPlace()


def rendered(context: dg.ResolutionContext, value: Any) -> Any:
    r"""Return ``value`` with the templates in it filled in, and all else as it was written.

    Dagster takes every text as a template, and what comes of it as a Python literal: ``"007"``
    would be the number 7, and ``"\n"`` the empty text. As an option of an operator they stay.
    """
    if isinstance(value, str):
        template = any(mark in value for mark in _TEMPLATES)
        return context.resolve_value(value, as_type=object) if template else value
    if isinstance(value, list):
        return [rendered(context.at_path(place), item) for place, item in enumerate(value)]
    if isinstance(value, dict):
        return {name: rendered(context.at_path(name), item) for name, item in value.items()}
    return value


def beside(context: dg.ResolutionContext, path: str) -> Path:
    """Return ``path`` taken from the folder of the defs.yaml."""
    tree = context.source_position_tree
    folder = Path(tree.position.filename).parent if tree else Path()
    return Path(os.path.normpath(folder / Path(path).expanduser()))


def in_project(context: dg.ResolutionContext, path: str) -> Path:
    """Return ``path`` taken from the folder of the project."""
    project = dg.ComponentLoadContext.from_resolution_context(context).project_root
    return Path(os.path.normpath(project / Path(path).expanduser()))

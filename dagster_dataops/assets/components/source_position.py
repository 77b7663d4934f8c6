"""YamlPlace: a position in a defs.yaml, for errors with file and line."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import dagster as dg
from pydantic import WithJsonSchema

from dagster_dataops.errors import DataOpsError, DefsYamlError
from dagster_dataops.operators.secrets.secret_texts import without_named

_TEMPLATES: Final = ("{{", "{%", "{#")
TEMPLATE: Final = r"\{[{%]"  # pattern of a text that may be a template


def or_template(kind: str, **limits: Any) -> WithJsonSchema:
    """Return the JSON Schema of a field that takes a ``kind`` or a template.

    For a union, `dg check yaml` would only report that no member fits.
    """
    return WithJsonSchema({"type": [kind, "string"], "pattern": TEMPLATE, **limits})


@dataclass(frozen=True, slots=True)
class YamlPlace:
    """A position in a defs.yaml.

    Attributes:
        context: Context in which Dagster resolves the value there; None for a value in Python.
    """

    context: dg.ResolutionContext | None = None

    def at(self, *path: str | int) -> "YamlPlace":
        """Return a position below this one."""
        context = self.context
        for part in path:
            context = context and context.at_path(part)
        return YamlPlace(context)

    @property
    def text(self) -> str:
        """The file and the line, as far as they are known."""
        position = self._position
        return f"{position.file_name}:{position.start_line_no}" if position else "defs.yaml"

    @property
    def _position(self) -> Any:
        tree = self.context and self.context.source_position_tree
        if not tree or not self.context:
            return None
        return tree.source_error(
            yaml_path=self.context.path, inline_error_message="here", value_error=False
        )

    def beside(self, path: str) -> str:
        """Return the path of a file beside the defs.yaml; any other text is returned as it is.

        The path is relative to the working directory where that is a folder above, so that it is
        the same on each machine.
        """
        file = self.context and beside(self.context, path)
        if not path or not isinstance(file, Path) or not os.path.exists(file):  # noqa: PTH110
            return path
        work = Path.cwd()
        return str(file.relative_to(work) if file.is_relative_to(work) else file)

    def error(self, subject: str, error: Exception) -> Exception:
        """Return the error to raise for ``error``, with file, line and excerpt if known."""
        position = None if isinstance(error, DefsYamlError) else self._position
        if position is None:
            return error
        ours = isinstance(error, DataOpsError)
        reason = str(error) if ours else f"{type(error).__name__}: {error}"
        return DefsYamlError(self.text, subject, reason, without_named(position.snippet))


NOWHERE: Final = YamlPlace()


def has_template(text: str) -> bool:
    """Return whether Dagster would fill in templates of a text."""
    return any(mark in text for mark in _TEMPLATES)


def rendered(context: dg.ResolutionContext, value: Any) -> Any:
    r"""Return ``value`` with its templates filled in and everything else unchanged.

    Dagster would evaluate every text as a template and its result as a Python literal: ``"007"``
    would become the number 7, and ``"\n"`` the empty text.
    """
    if isinstance(value, str):
        return context.resolve_value(value, as_type=object) if has_template(value) else value
    if isinstance(value, list):
        return [rendered(context.at_path(place), item) for place, item in enumerate(value)]
    if isinstance(value, dict):
        return {name: rendered(context.at_path(name), item) for name, item in value.items()}
    return value


def written(context: dg.ResolutionContext, model: dg.Model) -> dict[str, Any]:
    """Return the fields that a defs.yaml sets, with templates filled in."""
    values: dict[str, Any] = rendered(context, model.model_dump(exclude_unset=True))
    return values


def beside(context: dg.ResolutionContext, path: str) -> Path | str:
    """Return ``path`` relative to the folder of the defs.yaml; a URL is returned as it is."""
    if "://" in path:
        return path
    tree = context.source_position_tree
    folder = Path(tree.position.filename).parent if tree else Path()
    return Path(os.path.normpath(folder / Path(path).expanduser()))


def in_project(context: dg.ResolutionContext, path: str) -> Path:
    """Return ``path`` relative to the folder of the project."""
    project = dg.ComponentLoadContext.from_resolution_context(context).project_root
    return Path(os.path.normpath(project / Path(path).expanduser()))

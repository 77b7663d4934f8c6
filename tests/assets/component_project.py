"""A project whose defs folder holds components, for tests."""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.testing.utils import DefsFolderSandbox

from dagster_dataops import OperatorPipelineComponent
from tests.assets.helpers import numbered, write_jsonl

# Dagster warns of its own calls when it loads a defs folder and describes its content.
WARNED_OF = [
    pytest.mark.filterwarnings(f"ignore::{name}")
    for name in ("dagster.BetaWarning", "dagster.PreviewWarning", "DeprecationWarning")
]

OPERATORS = '''
from dagster_dataops import To, data_register

@data_register("data.{group}", outputs=("train", "test"), _concurrency_mode="single")
def split(record: dict):
    return To("test" if record["id"] % 2 else "train")

@data_register("data.{group}", _concurrency_mode="single")
def mark(record: dict, key: str = "mark", value: object = 1) -> dict:
    """Mark a record."""
    record[key] = value
    return record

@data_register("data.{group}", rewrite_func="forward_batch_input", _concurrency_mode="single")
def join(first: list[dict], second: list[dict]) -> list[dict]:
    return [*first, *second]

class Picky:
    def __init__(self, size: int = 1, **kwargs):
        if size > 9:
            raise ValueError("size is at most 9")

    def forward(self, record: dict) -> dict:
        return record

data_register("data.{group}", _concurrency_mode="single")(Picky)

def made_up():
    """Records made up."""
    yield from ({{"id": number}} for number in range(3))
'''


class Project:
    """A project. Each has a separate group of operators, ``{group}`` in its files."""

    def __init__(self, sandbox: DefsFolderSandbox) -> None:
        self.sandbox = sandbox
        self.group = sandbox.project_name
        self.defs = sandbox.defs_folder_path

    def write(self, attributes: str, folder: str = "docs", type_name: str | None = None) -> Path:
        """Write the defs.yaml of a component, its operators and its records."""
        path = self.defs / folder / "defs.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        name = type_name or "dagster_dataops.OperatorPipelineComponent"
        attributes = textwrap.dedent(attributes).replace("{group}", self.group)
        path.write_text(f"type: {name}\nattributes:\n{textwrap.indent(attributes, '  ')}")
        (path.parent / "operators.py").write_text(OPERATORS.format(group=self.group))
        write_jsonl(path.parent / "texts.jsonl", list(numbered(4)))
        return path

    @contextmanager
    def loaded(self) -> Iterator[dg.Definitions]:
        """The definitions of everything in the project."""
        with self.sandbox.build_all_defs() as definitions:
            yield definitions

    @contextmanager
    def component(self, folder: str = "docs") -> Iterator[tuple[Any, dg.Definitions]]:
        """A component, and the definitions that it builds."""
        with self.sandbox.build_component_tree() as tree:
            component = tree.load_component(self.defs / folder)
            assert isinstance(component, OperatorPipelineComponent)
            context = tree.load_context.for_path(self.defs / folder)
            yield component, component.build_defs(context)

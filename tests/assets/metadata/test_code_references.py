"""Tests of code references: the file and line of an operator's source."""

import functools
import inspect
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops.assets.metadata.code_references import code_references, source_place
from tests.assets.helpers import definitions_of, pipeline_of, spec_of
from tests.registries import OperatorRegistry


def logged(function: Any) -> Any:
    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return inner


@logged
def wrapped(record: dict) -> dict:
    return record


class Outer:
    @logged
    class Decorated:
        """The decorator is the first line of a decorated class, as of a decorated function."""

    class Plain:
        pass


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip() == text)


@pytest.mark.parametrize(
    ("target", "text"),
    [(logged, "def logged(function: Any) -> Any:"), (Outer.Plain, "class Plain:")],
    ids=["function", "nested class"],
)
def test_functions_and_classes_are_found(target: Any, text: str) -> None:
    assert source_place(target) == (str(Path(__file__).absolute()), line_of(text))


def test_a_wrapped_function_leads_to_its_original_source() -> None:
    expected = inspect.getsourcelines(inspect.unwrap(wrapped))[1]
    assert source_place(wrapped) == (str(Path(__file__).absolute()), expected)
    assert source_place(functools.partial(wrapped)) == source_place(wrapped)
    decorated = Outer.Decorated.__wrapped__  # type: ignore[attr-defined]
    place = source_place(decorated)
    assert place is not None
    assert place[1] == line_of("class Decorated:") - 1


def test_code_without_a_file_has_no_reference() -> None:
    typed: dict[str, Any] = {}
    exec("def prompt(record): return record\nclass Prompt: pass", typed)  # noqa: S102
    for target in (typed["prompt"], typed["Prompt"], len, dict, 5):
        assert code_references(target) == {}


def test_an_operators_asset_opens_its_source(registry: OperatorRegistry, root: Path) -> None:
    @registry("data.text")
    def referred(record: dict) -> dict:
        return record

    group = registry.new_group("classes")

    class Referred(group):
        def forward(self, record: dict) -> dict:
            return record

    ppl = pipeline_of(one=referred(), two=Referred())
    definitions = definitions_of(ppl, "texts.jsonl", root)
    found = []
    for name in ("one", "two"):
        value = spec_of(definitions, "docs", name).metadata["dagster/code_references"]
        assert isinstance(value, dg.CodeReferencesMetadataValue)
        found += value.code_references
    assert [(r.file_path, r.line_number) for r in found] == [
        (str(Path(__file__).absolute()), line_of('@registry("data.text")')),
        (str(Path(__file__).absolute()), line_of("class Referred(group):")),
    ]

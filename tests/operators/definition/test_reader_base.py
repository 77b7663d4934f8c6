"""Tests that readers are recognized by the annotation of their return value."""

from typing import TYPE_CHECKING

import pytest

from dagster_dataops.operators.definition.reader_base import returns_stream
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder as Builder

if TYPE_CHECKING:
    from dagster_dataops.streams.data_pipeline import DataPipelineBuilder


def resolved() -> Builder: ...


def as_text() -> "Builder": ...


def not_importable() -> "DataPipelineBuilder": ...


@pytest.mark.parametrize("function", [resolved, as_text, not_importable])
def test_a_function_annotated_to_return_a_stream_is_a_reader(function):
    assert returns_stream(function)


def another() -> "list[dict]": ...


def unknown() -> "Missing": ...  # noqa: F821


@pytest.mark.parametrize("function", [another, unknown, lambda: None])
def test_a_function_with_another_annotation_is_not_a_reader(function):
    assert not returns_stream(function)

"""Tests of dagster_dataops.operators.options.artefact_options."""

import pickle
from pathlib import Path

from dagster_dataops.datasets.artefact import Artefact
from dagster_dataops.operators.options.artefact_options import (
    ArtefactReference,
    NodeReference,
    as_option,
    referenced,
    with_references,
)

INDEX = ArtefactReference("index")


def test_a_node_and_a_handle_are_replaced_also_inside_containers() -> None:
    handle = Artefact(Path("/a"), "0" * 32, 1, 1)
    given = {"first": [NodeReference("index"), "index"], "second": ({"x": handle},)}
    assert as_option(given) == {"first": [INDEX, "index"], "second": ({"x": Path("/a")},)}


def test_other_values_stay_the_same_objects() -> None:
    for value in ("text", [1, [2]], {"a": ("b", {})}, object()):
        assert as_option(value) is value
        assert with_references(value, {}) is value


def test_a_container_may_contain_itself() -> None:
    value: list[object] = [INDEX]
    value.append(value)
    assert set(referenced(value)) == {"index"}
    assert as_option(value) is value


def test_references_are_found_in_order_and_replaced() -> None:
    value = [INDEX, {"other": ArtefactReference("other")}, "index"]
    assert list(referenced(value)) == ["index", "other"]
    found = with_references(value, {"index": Path("/i"), "other": Path("/o")})
    assert found == [Path("/i"), {"other": Path("/o")}, "index"]


def test_a_reference_is_shown_and_pickled() -> None:
    assert repr(INDEX) == "<artefact index>"
    assert pickle.loads(pickle.dumps(INDEX)) == INDEX

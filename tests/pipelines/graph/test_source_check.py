"""Tests of sources and graphs: crude sources are cooked, exports have the declared types."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dagster_dataops import config, cook, data, pipeline
from dagster_dataops.errors import ExportError, PipelineDefinitionError
from dagster_dataops.pipelines.graph.source_check import with_source
from dagster_dataops.pipelines.local_run import run_operator
from tests.registries import OperatorRegistry

registry = OperatorRegistry(run_operator)
COLUMNS = {"n": float, "tags": list[str | None], "note": str | None, "any": Any}


def measured(record: Any) -> Any:
    return record


def same(record: Any) -> Any:
    return record


measure = registry("data.exporting", columns=COLUMNS)(measured)
count = registry("data.exporting", writes={"n": int})(same)


def types_in(path: Path) -> dict[str, str]:
    return {field.name: str(field.type) for field in pq.read_schema(path)}


def declared(ppl: Any) -> dict[str, Any]:
    graph = with_source(ppl.graph)
    return {name: dict(node.operator.__dataops__.columns) for name, node in graph.nodes.items()}


def test_an_export_has_the_declared_types_of_what_it_writes(root: Path) -> None:
    with pipeline("typed") as ppl:
        ppl.made = measure()
        ppl.file = data.export.Parquet("made.parquet")
    ppl.materialize([{"n": 1, "tags": [], "note": None, "any": True}])
    assert types_in(root / "made.parquet") == {
        "n": "double",
        "tags": "list<element: string>",
        "note": "string",
        "any": "bool",
    }


def test_columns_that_no_record_has_are_there(root: Path) -> None:
    made = measure().set_output(str(root / "made.parquet"))
    made([])
    assert types_in(root / "made.parquet")["tags"] == "list<element: string>"
    made([{"n": 2}])
    assert pq.read_table(root / "made.parquet").to_pylist() == [
        {"n": 2.0, "tags": None, "note": None}
    ]


def test_a_schema_goes_before_declared_types(root: Path) -> None:
    with pipeline("typed") as ppl:
        ppl.made = measure()
        ppl.file = data.export.Parquet("made.parquet", schema={"n": "float"})
    ppl.materialize([{"n": 1}])
    assert types_in(root / "made.parquet")["n"] == "float"


def test_a_value_that_does_not_fit_a_declared_type_fails_the_export(root: Path) -> None:
    with pytest.raises(ExportError, match=r"0\.5.*int64"):
        count().set_output(str(root / "made.parquet"))([{"n": 1}, {"n": 0.5}])


def test_changed_types_make_the_export_anew(root: Path) -> None:
    config.data_process_resume = True
    for kind in (float, int):
        made = registry("data.exporting", writes={"n": kind})(same)
        made().set_output(str(root / "made.parquet"))([{"n": 1}])
    assert types_in(root / "made.parquet") == {"n": "int64"}


def test_columns_pass_through_nodes_that_keep_them() -> None:
    with pipeline("typed") as ppl:
        ppl.made = measure()
        ppl.unique = data.dedup.Exact(input_key="note")
        ppl.counted = count()
        ppl.file = data.export.Csv("a.csv")
    found = declared(ppl)
    assert found["file"] == {**COLUMNS, "n": int}
    assert found["made"] == {}


class Source:
    """A source with one dataset."""

    is_crude = True
    sources = ()


def graph_of(*nodes):
    with pipeline("p") as ppl:
        for number, node in enumerate(nodes):
            setattr(ppl, f"n{number}", node)
    return ppl.graph


def test_only_nodes_that_take_a_crude_source_must_cook():
    unique = data.dedup.Exact(input_key="text")
    with_source(graph_of(cook(dict), unique), Source())
    with_source(graph_of(unique), object())
    with pytest.raises(PipelineDefinitionError, match="node 'n0' takes the source, which is crude"):
        with_source(graph_of(unique, cook(dict)), Source())

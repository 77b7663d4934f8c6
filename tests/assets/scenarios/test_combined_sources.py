"""Tests of combined results, inside a pipeline and as the source of another."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataPipeline, Pipeline, combine, pipeline, read_jsonl, read_sequence
from dagster_dataops.errors import PipelineDefinitionError
from tests.assets.helpers import (
    definitions_of,
    execute,
    metadata_of,
    numbered,
    result_of,
    spec_of,
    write_jsonl,
)
from tests.registries import OperatorRegistry

ROWS = list(numbered(30))


@pytest.fixture
def marked(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="single")
    def marked(record: dict, mark: str) -> dict:
        return record | {"text": f"{mark}: {record['text']}"}

    return marked


def mixing(marked: Any, **given: Any) -> Pipeline:
    with pipeline("docs") as ppl:
        ppl.a = marked(mark="a")
        ppl.add("b", marked(mark="b"), inputs=[ppl.source])
        ppl.mix = combine.sample([ppl.a, ppl.b], **{"weights": [0.7, 0.3], "seed": 4, **given})
        ppl.after = marked(mark="after")
    return ppl


def drawn(weights: list[float], seed: int = 4) -> list[dict[str, Any]]:
    parts = [
        read_sequence([{**row, "text": f"{mark}: {row['text']}"} for row in ROWS]) for mark in "ab"
    ]
    return list(DataPipeline.sample(*parts, weights=weights, seed=seed))


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_a_combination_is_an_asset_that_depends_on_exactly_its_inputs(
    layout: Any, marked: Any, tmp_path: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    path = write_jsonl(tmp_path / "texts.jsonl", ROWS)
    definitions = definitions_of(mixing(marked), path, root, layout=layout)
    deps = spec_of(definitions, "docs", "mix").deps
    assert [dep.asset_key.path[-1] for dep in deps] == ["a", "b"]
    result = execute(definitions, instance)
    assert result_of(root, "docs", "mix") == drawn([0.7, 0.3])
    found = metadata_of(result, "docs", "mix")
    lineage = found["dagster/column_lineage"].deps_by_column
    for column in ("id", "text"):
        named = [(dep.asset_key.path[-1], dep.column_name) for dep in lineage[column]]
        assert named == [("a", column), ("b", column)]
    assert "passed through" in found["columns"]
    assert [column.name for column in found["dagster/column_schema"].columns] == ["id", "text"]
    assert found["seeds"] == {"read_jsonl,read_jsonl>sample": "4"}
    assert len(result_of(root, "docs", "after")) == len(drawn([0.7, 0.3]))


def test_other_weights_are_another_code_version(marked: Any, root: Path) -> None:
    def version(**given: Any) -> str | None:
        definitions = definitions_of(mixing(marked, **given), "texts.jsonl", root)
        return spec_of(definitions, "docs", "mix").code_version

    assert version() == version()
    assert len({version(), version(weights=[0.6, 0.4]), version(seed=5)}) == 3


def test_weights_are_changed_in_the_launchpad(
    marked: Any, tmp_path: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    path = write_jsonl(tmp_path / "texts.jsonl", ROWS)
    definitions = definitions_of(mixing(marked), path, root)
    chosen = {"ops": {"docs__mix": {"config": {"params": {"weights": [0.1, 0.9]}}}}}
    execute(definitions, instance, chosen)
    assert result_of(root, "docs", "mix") == drawn([0.1, 0.9])


@pytest.mark.slow
def test_partitions_are_combined_one_by_one(
    marked: Any, tmp_path: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    for key in ("x", "y"):
        rows = [row | {"text": key} for row in ROWS[:3]]
        write_jsonl(tmp_path / f"{key}.jsonl", rows)
    with pipeline("docs") as ppl:
        ppl.a = marked(mark="a")
        ppl.add("b", marked(mark="b"), inputs=[ppl.source])
        ppl.mix = combine.concat([ppl.a, ppl.b])
        ppl.add("whole", combine.concat([ppl.mix, ppl.a]).operator, inputs=[ppl.mix, ppl.a])
    definitions = definitions_of(
        ppl,
        str(tmp_path / "{partition}.jsonl"),
        root,
        partitions_def=dg.StaticPartitionsDefinition(["x", "y"]),
        unpartitioned=["whole"],
    )
    nodes = [["docs", name] for name in ("a", "b", "mix")]
    for key in ("x", "y"):
        execute(definitions, instance, only=nodes, partition_key=key)
    place = root / "docs/mix/partitions/y/mix_results.jsonl"
    assert [row["text"] for row in read_jsonl(place)] == ["a: y"] * 3 + ["b: y"] * 3
    execute(definitions, instance, only=[["docs", "whole"]])
    texts = [row["text"] for row in result_of(root, "docs", "whole")]
    assert texts == [f"{mark}: {key}" for key in "xy" for mark in "ab" for _ in range(3)] + [
        f"a: {key}" for key in "xy" for _ in range(3)
    ]


@pytest.fixture
def two(marked: Any) -> Any:
    with pipeline("good") as good:
        good.kept = marked(mark="good")
    with pipeline("training") as training:
        training.done = marked(mark="done")
    return good, training


def test_assets_of_other_pipelines_and_files_are_combined_into_a_source(
    two: Any, tmp_path: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    good, training = two
    texts = write_jsonl(tmp_path / "texts.jsonl", ROWS)
    extra = write_jsonl(tmp_path / "extra.jsonl", ROWS[:5])

    @dg.asset(io_manager_key="dataops_io")
    def raw() -> list[dict[str, Any]]:
        return ROWS[:7]

    first = definitions_of(good, texts, root)
    mixed = combine.sample(
        [dg.AssetKey(["good", "kept"]), raw, str(extra)], weights=[0.6, 0.3, 0.1], seed=2
    )
    both = dg.Definitions.merge(
        first, definitions_of(training, mixed, root, others=[raw], stream_name="mix")
    )
    deps = [dep.asset_key.to_user_string() for dep in spec_of(both, "training", "mix").deps]
    assert deps == ["good/kept", "raw", "training/extra"]
    result = execute(both, instance)
    kept = [{**row, "text": f"good: {row['text']}"} for row in ROWS]
    parts = [read_sequence(kept), read_sequence(ROWS[:7]), read_sequence(ROWS[:5])]
    wanted = list(DataPipeline.sample(*parts, weights=[0.6, 0.3, 0.1], seed=2))
    assert result_of(root, "training", "mix") == wanted
    assert len(result_of(root, "training", "done")) == len(wanted)
    found = metadata_of(result, "training", "mix")
    lineage = found["dagster/column_lineage"].deps_by_column["text"]
    assert [dep.asset_key.path[-1] for dep in lineage] == ["kept", "raw", "extra"]
    previewed = both.resolve_job_def("training_preview").execute_in_process(instance=instance)
    assert previewed.success


def test_a_source_combines_no_nodes_and_no_streams(two: Any, root: Path) -> None:
    _, training = two
    for one in (read_sequence(ROWS), 5, "docs.jsonl.gz"):
        with pytest.raises(PipelineDefinitionError, match="a source combines assets"):
            definitions_of(training, combine.concat(["texts.jsonl", one]), root)


@pytest.mark.slow
def test_a_combination_that_failed_resumes_when_it_is_launched_again(
    registry: OperatorRegistry, tmp_path: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    class Trouble(registry.new_group("trouble")):  # type: ignore[misc]
        """Concatenates inputs and fails once on the way."""

        def __init__(self, home: str, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.home = home

        def stream(self, *rows: Any) -> Any:
            place = Path(self.home)

            def once(row: dict[str, Any]) -> dict[str, Any]:
                import time

                time.sleep(0.06)
                if row["id"] == 25 and not (place / "once").exists():
                    (place / "once").touch()
                    raise OSError("trouble")
                return row

            return DataPipeline.concat(*rows).map(once)

    with pipeline("docs") as ppl:
        ppl.mix = Trouble(home=str(tmp_path))
    definitions = definitions_of(ppl, write_jsonl(tmp_path / "texts.jsonl", ROWS), root)
    with pytest.raises(OSError, match="trouble"):
        execute(definitions, instance)
    result = execute(definitions, instance)
    assert result_of(root, "docs", "mix") == ROWS
    assert 10 < metadata_of(result, "docs", "mix")["rows_resumed"] <= 25


def test_a_combination_is_written_in_yaml_by_the_name_of_its_operator() -> None:
    from dagster_dataops.assets.components.operator_declaration import (
        OperatorDeclaration,
        assembled,
    )
    from dagster_dataops.assets.components.source_position import NOWHERE

    nodes = [
        OperatorDeclaration(name="a", operator="text.Normalize"),
        OperatorDeclaration(name="b", operator="text.Normalize", inputs=["source"]),
        OperatorDeclaration(
            name="mix",
            operator="combine.Sample",
            options={"weights": [1, 2], "seed": 1},
            inputs=["a", "b"],
        ),
    ]
    ppl = assembled("docs", nodes, NOWHERE)
    assert ppl.graph.nodes["mix"].inputs == ("a", "b")
    nodes[-1].options["weights"] = [1]
    with pytest.raises(PipelineDefinitionError, match="2 streams and 1 weight"):
        assembled("docs", nodes, NOWHERE)

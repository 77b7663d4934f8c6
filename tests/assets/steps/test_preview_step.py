"""Tests of previews: the first records through an operator, with no other change."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import Pipeline, assets, pipeline
from tests.assets.helpers import (
    asset_of,
    definitions_of,
    execute,
    log_of,
    numbered,
    pipeline_of,
    read_jsonl,
    resource_at,
    result_of,
    write_jsonl,
)
from tests.nodes import deleting
from tests.registries import OperatorRegistry
from tests.small_files import png


@pytest.fixture
def ppl(registry: OperatorRegistry) -> Pipeline:
    """Two operators; the first fails at record 1 and drops record 2."""

    @registry("data.text", _concurrency_mode="thread")
    def shout(record: dict, mark: str = "!") -> dict | list:
        if record["id"] == 1:
            msg = "one is too loud"
            raise ValueError(msg)
        return [] if record["id"] == 2 else record | {"text": record["text"].upper() + mark}

    @registry("data.text", rewrite_func="forward_batch_input")
    def backwards(records: list[dict]) -> list[dict]:
        return records[::-1]

    return pipeline_of(shout=shout(), backwards=backwards())


def files_of(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file except previews, with its modification time and content."""
    assert deleting.finish(60)
    return {
        str(path.relative_to(root)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".preview" not in path.parts
    }


def limited(**limits: int) -> dict[str, Any]:
    return {"ops": {f"docs__{node}": {"config": {"limit": n}} for node, n in limits.items()}}


def observations(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    """Metadata of the observations, by node."""
    found = [event.asset_observation_data.asset_observation for event in result.all_events
             if event.event_type_value == "ASSET_OBSERVATION"]  # fmt: skip
    return {
        one.asset_key.path[-1]: {name: value.value for name, value in one.metadata.items()}
        for one in found
    }


def test_a_preview_has_the_images_of_its_records(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(png())
    rows = [{**row, "image": {"file": str(tmp_path / "a.png")}} for row in numbered(9)]
    definitions = definitions_of(ppl, write_jsonl(tmp_path / "images.jsonl", rows), root)

    result = execute(definitions, instance, limited(shout=4), only=[["docs", "shout"]])

    header, _, pictures = observations(result)["shout"]["preview/thumbnails"].splitlines()
    assert header == "| record | 1 | 2 |"
    assert pictures.count("![](data:image/png;base64,") == 2


def test_a_preview_shows_the_first_records_and_replaces_nothing(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance, records: Any
) -> None:
    definitions = definitions_of(ppl, records(9), root)
    execute(definitions, instance)
    leftover = root / "docs" / "shout" / "checkpoints" / "unfinished" / "journal"
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(b"left by a killed run")
    key = dg.AssetKey(["docs", "shout"])
    before, version = files_of(root), instance.get_latest_materialization_event(key)

    result = execute(definitions, instance, limited(shout=4), only=[["docs", "shout"]])

    assert result.success
    assert instance.get_latest_materialization_event(key) == version
    assert result.get_asset_materialization_events() == []
    assert files_of(root) == before
    found = observations(result)["shout"]
    counts = {name: found[f"preview/rows_{name}"] for name in ("in", "out", "dropped", "failed")}
    assert counts == {"in": 4, "out": 2, "dropped": 1, "failed": 1}
    assert found["preview/limit"] == 4
    assert "TEXT 3\\!" in found["preview/records"]
    assert "one is too loud" in found["preview/errors"]
    assert not any(name.startswith("dagster") for name in found)
    shown = read_jsonl(Path(found["preview/path"]))
    assert shown == [{"id": 0, "text": "TEXT 0!"}, {"id": 3, "text": "TEXT 3!"}]
    assert any(
        "4 records: 2 out, 1 dropped, 1 failed" in line for line in log_of(instance, result.run_id)
    )


def test_a_preview_takes_the_published_result_of_the_asset_before_it(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance, records: Any
) -> None:
    definitions = definitions_of(ppl, records(9), root)
    execute(definitions, instance)

    result = execute(definitions, instance, limited(backwards=2), only=[["docs", "backwards"]])

    shown = read_jsonl(Path(observations(result)["backwards"]["preview/path"]))
    assert [record["id"] for record in shown] == [3, 0]
    assert len(result_of(root, "docs", "backwards")) == 7


def test_steps_downstream_of_a_preview_are_skipped_and_the_run_succeeds(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance, records: Any
) -> None:
    definitions = definitions_of(ppl, records(9), root)
    result = execute(definitions, instance, limited(shout=3))

    assert result.success
    assert result.get_asset_materialization_events() == []
    skipped = [e.step_key for e in result.all_events if e.event_type_value == "STEP_SKIPPED"]
    assert skipped == ["docs__backwards"]
    assert not (root / "docs" / "backwards").exists()


def test_the_next_preview_takes_the_place_of_the_last(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance, records: Any
) -> None:
    definitions = definitions_of(ppl, records(9), root)
    paths = []
    for limit in (7, 1):
        result = execute(definitions, instance, limited(shout=limit), only=[["docs", "shout"]])
        paths.append(observations(result)["shout"]["preview/path"])
    assert paths[0] == paths[1]
    assert len(read_jsonl(Path(paths[1]))) == 1


def test_bad_lines_count_as_records_of_a_preview(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    source = tmp_path / "texts.jsonl"
    source.write_bytes(b'\n{"id": 0, "text": "a"}\nno json\n{"id": 5, "text": "b"}\n')
    result = execute(
        definitions_of(ppl, source, root), instance, limited(shout=2), only=[["docs", "shout"]]
    )
    found = observations(result)["shout"]
    assert (found["preview/rows_in"], found["preview/rows_failed"]) == (2, 1)


def test_a_preview_with_a_negative_limit_is_refused(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance, records: Any
) -> None:
    definitions = definitions_of(ppl, records(9), root)
    with pytest.raises(dg.Failure, match=r"docs/shout: Setting limit is -1; it must be a number"):
        execute(definitions, instance, limited(shout=-1))
    assert not (root / "docs").exists()


# ------------------------------------------------------------ the whole pipeline


def preview(
    definitions: dg.Definitions, instance: dg.DagsterInstance, **config: Any
) -> dg.ExecuteInProcessResult:
    job = definitions.resolve_job_def("docs_preview")
    run_config = {"ops": {"preview_docs": {"config": config}}}
    return job.execute_in_process(run_config=run_config, instance=instance)


def test_a_whole_pipeline_is_previewed_each_node_over_the_previews_before_it(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance, records: Any
) -> None:
    definitions = definitions_of(ppl, records(99), root)
    execute(definitions, instance)
    before = files_of(root)

    result = preview(definitions, instance, limit=5, params={"shout": {"mark": "?"}})

    assert result.success
    assert files_of(root) == before
    kinds = {event.event_type_value for event in result.all_events}
    assert not kinds & {"ASSET_MATERIALIZATION", "ASSET_MATERIALIZATION_PLANNED"}
    shown = read_jsonl(Path(observations(result)["backwards"]["preview/path"]))
    assert [(record["id"], record["text"]) for record in shown] == [
        (4, "TEXT 4?"),
        (3, "TEXT 3?"),
        (0, "TEXT 0?"),
    ]


def test_a_source_function_yields_only_the_first_records(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance
) -> None:
    asked = []

    def texts() -> Iterable[dict[str, Any]]:
        for record in numbered(1000):
            asked.append(record["id"])
            yield record

    result = preview(definitions_of(ppl, texts, root), instance, limit=3)

    assert asked == [0, 1, 2]
    assert observations(result)["shout"]["preview/rows_in"] == 3


def test_a_join_takes_the_previews_of_all_its_inputs(
    registry: OperatorRegistry, root: Path, instance: dg.DagsterInstance, records: Any
) -> None:
    @registry("data.text", _concurrency_mode="thread")
    def keep(record: dict) -> dict:
        return record

    @registry("data.text", rewrite_func="forward_batch_input")
    def join(left: list, right: list) -> list:
        return [{"left": len(left), "right": len(right)}]

    with pipeline("docs") as joined:
        joined.keep = keep()
        joined.add("both", join(), inputs=[joined.keep, joined.source])
    result = preview(definitions_of(joined, records(50), root), instance, limit=4)
    assert read_jsonl(Path(observations(result)["both"]["preview/path"])) == [
        {"left": 4, "right": 4}
    ]


@pytest.mark.parametrize("limit", [0, -2])
def test_a_preview_of_nothing_is_refused_before_anything_runs(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance, records: Any, limit: int
) -> None:
    with pytest.raises(dg.Failure, match="a preview takes at least 1 record"):
        preview(definitions_of(ppl, records(9), root), instance, limit=limit)
    assert not (root / "docs").exists()


LETTERS = dg.StaticPartitionsDefinition(["c", "a", "b"])


@pytest.fixture
def inbox(tmp_path: Path) -> str:
    """Files for two of three letters."""
    for key in "ca":
        rows = [{"id": number, "text": f"{key}{number}"} for number in range(0, 90, 3)]
        write_jsonl(tmp_path / f"inbox/{key}.jsonl", rows)
    return str(tmp_path / "inbox/{partition}.jsonl")


def texts_of(result: dg.ExecuteInProcessResult, node: str = "shout") -> list[str]:
    shown = read_jsonl(Path(observations(result)[node]["preview/path"]))
    return [record["text"] for record in shown]


@pytest.mark.parametrize(
    ("config", "expected"), [({}, "A"), ({"partition": "c"}, "C"), ({"partition": ""}, "A")]
)
def test_one_partition_is_previewed_by_default_the_last_existing_one(
    ppl: Pipeline,
    root: Path,
    instance: dg.DagsterInstance,
    inbox: str,
    config: dict[str, str],
    expected: str,
) -> None:
    definitions = definitions_of(
        ppl, inbox, root, partitions_def=LETTERS, unpartitioned=["backwards"]
    )
    result = preview(definitions, instance, limit=2, **config)

    assert texts_of(result) == [f"{expected}0!", f"{expected}3!"]
    assert texts_of(result, "backwards") == [f"{expected}3!", f"{expected}0!"]
    observed = [
        event.asset_observation_data.asset_observation.partition
        for event in result.all_events
        if event.event_type_value == "ASSET_OBSERVATION"
    ]
    assert observed == [expected.lower(), None]
    assert files_of(root) == {}


def test_an_invalid_or_missing_partition_is_refused(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance, inbox: str
) -> None:
    definitions = definitions_of(ppl, inbox, root, partitions_def=LETTERS)
    with pytest.raises(dg.Failure, match="there is no partition 'd'; the last are b, a, c"):
        preview(definitions, instance, partition="d")
    for path in Path(inbox).parent.iterdir():
        path.unlink()
    with pytest.raises(dg.Failure, match="no partition of docs/inbox exists yet"):
        preview(definitions, instance)


def test_a_source_function_is_called_for_one_partition(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance
) -> None:
    def texts(key: str) -> Iterable[dict[str, Any]]:
        return ({"id": 0, "text": key} for _ in range(9))

    definitions = definitions_of(ppl, texts, root, partitions_def=LETTERS)
    assert texts_of(preview(definitions, instance, limit=1)) == ["B!"]
    assert texts_of(preview(definitions, instance, limit=1, partition="c")) == ["C!"]


def test_of_a_partitioned_asset_the_last_materialized_partition_is_previewed(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(io_manager_key="dataops_io", partitions_def=LETTERS)
    def raw(context: dg.AssetExecutionContext) -> list[dict[str, Any]]:
        return [{"id": 0, "text": context.partition_key}]

    definitions = definitions_of(ppl, raw, root, others=[raw], partitions_def=LETTERS)
    for key in "ac":
        execute(definitions, instance, only=[["raw"]], partition_key=key)
    assert texts_of(preview(definitions, instance)) == ["A!"]


def test_unknown_options_of_a_preview_are_refused_at_launch(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance, records: Any
) -> None:
    definitions = definitions_of(ppl, records(9), root)
    for params in ({"shot": {}}, {"shout": {"mrk": "?"}}):
        with pytest.raises(dg.DagsterInvalidConfigError):
            preview(definitions, instance, params=params)


def test_a_preview_of_a_source_asset_reads_its_last_materialization(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(io_manager_key="dataops_io")
    def raw() -> list[dict[str, Any]]:
        return list(numbered(9))

    definitions = definitions_of(ppl, raw, root, others=[raw])
    with pytest.raises(dg.Failure, match="launch this job in the UI"):
        preview(definitions, instance)
    execute(definitions, instance, only=[["raw"]])
    result = preview(definitions, instance, limit=4)
    assert observations(result)["shout"]["preview/rows_in"] == 4


def test_assets_may_materialize_nothing(ppl: Pipeline, root: Path) -> None:
    asset = asset_of(definitions_of(ppl, "texts.jsonl", root), "docs", "shout")
    assert {output.is_required for output in asset.op.output_defs} == {False}


# ------------------------------------------------------------ other layouts


def test_in_a_single_step_a_preview_takes_that_of_the_node_before_it(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance, records: Any
) -> None:
    definitions = definitions_of(ppl, records(99), root, layout="single_step")
    config = {"shout": {"limit": 5}, "backwards": {"limit": 2}}
    result = execute(definitions, instance, {"ops": {"docs": {"config": config}}})
    assert result.success
    assert result.get_asset_materialization_events() == []
    shown = read_jsonl(Path(observations(result)["backwards"]["preview/path"]))
    assert [record["id"] for record in shown] == [3, 0]
    assert files_of(root) == {}


def test_ops_pass_previews_on_and_do_not_publish_them(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance, records: Any
) -> None:
    job = assets.build_operator_job(
        ppl, source=records(99), resources={"dataops": resource_at(root)}
    )
    config = {"ops": {"shout": {"config": {"limit": 5}}}}
    result = job.execute_in_process(run_config=config, instance=instance)
    assert [row["id"] for row in result.output_for_node("backwards").read()] == [4, 3, 0]
    assert files_of(root) == {}

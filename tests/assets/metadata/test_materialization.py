"""The metadata of a materialization: counts, previews, prompts and tags."""

import json
import re
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.metadata.external_metadata import metadata_map_from_external

from dagster_dataops import (
    DataOpsResource,
    JsonlDataset,
    LLMDataJson,
    LLMOperator,
    ModelClient,
    OperatorContext,
    Price,
    build_definitions,
    data_register,
    pipeline,
)
from dagster_dataops.assets.metadata.markdown import INLINE_CHARACTERS
from dagster_dataops.assets.metadata.materialization import dataset_metadata, preview
from dagster_dataops.assets.metadata.pipes_metadata import pipes_metadata
from dagster_dataops.assets.metadata.prompt_metadata import prompt_metadata
from dagster_dataops.models.replies.latency import latency_count
from tests.assets.helpers import write_jsonl
from tests.each import each
from tests.registries import OperatorRegistry
from tests.small_files import png

DIGEST = f"sha256:ab{'c' * 62}"
HOSTILE = [
    "a | b",
    "`code`",
    "<img src=x onerror=alert(1)>",
    "![tracker](http://example.org/x.png)",
    "[link](http://example.org)",
    "*bold* _italic_ ~gone~",
    "&lt;",
    "back\\slash | pipe",
    "# heading",
]


def cells_of(table: str) -> list[list[str]]:
    """Return the cells of a Markdown table as shown, without the line below the header."""
    rows = [line.removeprefix("| ").removesuffix(" |") for line in table.splitlines()]
    split = [re.split(r"(?<!\\)(?:\\\\)*\|", row) for row in rows]
    return [[re.sub(r"\\(.)", r"\1", c.strip()) for c in r] for r in [split[0], *split[2:]]]


def test_a_preview_is_a_markdown_table() -> None:
    assert preview([{"id": 1, "text": "a"}, {"id": 2, "text": "b"}]).splitlines() == [
        "| id | text |",
        "| --- | --- |",
        "| 1 | a |",
        "| 2 | b |",
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_cells_and_columns_show_the_content_of_records(text: str) -> None:
    table = preview([{text: text, "next": "x"}])
    assert cells_of(table) == [[text, "next"], [text, "x"]]
    live = re.sub(r"\\.", "", "\n".join(table.splitlines()[2:]))  # without escaped characters
    assert not re.search(r"[`*~<>&!\[\]#]", live)


def test_line_ends_do_not_end_a_row() -> None:
    assert len(preview([{"text": "one\n\ntwo\r\nthree"}]).splitlines()) == 3


def test_long_values_and_many_columns_are_cut() -> None:
    table = preview([{f"c{number}": "x" * 1000 for number in range(12)}])
    assert cells_of(table.split("\n\n")[0])[1] == ["x" * 120 + "..."] * 8
    assert table.endswith("_and 4 more columns_")


def test_a_missing_key_is_an_empty_cell_and_null_is_null() -> None:
    table = preview([{"a": None}, {"b": [1, {"c": 2}]}])
    assert cells_of(table)[1:] == [["null", ""], ["", '[1,{"c":2}]']]


def test_an_empty_result_is_reported_as_empty() -> None:
    assert preview([]) == "_no rows_"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"file": "a/b/7.png", "size": 1234, "version": "modified:1"}, "7.png, 1 kB"),
        ({"file": "s.tar#0/7.png"}, "7.png"),
        ({"file": f"files/ab/{'c' * 62}", "size": 1, "digest": DIGEST}, "a file, 1 B"),
        (
            {"file": f"files/ab/{'c' * 62}", "digest": DIGEST, "media_type": "image/png"},
            "png",
        ),
        ({"file": "7.png", "page": 3}, '{"file":"7.png","page":3}'),
        ({"file": "7.png", "size": "big"}, '{"file":"7.png","size":"big"}'),
        ("a/b/7.png", "a/b/7.png"),
    ],
)
def test_a_preview_shows_a_reference_by_name_and_size(value: Any, shown: str) -> None:
    assert cells_of(preview([{"file": value, "text": "a"}])) == [["file", "text"], [shown, "a"]]


def test_thumbnails_stand_in_a_column_for_each_record(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    image = {"file": str(tmp_path / "a.png")}
    rows = [{"file": image, "small": [image, image]}, {"file": {"file": "gone.png"}}]
    rows.append({"file": image, "small": image})
    dataset = JsonlDataset.of_file(write_jsonl(tmp_path / "rows.jsonl", rows))

    shown = dataset_metadata(dataset)["dagster_dataops/thumbnails"].md_str

    table = re.sub(r"!\[\]\(data:image/png;base64,[^)]+\)", "picture", shown)
    assert table.splitlines() == [
        "| record | 1 | 3 |",
        "| --- | --- | --- |",
        "| file | picture | picture |",
        "| small | picture picture | picture |",
    ]


def test_a_file_that_is_not_jsonl_still_has_metadata(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text("no json\n{}\n")
    metadata = dataset_metadata(JsonlDataset.of_file(path))
    assert metadata["dagster/size_bytes"] == 11
    assert "line 1" in metadata["dagster_dataops/preview"].md_str
    assert "dagster/row_count" not in metadata


def test_rows_of_a_partition_are_not_called_rows_of_the_asset(tmp_path: Path) -> None:
    dataset = JsonlDataset(write_jsonl(tmp_path / "r.jsonl", [{"a": 1}]), 8, 1)
    assert dataset_metadata(dataset)["dagster/row_count"] == 1
    metadata = dataset_metadata(dataset, "2024-01-01")
    assert metadata["dagster/partition_row_count"] == 1
    assert "dagster/row_count" not in metadata


CLIENT = ModelClient(complete=lambda prompt: prompt.upper(), prices={"m": Price(1.0, 4.0)})


class Topic(LLMOperator):
    """Names a topic."""

    system = "Be brief."
    prompt = "Topic of ```{{ text }}```?"


class Hooks(LLMDataJson):
    """Asks as LazyLLM does."""

    _default_prompt = "Grade {content}"

    def preprocess(self, data: dict[str, Any]) -> Any:
        return {"content": data["text"]}, {"temperature": 0}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "in.jsonl", [{"text": f"t{n}"} for n in range(40)])


def prompt_of(operator: Any, path: Path) -> str:
    found = prompt_metadata(operator, [JsonlDataset.of_file(path)], "p/prompt")
    return str(found["p/prompt"].value) if found else ""


def test_the_messages_of_the_first_record_are_shown(registry: OperatorRegistry, source: Path):
    register: Any = registry("data.demo")

    shown = prompt_of(register(Topic)(model="m"), source)

    assert len(shown) >= INLINE_CHARACTERS  # the page would cut the lines off
    assert shown.rstrip() == (
        "**system**\n\n```text\nBe brief.\n```\n\n**user**\n\n````text\nTopic of ```t0```?\n````"
    )
    assert "Grade t0" in prompt_of(register(Hooks)(), source)


def test_without_a_prompt_nothing_is_shown(
    registry: OperatorRegistry, source: Path, tmp_path: Path
):
    operator: Any = registry("data.demo")(Topic)
    empty = write_jsonl(tmp_path / "empty.jsonl", [])

    assert prompt_of(operator(prompt="{{ other }}"), source) == ""
    assert prompt_of(operator(), empty) == ""


def test_the_page_shows_the_prompt_and_a_preview_begins_with_the_estimate(
    registry: OperatorRegistry, source: Path, tmp_path: Path
):
    operator: Any = registry("data.demo")(Topic)
    with pipeline("docs") as ppl:
        ppl.topic = operator(model="m", max_tokens=10, client=CLIENT)
    definitions = build_definitions(
        ppl,
        source=str(source),
        resource=DataOpsResource(root=str(tmp_path / "root")),
    )
    job = definitions.resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        config = {"ops": {"docs__topic": {"config": {"limit": 2}}}}
        preview = job.execute_in_process(instance=instance, run_config=config)
        (observed,) = [
            event.asset_observation_data.asset_observation
            for event in preview.all_events
            if event.event_type_value == "ASSET_OBSERVATION"
        ]
        result = job.execute_in_process(instance=instance)
    (made,) = [
        one
        for one in result.get_asset_materialization_events()
        if one.asset_key is not None and one.asset_key.path[-1] == "topic"
    ]

    assert list(observed.metadata)[:2] == ["preview/estimate", "preview/prompt"]
    assert str(observed.metadata["preview/estimate"].value).startswith(
        "all records of the input: 40 calls, $"
    )
    assert "Topic of" in str(observed.metadata["preview/prompt"].value)
    assert "Topic of" in str(made.materialization.metadata["dagster_dataops/prompt"].value)


_COLUMN = dg.TableColumn(
    "text",
    "string",
    description="what it is",
    constraints=dg.TableColumnConstraints(nullable=False, unique=True, other=["short"]),
    tags={"pii": ""},
)
VALUES = {
    "asset": dg.MetadataValue.asset(dg.AssetKey(["docs", "clean"])),
    "bool": dg.MetadataValue.bool(True),
    "float": dg.MetadataValue.float(0.5),
    "int": dg.MetadataValue.int(3),
    "json": dg.MetadataValue.json({"a": [1, None]}),
    "lineage": dg.MetadataValue.column_lineage(
        dg.TableColumnLineage(
            {"text": [dg.TableColumnDep(dg.AssetKey(["a/b", "c"]), "raw")], "new": []}
        )
    ),
    "md": dg.MetadataValue.md("| a |"),
    "notebook": dg.MetadataValue.notebook("/n.ipynb"),
    "null": dg.MetadataValue.null(),
    "path": dg.MetadataValue.path("/data/x"),
    "run": dg.MetadataValue.dagster_run("1234"),
    "schema": dg.MetadataValue.table_schema(dg.TableSchema([_COLUMN, dg.TableColumn("n", "int")])),
    "table": dg.MetadataValue.table(
        [dg.TableRecord({"text": "a"})], schema=dg.TableSchema([_COLUMN])
    ),
    "text": dg.MetadataValue.text("größer"),
    "timestamp": dg.MetadataValue.timestamp(1.5),
    "url": dg.MetadataValue.url("https://example.com"),
}


@each("name", list(VALUES))
def test_a_value_arrives_as_it_was(name):
    value = VALUES[name]
    sent = json.loads(json.dumps(pipes_metadata({name: value})))
    assert metadata_map_from_external(sent) == {name: value}


def test_a_value_that_pipes_does_not_know_arrives_as_a_text():
    sent = pipes_metadata({"job": dg.MetadataValue.job("clean", "here")})
    assert sent["job"]["type"] == "text"
    assert "clean" in sent["job"]["raw_value"]


data_register.new_group("counted")


@data_register("data.counted", _concurrency_mode="single")
def long_enough(record: dict[str, Any], context: OperatorContext) -> Any:
    context.count(words=len(record["text"].split()), cost=0.25)
    context.count(**{f"first_letter/{record['text'][0]}": 1, latency_count(2.0): 1})
    return record if len(record["text"]) > 3 else context.drop("too_short")


def test_sums_and_drops_are_metadata_of_the_asset(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": "a"}, {"text": "a b c"}, {"text": "b"}])
    with pipeline("counted") as ppl:
        ppl.long = long_enough()
    defs = build_definitions(
        ppl, source=str(source), resource=DataOpsResource(root=str(tmp_path / "root"))
    )
    job = defs.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=instance)
    made = result.asset_materializations_for_node("counted__long")[-1]
    metadata = made.metadata
    assert metadata["dagster_dataops/counted_words"].value == 5
    assert metadata["dagster_dataops/cost"].value == 0.75
    assert "| a | 2 |\n| b | 1 |" in str(metadata["dagster_dataops/first_letter"].value)
    assert metadata["dagster_dataops/latency_p95"].value == pytest.approx(2.0, rel=0.06)
    assert not [name for name in metadata if "counted_first" in name or "counted_lat" in name]
    drops = str(metadata["dagster_dataops/drops"].value)
    assert "too\\_short | 2 | 66.7 %" in drops
    examples = str(metadata["dagster_dataops/drop_examples"].value)
    assert 'too\\_short | 1 | {"text":"a"}' in examples
    assert 'too\\_short | 3 | {"text":"b"}' in examples

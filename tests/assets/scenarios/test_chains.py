"""Chains under Dagster: one asset, its metadata, the launchpad, a defs.yaml."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.core.component_tree import ComponentTreeException

from dagster_dataops import chain, data, data_register, pipeline
from tests.assets.component_project import WARNED_OF, Project
from tests.assets.helpers import (
    definitions_of,
    execute,
    metadata_of,
    read_jsonl,
    spec_of,
    write_jsonl,
)
from tests.assets.launchpad.options import params_of

pytestmark = WARNED_OF

data_register.new_group("chain_assets")


@data_register("data.chain_assets", _concurrency_mode="single")
def shorten(record: dict[str, Any], input_key: str = "text", most: int = 5) -> Any:
    """Cut a text."""
    return {**record, input_key: record[input_key][:most]}


@data_register("data.chain_assets", _concurrency_mode="single")
def weigh(record: dict[str, Any], input_key: str = "text", output_key: str = "size") -> Any:
    """Add the length of a text."""
    return {**record, output_key: len(record[input_key])}


@data_register("data.chain_assets", _concurrency_mode="single")
def keep_large(record: dict[str, Any], input_key: str = "size", least: int = 3) -> Any:
    """Drop small records."""
    from dagster_dataops import Drop

    if record["text"] == "bad":
        raise ValueError("it is bad")
    return None if record[input_key] >= least else Drop("small")


ROWS = [{"id": n, "text": text} for n, text in enumerate(["abcdefgh", "ab", "bad", "wxyz", "a"])]


def made(**options: Any) -> Any:
    return chain(
        data.chain_assets.shorten(**options), data.chain_assets.weigh, data.chain_assets.keep_large
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "texts.jsonl", ROWS)


def test_a_chain_is_one_asset_with_a_funnel(
    root: Path, source: Path, instance: dg.DagsterInstance
) -> None:
    with pipeline("docs") as ppl:
        ppl.clean = made()
    definitions = definitions_of(ppl, str(source), root)
    spec = spec_of(definitions, "docs", "clean")
    assert "1. `shorten`: Cut a text." in (spec.description or "")
    assert spec.kinds == {"python", "json"}
    assert spec.metadata["dagster_dataops/kind"] == "chain of 3 record operators"
    assert len(spec.metadata["dagster/code_references"].code_references) == 3
    result = execute(definitions, instance)
    found = metadata_of(result, "docs", "clean")
    lines = found["funnel"].splitlines()
    assert lines[0] == "| part | in | out | dropped | failed | seconds |"
    cells = [[cell.strip() for cell in line.split("|")[1:6]] for line in lines[2:5]]
    assert cells == [
        ["shorten", "5", "5", "0", "0"],
        ["weigh", "5", "5", "0", "0"],
        [r"keep\_large", "5", "2", "2", "1"],
    ]
    assert r"keep\_large: it is bad" in found["errors"]
    assert "keep" in found["drops"]
    lineage = found["dagster/column_lineage"].deps_by_column
    assert [dep.column_name for dep in lineage["size"]] == ["text"]
    assert read_jsonl(root / "docs/clean/clean_results.jsonl") == [
        {"id": 0, "text": "abcde", "size": 5},
        {"id": 3, "text": "wxyz", "size": 4},
    ]


def test_the_launchpad_has_the_options_of_the_parts(
    root: Path, source: Path, instance: dg.DagsterInstance
) -> None:
    with pipeline("docs") as ppl:
        ppl.clean = made()
        ppl.again = made(most=2)
    definitions = definitions_of(ppl, str(source), root)
    params = {"shorten": {"input_key": "text", "most": 3}}
    config = {"ops": {"docs__clean": {"config": {"params": params}}}}
    execute(definitions, instance, config, only=[["docs", "clean"]])
    first = read_jsonl(root / "docs/clean/clean_results.jsonl")[0]
    assert first == {"id": 0, "text": "abc", "size": 3}


@data_register("data.chain_assets", _concurrency_mode="single")
def call(record: dict[str, Any], api_key: str = "", model: str = "small") -> Any:
    """Call a model.

    Args:
        record: One record.
        api_key: The key.
        model: Name of the model.
    """
    return {**record, "model": model, "keyed": bool(api_key)}


def test_secrets_and_objects_of_a_part_are_left_out_of_the_launchpad(
    root: Path, source: Path, instance: dg.DagsterInstance
) -> None:
    with pipeline("docs") as ppl:
        ppl.clean = chain(data.chain_assets.call(api_key="sk-secret-of-mine"), name="clean")
    definitions = definitions_of(ppl, str(source), root)
    config = {"ops": {"docs__clean": {"config": {"params": {"call": {"model": "large"}}}}}}
    execute(definitions, instance, config)
    row = read_jsonl(root / "docs/clean/clean_results.jsonl")[0]
    assert (row["model"], row["keyed"]) == ("large", True)
    ((_, field),) = fields_of(params_of(ppl.graph.last.operator))
    assert "Not shown, with their values of the pipeline: `api_key` (secret)" in field.description
    ((name, inner),) = fields_of(field)
    assert (name, inner.description) == ("model", "Name of the model.")
    with pytest.raises(dg.DagsterInvalidConfigError):
        wrong = {"ops": {"docs__clean": {"config": {"params": {"call": {"api_key": "x"}}}}}}
        execute(definitions, instance, wrong)
    assert "sk-secret" not in str(spec_of(definitions, "docs", "clean"))


def fields_of(field: Any) -> list[tuple[str, Any]]:
    return list(field.config_type.fields.items())


def test_another_option_of_a_part_is_another_code_version(root: Path, source: Path) -> None:
    versions = set()
    for most in (5, 6):
        with pipeline("docs") as ppl:
            ppl.clean = made(most=most)
        definitions = definitions_of(ppl, str(source), root)
        versions.add(spec_of(definitions, "docs", "clean").code_version)
    assert len(versions) == 2


YAML = """
name: docs
source: texts.jsonl
modules: [operators.py]
operators:
  - name: clean
    chain:
      - operator: "{group}.mark"
        options: {key: seen}
      - operator: "{group}.Picky"
      - {operator: "{group}.mark", options: {value: 2}}
    concurrency_mode: single
"""


def test_a_chain_is_declared_in_yaml(
    project: Project, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    project.write(f"{YAML}resource: {{root: {tmp_path}}}\n")
    with project.loaded() as definitions:
        result = execute(definitions, instance)
    found = metadata_of(result, "docs", "clean")
    assert "mark\\_2" in found["funnel"]
    row = read_jsonl(tmp_path / "docs/clean/clean_results.jsonl")[0]
    assert (row["seen"], row["mark"]) == (1, 2)


@pytest.mark.parametrize(
    ("old", "new", "said", "line"),
    [
        ("key: seen", "kei: seen", "kei", 11),
        ('"{group}.Picky"', '"{group}.Pinky"', "Pinky", 12),
        ('"{group}.Picky"', "dedup.Exact", "is a selection", 9),
        ("concurrency_mode: single", "concurrency_mode: async", "needs an `async def`", 14),
    ],
)
def test_errors_of_a_chain_in_yaml_say_where(
    project: Project, old: str, new: str, said: str, line: int
) -> None:
    path = project.write(YAML.replace(old, new))
    with pytest.raises(ComponentTreeException) as caught, project.loaded():
        pass
    text = _causes(caught.value)
    assert said in text
    assert f"{path.name}:{line}" in text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    chain:", "    operator: dedup.Exact\n    chain:", "exactly one of both"),
        ("    concurrency_mode", "    options: {x: 1}\n    concurrency_mode", "write them there"),
    ],
)
def test_a_node_has_an_operator_or_a_chain(project: Project, old: str, new: str, said: str) -> None:
    project.write(YAML.replace(old, new, 1))
    with pytest.raises(ComponentTreeException) as caught, project.loaded():
        pass
    assert said in _causes(caught.value)


def _causes(error: BaseException | None) -> str:
    texts = []
    while error is not None:
        texts.append(str(error))
        error = error.__cause__ or error.__context__
    return "\n".join(texts)

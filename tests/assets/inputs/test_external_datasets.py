"""Tests of metadatasets as sources: their datasets are external assets, with shares and checks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import (
    FileStore,
    Metadataset,
    build_definitions,
    checks,
    cook,
    metadataset,
    prepare_energon,
)
from dagster_dataops.assets.inputs.external_datasets import dataset_key
from dagster_dataops.errors import ConfigurationError, StreamDefinitionError
from tests.assets.helpers import (
    checks_of,
    definitions_of,
    execute,
    metadata_of,
    pipeline_of,
    result_of,
    spec_of,
)
from tests.registries import OperatorRegistry
from tests.training.cooking.mixtures import cook_text, cook_with_file, dataset, store, written

BLEND = """  train:
    blend:
      - {path: ./a, weight: 7}
      - {path: ./b, weight: 3}
"""


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    dataset(tmp_path / "a", 20)
    dataset(tmp_path / "b", 10)
    return tmp_path


@pytest.fixture
def operator(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="single")
    def upper(record: dict) -> None:
        record["text"] = record["text"].upper()

    return upper()


@pytest.fixture
def mix(data: Path) -> Metadataset:
    return metadataset(written(data, BLEND), cookers=cook_text, seed=1)


def versions_of(result: dg.ExecuteInProcessResult) -> dict[str, str]:
    """Return the reported data version of each dataset, by the last part of its key."""
    return {
        event.asset_key.path[-1]: event.materialization.tags["dagster/data_version"]
        for event in result.get_asset_materialization_events()
        if event.asset_key is not None and event.asset_key.path[0] == "datasets"
    }


def test_the_datasets_are_external_assets_with_shares_in_the_metadata(
    data: Path, mix: Metadataset, operator: Any, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(pipeline_of(upper=operator), mix.take(300), data / "out")
    keys = [dataset_key(leaf) for leaf in mix.leaves]

    result = execute(definitions, instance)

    spec = spec_of(definitions, "docs", "mix")
    assert {dep.asset_key for dep in spec.deps} == set(keys)
    assert [(key.path[0], key.path[-1]) for key in keys] == [("datasets", "a"), ("datasets", "b")]
    assert r"cook\_text" in spec.metadata["dagster_dataops/datasets"].value
    found = metadata_of(result, "docs", "mix")
    rows = result_of(data / "out", "docs", "mix")
    share = sum(row["text"].startswith("a") for row in rows) / 300
    assert found["share_a"] == pytest.approx(share)
    assert "| a | 70.0 % |" in found["leaves"]
    assert set(versions_of(result)) == {"a", "b"}


@pytest.mark.slow
def test_a_version_is_reported_again_only_after_a_change(
    data: Path, mix: Metadataset, operator: Any, instance: dg.DagsterInstance
) -> None:
    ppl = pipeline_of(upper=operator)
    first = versions_of(execute(definitions_of(ppl, mix.take(9), data / "out"), instance))
    again = versions_of(execute(definitions_of(ppl, mix.take(8), data / "out"), instance))
    (data / "b" / "s-1.tar").write_bytes((data / "b" / "s-0.tar").read_bytes() + b"\0" * 512)
    changed = metadataset(written(data, "  train: {concat: [{path: a}]}\n"), cookers=cook_text)
    last = versions_of(execute(definitions_of(ppl, changed, data / "out"), instance))

    assert set(first) == {"a", "b"}
    assert again == {}
    assert last == {}


def test_another_weight_is_another_code_version(data: Path, operator: Any) -> None:
    def version(text: str) -> str | None:
        source = metadataset(written(data, text), cookers=cook_text, seed=1).take(10)
        definitions = definitions_of(pipeline_of(upper=operator), source, data / "out")
        return spec_of(definitions, "docs", "mix").code_version

    assert version(BLEND) == version(BLEND) != version(BLEND.replace("3", "4"))


def test_a_blend_without_end_is_refused_with_its_line(
    data: Path, mix: Metadataset, operator: Any
) -> None:
    with pytest.raises(StreamDefinitionError, match=r"mix.yaml, line 4\): never ends"):
        build_definitions(pipeline_of(upper=operator), source=mix)


@pytest.mark.slow
def test_shares_are_checked(
    data: Path, mix: Metadataset, operator: Any, instance: dg.DagsterInstance
) -> None:
    wanted = [checks.blend_shares(), checks.blend_shares(0.0, name="exactly")]
    definitions = definitions_of(
        pipeline_of(upper=operator), mix.take(301), data / "out", checks={"source": wanted}
    )

    found = {check.check_name: check for check in checks_of(execute(definitions, instance))}

    assert found["blend_shares"].passed
    assert found["blend_shares"].description == "2 datasets gave the wanted share."
    assert not found["exactly"].passed
    assert "of 301 samples, wanted are" in (found["exactly"].description or "")


def test_missing_files_are_counted(data: Path, operator: Any, instance: dg.DagsterInstance) -> None:
    store(data / "media", 18)
    text = "  train: {path: a, aux: {media: 'filesystem://./media'}}\n"
    stream = metadataset(written(data, text), cookers=cook_with_file)
    definitions = definitions_of(
        pipeline_of(upper=operator),
        stream.and_return(on_error="quarantine"),
        data / "out",
        checks={"source": [checks.missing_aux(), checks.missing_aux(2, name="two")]},
        stream_name="mix",
    )

    found = {check.check_name: check for check in checks_of(execute(definitions, instance))}

    assert not found["missing_aux"].passed
    assert "2 records failed because a file is missing" in (found["missing_aux"].description or "")
    assert "m18.txt" in (found["missing_aux"].description or "")
    assert found["two"].passed


def test_the_checks_refuse_invalid_limits() -> None:
    with pytest.raises(ConfigurationError, match="blend_shares"):
        checks.blend_shares(1.5)
    with pytest.raises(ConfigurationError, match="missing_aux"):
        checks.missing_aux(-1)


def test_a_result_that_is_no_mixture_has_no_shares(
    data: Path, operator: Any, instance: dg.DagsterInstance
) -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield {"text": "x"}

    definitions = definitions_of(
        pipeline_of(upper=operator), rows, data / "out", checks={"upper": [checks.blend_shares()]}
    )

    results = checks_of(execute(definitions, instance))
    (found,) = [one for one in results if one.check_name == "blend_shares"]
    assert not found.passed
    assert "no mixture" in (found.description or "")


def test_each_joined_dataset_is_an_external_asset(
    data: Path, operator: Any, instance: dg.DagsterInstance
) -> None:
    text = (
        "  train:\n    join: [{path: ./a}, {path: ./b, nonmatch: skip}]\n"
        "    joiner: {__module__: dagster_dataops, __class__: CrudeSample}\n"
    )
    mix = metadataset(written(data, text), cookers=cook_text)
    definitions = definitions_of(pipeline_of(upper=operator), mix, data / "out")
    keys = [dataset_key(one) for leaf in mix.leaves for one in leaf.datasets]

    result = execute(definitions, instance)

    assert [key.path[-1] for key in keys] == ["a", "b"]
    assert set(versions_of(result)) == {"a", "b"}
    assert {dep.asset_key for dep in spec_of(definitions, "docs", "mix").deps} == set(keys)


def test_descriptions_say_what_there_is(data: Path, instance: dg.DagsterInstance) -> None:
    def cook_any(sample: dict[str, Any], **stores: FileStore) -> dict[str, Any]:
        return {"text": sample["txt"].decode(), "stores": list(stores)}

    dataset(data / "c", 5, {"kind": "page"})
    text = "  train: {concat: [{path: a, aux: {media: ./b}}, {path: c}]}\n"
    mix = metadataset(written(data, text))
    definitions = definitions_of(pipeline_of(cooked=cook(cook_any)), mix, data / "out")
    result = execute(definitions, instance)
    first, second = (spec_of(definitions, *dataset_key(leaf).path) for leaf in mix.leaves)
    counts = {
        event.asset_key.path[-1]: event.materialization.metadata["dagster/row_count"].value
        for event in result.get_asset_materialization_events()
        if event.asset_key is not None and event.asset_key.path[0] == "datasets"
    }

    assert first.description == f"Crude samples of {data}/a: 2 tar shards, with files of media."
    assert second.description == f"Crude samples of {data}/c: 2 tar shards, with kind=page."
    index = spec_of(definitions, "docs", "mix_index").description
    assert index is not None
    assert index.startswith(
        f"A line for each sample of {data}/a (2 tar shards): its key, its shard"
    )
    assert counts == {"a": 20, "c": 5}


def test_the_number_of_prepared_samples_is_in_the_description(data: Path) -> None:
    prepare_energon(data / "a")
    (leaf,) = metadataset(written(data, "  train: {path: a}\n")).leaves

    assert leaf.contents.endswith("/a: 20 samples in 2 tar shards, prepared by Energon.")

"""Test assets whose results are compressed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import (
    DataOpsIOManager,
    DataOpsResource,
    JsonlDataset,
    build_definitions,
    checks,
    load_result,
    pipeline,
    read_jsonl,
)
from dagster_dataops.errors import ConfigurationError
from tests.assets.helpers import checks_of, execute, metadata_of, numbered, write_jsonl
from tests.registries import OperatorRegistry


def files_in(root: Path) -> list[str]:
    found = root.rglob("[!.]*_results.jsonl*")
    return sorted(path.name for path in found if path.suffix != ".json")


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_assets_checks_sources_and_io_managers_use_compressed_results(
    registry: OperatorRegistry,
    tmp_path: Path,
    instance: dg.DagsterInstance,
    layout: Any,
) -> None:
    @registry("data.text", _concurrency_mode="single")
    def upper(record: dict) -> dict:
        return {**record, "text": record["text"].upper()}

    @registry("data.text", _concurrency_mode="single")
    def even(record: dict) -> Any:
        return [] if record["id"] % 2 else record

    def rows() -> Iterator[dict[str, Any]]:
        yield from numbered(100)

    got: list[Any] = []

    @dg.asset(
        ins={"even": dg.AssetIn(key=["docs", "even"], input_manager_key="own_io")},
        io_manager_key="own_io",
    )
    def used(even: JsonlDataset) -> list[dict[str, Any]]:
        got.append(even.read())
        return [*even]

    with pipeline("docs") as ppl:
        ppl.upper = upper()
        ppl.even = even()
    shown, roots = [], []
    for form in ("jsonl", "jsonl.zst"):
        roots.append(tmp_path / form)
        resource = DataOpsResource(root=str(roots[-1]), result_format=form)
        made = build_definitions(
            ppl,
            source=rows,
            resource=resource,
            report=True,
            layout=layout,
            checks={"even": [checks.no_nulls("text"), checks.row_count(min=50, max=50)]},
        )
        own = dg.Definitions(
            assets=[used], resources={"own_io": DataOpsIOManager(dataops=resource)}
        )
        result = execute(dg.Definitions.merge(made, own), instance)
        assert result.success
        assert all(one.passed for one in checks_of(result))
        metadata = metadata_of(result, "docs", "even")
        sizes = [metadata[name] for name in ("dagster/row_count", "dagster/size_bytes")]
        shown.append((sizes, load_result(resource.folder(["docs", "even"])).fingerprint))

    assert shown[0] == shown[1]
    assert got[0] == got[1] == load_result(roots[1] / "docs" / "even").read()
    assert {name.partition("_results.")[2] for name in files_in(roots[1])} == {"jsonl.zst"}
    assert len(files_in(roots[1])) == len(files_in(roots[0])) == 4


@pytest.mark.parametrize("form", ["jsonl", "jsonl.zst"])
def test_a_stream_has_the_address_of_its_result_before_it_is_written(
    registry: OperatorRegistry, tmp_path: Path, instance: dg.DagsterInstance, form: str
) -> None:
    @registry("data.text", _concurrency_mode="single")
    def same(record: dict) -> dict:
        return record

    with pipeline("docs") as ppl:
        ppl.same = same()
    stream = read_jsonl(write_jsonl(tmp_path / "in.jsonl", numbered(10))).shuffle(3)
    resource = DataOpsResource(root=str(tmp_path / "root"), result_format=form)
    made = build_definitions(ppl, source=stream, resource=resource)
    addresses = [
        spec.metadata["dagster/uri"]
        for spec in made.resolve_all_asset_specs()
        if "dagster/uri" in spec.metadata
    ]
    assert execute(made, instance).success
    (file,) = (tmp_path / "root" / "docs" / "in").glob(f"[!.]*_results.{form}")
    assert addresses == [file.as_uri()]


def test_an_io_manager_replaces_a_value_of_another_form(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(io_manager_key="io")
    def made() -> list[dict[str, Any]]:
        return [{"n": 1}]

    for form in ("jsonl", "jsonl.zst", "jsonl"):
        manager = DataOpsIOManager(
            dataops=DataOpsResource(root=str(tmp_path / "root"), result_format=form)
        )
        dg.materialize([made], resources={"io": manager}, instance=instance)
        assert files_in(tmp_path / "root") == [f"made_results.{form}"]
        assert load_result(tmp_path / "root" / "made").read() == [{"n": 1}]


def test_an_asset_of_before_is_an_input_in_its_own_form(
    registry: OperatorRegistry, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    @registry("data.text", _concurrency_mode="single")
    def upper(record: dict) -> dict:
        return {**record, "text": record["text"].upper()}

    source = write_jsonl(tmp_path / "in.jsonl", list(numbered(10)))
    with pipeline("docs") as ppl:
        ppl.first = upper()
        ppl.second = upper()
    root = str(tmp_path / "root")
    for form, only in (("jsonl.zst", "first"), ("jsonl", "second")):
        resource = DataOpsResource(root=root, result_format=form)
        definitions = build_definitions(ppl, source=source, resource=resource)
        assert execute(definitions, instance, only=[["docs", only]]).success
    assert files_in(Path(root)) == ["first_results.jsonl.zst", "second_results.jsonl"]
    assert len(load_result(f"{root}/docs/second").read()) == 10


def test_an_unknown_form_is_refused_by_name(tmp_path: Path) -> None:
    resource = DataOpsResource(root=str(tmp_path), result_format="zst")
    with pytest.raises(ConfigurationError, match=r"result_format.*jsonl or jsonl\.zst"):
        resource.folder(["docs"])

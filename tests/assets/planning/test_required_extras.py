"""Tests of missing packages: definitions that need them do not load."""

import sys
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsResource, assets, build_definitions
from dagster_dataops.errors import DefsYamlError, MissingExtraError
from tests.assets.component_project import WARNED_OF
from tests.assets.components.declared import NODE
from tests.assets.helpers import pipeline_of

pytestmark = WARNED_OF


def kept(rows: list[dict]) -> list[dict]:
    return rows


@pytest.mark.parametrize(
    ("package", "root", "source", "extra"),
    [
        ("obstore", "s3://bucket/results", "docs.jsonl", "objectstore"),
        ("obstore", "gs://bucket", "docs.jsonl", "objectstore"),
        ("obstore", None, "s3://bucket/docs.jsonl", "objectstore"),
        ("zstandard", None, "docs.jsonl.zst", "zstd"),
    ],
)
def test_a_missing_package_is_an_error_when_definitions_load(
    package: str, root: str | None, source: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: Any = {"source": source, "resource": DataOpsResource(root=root)}
    monkeypatch.setitem(sys.modules, package, None)
    for build in (build_definitions, assets.build_operator_assets):
        with pytest.raises(MissingExtraError, match=rf"\[{extra}\]"):
            build(pipeline_of(kept=kept), **given)


def test_other_roots_and_sources_need_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("obstore", "zstandard"):
        monkeypatch.setitem(sys.modules, package, None)
    for root in (None, "results", dg.EnvVar("SOMEWHERE")):
        build_definitions(
            pipeline_of(kept=kept), source="docs.jsonl.gz", resource=DataOpsResource(root=root)
        )


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("resource: {root: 's3://bucket/results'}", ""),
        ("source: s3://bucket/texts.jsonl", "source: texts.jsonl"),
    ],
)
def test_the_error_names_the_line(
    line: str, instead: str, project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project.write(NODE.replace(instead, line) if instead else f"{NODE}{line}\n")
    number = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if line in text)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(DefsYamlError) as caught, project.component():
        pass
    assert f"{path}:{number}" in str(caught.value)
    assert "dagster-dataops[objectstore]" in str(caught.value)

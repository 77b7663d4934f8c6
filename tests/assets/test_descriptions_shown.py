"""No description that Dagster shows has marks of reStructuredText."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap

from dagster_dataops import (
    DataOpsIOManager,
    DataOpsResource,
    LLMResource,
    MetadatasetComponent,
    NewFiles,
    OperatorPipelineComponent,
    assets,
    build_definitions,
    checks,
    data,
    data_register,
    pipeline,
)
from dagster_dataops.assets.checks.declared_check import CHECK_KINDS
from dagster_dataops.assets.planning.translator import description_of
from tests.assets.helpers import JOB_KINDS
from tests.registries import OperatorRegistry

_MARKS = re.compile(r"(?<!`)``(?!`)|:\w+:`|`__?(?!\w)|^\s*\.\. \w+", re.MULTILINE)


@OperatorRegistry(lambda *_: None)("data.described")
def marked(record: dict, suffix: str = "!", mode: str = "a") -> dict:
    """Return ``record`` as :func:`other` does, or :class:`~a.b.Reader`; see `it <https://a.org>`_.

    Args:
        record: The record.
        suffix: What ``text`` gets; :py:attr:`more <a.b>` of it.
        mode: ``a`` or ``b``.
    """
    return record


def _texts(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Yield every description in JSON, with its place."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str) and key in {"description", "title", "op_description"}:
                yield f"{at}.{key}", inner
            yield from _texts(inner, f"{at}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{at}[{number}]")


def _marked(value: Any) -> list[tuple[str, str]]:
    return [(at, text) for at, text in _texts(value) if _MARKS.search(text)]


def _checks() -> list[Any]:
    made = [
        checks.blend_shares(),
        checks.max_dropped(0.5),
        checks.missing_aux(3),
        checks.no_nulls("text"),
        checks.required_columns("text"),
        checks.row_count(min=1),
        checks.trained_tokens(),
        checks.unique("text"),
    ]
    others = {"json_schema"}  # needs an extra
    assert {one.name for one in made} | others >= CHECK_KINDS.keys() - {"unique", "no_nulls"}
    return made


def _definitions(root: Path, *, layout: Any = "steps") -> dg.Definitions:
    with pipeline("described") as ppl:
        ppl.marked = marked(_ignore_errors=False)
        ppl.words = data.filters.WordCount(min_words=2)
        ppl.once = data.dedup.Exact()
        ppl.asked = data.llm.Generate(prompt="{text}", model="m")
    return build_definitions(
        ppl,
        source=str(root / "{partition}.jsonl"),
        resource=DataOpsResource(root=str(root)),
        partitions_def=dg.DynamicPartitionsDefinition(name="described"),
        new_files=NewFiles(),
        checks={"marked": _checks()},
        clients={"default": LLMResource(base_url="http://localhost:1")},
        jobs=JOB_KINDS,
        layout=layout,
    )


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_no_description_of_definitions_has_marks_of_rst(layout: str, tmp_path: Path) -> None:
    repository = _definitions(tmp_path, layout=layout).get_repository_def()
    snapshot = json.loads(dg.serialize_value(RepositorySnap.from_def(repository)))
    texts = [text for _, text in _texts(snapshot)]
    assert "Return `record` as `other` does, or `Reader`; see [it](https://a.org)." in "\n".join(
        texts
    )
    assert "What `text` gets; `more` of it." in texts
    assert len(texts) > 100
    assert _marked(snapshot) == []


def test_no_description_of_a_job_of_ops_has_marks_of_rst(tmp_path: Path) -> None:
    def texts() -> Iterator[dict[str, Any]]:
        """Yield ``texts``."""
        yield {"text": "a"}

    with pipeline("described") as ppl:
        ppl.marked = marked()
    job = assets.build_operator_job(ppl, source=texts)
    found = [(op.name, op.description or "") for op in job.all_node_defs]
    assert len(found) == 2
    assert [one for one in found if _MARKS.search(one[1])] == []


@pytest.mark.parametrize("component", [OperatorPipelineComponent, MetadatasetComponent])
def test_no_description_of_a_component_has_marks_of_rst(component: Any) -> None:
    schema = component.model().model_json_schema()
    assert len(list(_texts(schema))) > 5
    assert _marked(schema) == []
    text = (component.__doc__ or "").partition("    Example:")[0]  # the example is code
    assert not _MARKS.search(text)


def test_no_description_of_an_operator_of_the_library_has_marks_of_rst() -> None:
    found = {}
    for group in data_register.groups():
        for name in data_register.operators(group):
            spec = data_register.operator(group, name).__dataops_spec__
            if spec.shipped:
                found[spec.reference] = description_of(spec) or ""
    assert len(found) > 100
    assert {name: text for name, text in found.items() if _MARKS.search(text)} == {}


def _below(base: type) -> Iterator[type]:
    for one in base.__subclasses__():
        yield one
        yield from _below(one)


def test_no_description_of_a_resource_has_marks_of_rst() -> None:
    found = {
        one
        for base in (dg.ConfigurableResource, dg.ConfigurableIOManager)
        for one in _below(base)
        if one.__module__.startswith("dagster_dataops.")
    }
    assert {DataOpsIOManager, DataOpsResource, LLMResource} <= found
    assert [one for one in found if _MARKS.search(one.__doc__ or "")] == []

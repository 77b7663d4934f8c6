"""Tests of what a deployment sets: tags of steps and runs, owners, hooks, jobs, resource keys."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsResource, build_definitions, checks, combine
from dagster_dataops.assets.planning.run_tags import operator_tag
from dagster_dataops.errors import ConfigurationError, DefinitionError, PipelineDefinitionError
from tests.assets.helpers import (
    asset_of,
    definitions_of,
    execute,
    pipeline_of,
    resource_at,
    result_of,
    spec_of,
)
from tests.registries import OperatorRegistry

Records = Callable[[int], Path]
POD = {"dagster-k8s/config": {"container_config": {"resources": {"limits": {"cpu": "2"}}}}}
KINDS = {"pipeline", "refresh", "retry_failed_records", "preview"}


@pytest.fixture
def upper(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="single")
    def upper(record: dict) -> None:
        record["text"] = record["text"].upper()

    return upper


def texts() -> list[dict[str, Any]]:
    return [{"text": "a"}]


def jobs_of(definitions: dg.Definitions) -> set[str]:
    names = {job.name for job in definitions.resolve_all_job_defs()}
    return {name.removeprefix("docs_") for name in names if name.startswith("docs_")}


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_the_tags_of_a_step_are_given_by_node(
    layout: str, upper: Any, records: Records, root: Path
) -> None:
    ppl = pipeline_of(first=upper(), second=upper())
    definitions = definitions_of(ppl, texts, root, layout=layout, op_tags={"second": POD})
    tags = asset_of(definitions, "docs", "second").op.tags
    assert "container_config" in tags["dagster-k8s/config"]
    assert bool(asset_of(definitions, "docs", "first").op.tags) == (layout == "single_step")
    assert not asset_of(definitions, "docs", "texts").op.tags


def test_the_step_of_the_source_has_tags_too(upper: Any, records: Records, root: Path) -> None:
    given = {"source": {"dagster-celery/queue": "io"}}
    for source in (texts, combine.concat([records(1), records(1)])):
        definitions = definitions_of(pipeline_of(first=upper()), source, root, op_tags=given)
        name = "texts" if source is texts else "concat"
        assert asset_of(definitions, "docs", name).op.tags == given["source"]
    with pytest.raises(PipelineDefinitionError, match="given for the source, but it has no step"):
        definitions_of(pipeline_of(first=upper()), records(1), root, op_tags=given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (POD, "op_tags are given for 'dagster-k8s/config', which is not a node. Nodes: first"),
        ({"frist": POD}, "which is not a node; did you mean 'first'"),
        ({"first": "gpu"}, "Setting op_tags.first is 'gpu'; it must be a mapping"),
        ({"first": {"a b": "c"}}, "Setting op_tags.first is {'a b': 'c'}; it must be"),
        ({"first": {"when": Path("x")}}, "whose values are JSON values"),
        ({"first": {"pair": (1, 2)}}, "whose values are JSON values"),
    ],
)
def test_other_tags_of_steps_are_refused(
    given: Any, said: str, upper: Any, records: Records, root: Path
) -> None:
    with pytest.raises(DefinitionError) as caught:
        definitions_of(pipeline_of(first=upper()), records(1), root, op_tags=given)
    assert said in str(caught.value)


def test_one_step_has_one_value_of_a_tag(upper: Any, records: Records, root: Path) -> None:
    ppl = pipeline_of(first=upper(), second=upper())
    given = {"first": {"queue": "a", "x": "y"}, "second": {"queue": "b"}}
    with pytest.raises(PipelineDefinitionError, match="different values of the tag 'queue'"):
        definitions_of(ppl, records(1), root, op_tags=given, layout="single_step")


def test_jobs_are_chosen(upper: Any, records: Records, root: Path) -> None:
    ppl = pipeline_of(first=upper())
    assert jobs_of(definitions_of(ppl, records(1), root)) == KINDS
    for chosen in (["pipeline"], ("refresh",), {"retry", "preview"}, [], ["pipeline", "estimate"]):
        found = jobs_of(definitions_of(ppl, records(1), root, jobs=chosen))
        assert found == {{"retry": "retry_failed_records"}.get(one, one) for one in chosen} - {
            "estimate"
        }
    scheduled = definitions_of(ppl, records(1), root, jobs=["refresh"], schedule="@daily")
    assert jobs_of(scheduled) == {"refresh", "pipeline"}


@pytest.mark.parametrize("given", ["pipeline", ["pipelines"], [None]])
def test_unknown_jobs_are_refused(given: Any, upper: Any, records: Records, root: Path) -> None:
    said = "Setting jobs is .*a list with some of pipeline, refresh, retry, preview, estimate"
    with pytest.raises(ConfigurationError, match=said):
        definitions_of(pipeline_of(first=upper()), records(1), root, jobs=given)


def test_a_run_with_the_tag_refreshes_without_the_job(
    upper: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(pipeline_of(first=upper()), records(1), root, jobs=["pipeline"])
    assert execute(definitions, instance).success
    before = (root / "docs/first/first_results.jsonl").stat().st_mtime_ns
    assert execute(definitions, instance, tags={"dagster_dataops/refresh": "true"}).success
    assert (root / "docs/first/first_results.jsonl").stat().st_mtime_ns == before


@pytest.mark.filterwarnings("ignore:Parameter `owners`:dagster.BetaWarning")
def test_jobs_have_tags_hooks_and_owners(
    upper: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    done = []

    @dg.success_hook
    def notified(context: dg.HookContext) -> None:
        done.append(context.op.name)

    definitions = definitions_of(
        pipeline_of(first=upper()),
        records(1),
        root,
        job_tags={"team": "search", "dagster/priority": "3"},
        job_hooks={notified},
        job_owners=["team:search", "me@here.org"],
    )
    for name in KINDS:
        assert definitions.resolve_job_def(f"docs_{name}").tags["team"] == "search"
    refresh = definitions.resolve_job_def("docs_refresh")
    assert refresh.tags["dagster_dataops/refresh"] == "true"
    assert list(refresh.owners or ()) == ["team:search", "me@here.org"]
    made = definitions.resolve_job_def("docs_pipeline").execute_in_process(instance=instance)
    assert made.dagster_run.tags["dagster/priority"] == "3"
    assert done == ["docs__first"]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("job_tags", {"priority": 3}),
        ("job_tags", {"a b": "c"}),
        ("job_hooks", {"slack"}),
        ("job_owners", ["search"]),
        ("job_owners", "team:search"),
        ("job_owners", [3]),
        ("resource_key", "a b"),
        ("resource_key", ""),
        ("resource_key", "class"),
    ],
)
def test_what_a_job_cannot_have_is_refused_by_name(
    option: str, value: Any, upper: Any, records: Records, root: Path
) -> None:
    with pytest.raises(ConfigurationError, match=f"Setting {option} is "):
        definitions_of(pipeline_of(first=upper()), records(1), root, **{option: value})


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_pipelines_with_their_own_resource_keys_have_their_own_roots(
    layout: str, upper: Any, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    built = [
        build_definitions(
            pipeline_of(name, first=upper(), second=upper()),
            source=texts,
            resource=resource_at(tmp_path / name),
            resource_key=f"{name}_results",
            layout=layout,
            report=True,
            jobs=["pipeline", "preview"],
            checks={"second": [checks.row_count(min=1)], "source": [checks.row_count(min=1)]},
        )
        for name in ("one", "other")
    ]
    merged = dg.Definitions.merge(*built)
    dg.Definitions.validate_loadable(merged)
    ran = execute(merged, instance)
    assert ran.success
    assert {one.check_name for one in ran.get_asset_check_evaluations() if one.passed} == {
        "failed_records",
        "row_count",
    }
    for name in ("one", "other"):
        assert result_of(tmp_path / name, name, "second") == [{"text": "A"}]
        assert (tmp_path / name / name / "report" / "report.html").exists()
        preview = merged.resolve_job_def(f"{name}_preview")
        assert preview.execute_in_process(instance=instance).success
        assert (tmp_path / name / name / "second" / ".preview").exists()


def test_a_pipeline_may_take_a_result_of_another_root(
    upper: Any, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    one = build_definitions(
        pipeline_of("one", upper=upper()),
        source=texts,
        resource=resource_at(tmp_path / "one"),
        resource_key="prod",
    )
    other = build_definitions(
        pipeline_of("other", again=upper()),
        source=dg.AssetKey(["one", "upper"]),
        resource=DataOpsResource(root=str(tmp_path / "other")),
    )
    assert execute(dg.Definitions.merge(one, other), instance).success
    assert result_of(tmp_path / "other", "other", "again") == [{"text": "A"}]


@pytest.mark.filterwarnings("ignore:Parameter `include_sources`:dagster.BetaWarning")
def test_assets_are_found_by_the_tag_of_their_operator(
    upper: Any, registry: OperatorRegistry, records: Records, root: Path
) -> None:
    def backwards(rows: list[dict]) -> list[dict]:
        return rows[::-1]

    ppl = pipeline_of(first=upper(), second=upper(), back=backwards)
    definitions = definitions_of(ppl, records(1), root)
    graph = definitions.resolve_asset_graph()
    value = spec_of(definitions, "docs", "first").tags["dagster_dataops/operator"]
    assert value.endswith("text.upper")
    selection = dg.AssetSelection.from_string(f'tag:"dagster_dataops/operator"="{value}"')
    assert {key.path[-1] for key in selection.resolve(graph)} == {"first", "second"}
    assert (
        "_locals_.backwards"
        in spec_of(definitions, "docs", "back").tags["dagster_dataops/operator"]
    )


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("data.dedup.Exact", "dedup.Exact"),
        ("dedup.Exact", "dedup.Exact"),
        ("mine.größe", "mine.gr_e"),
        ("m.<lambda>", "m._lambda_"),
    ],
)
def test_the_tag_of_an_operator_is_its_reference(reference: str, value: str) -> None:
    assert operator_tag(reference) == {"dagster_dataops/operator": value}


def test_long_references_have_different_tags_of_63_characters() -> None:
    tags = [operator_tag(f"{one}{'x' * 80}.same")["dagster_dataops/operator"] for one in "ab"]
    assert len(set(tags)) == 2
    assert {len(tag) for tag in tags} == {63}
    assert all(tag.endswith("x.same") for tag in tags)

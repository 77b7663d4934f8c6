"""Options of a deployment: executors, jobs, tags, hooks, schedules and owners."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsResource, build_definitions, checks, combine
from dagster_dataops.assets.executors import executor_of
from dagster_dataops.assets.planning.run_tags import operator_tag
from dagster_dataops.errors import ConfigurationError, DefinitionError, PipelineDefinitionError
from tests.assets.helpers import (
    JOB_KINDS,
    Records,
    asset_of,
    definitions_of,
    execute,
    numbered,
    pipeline_of,
    read_jsonl,
    resource_at,
    result_of,
    spec_of,
    write_jsonl,
)
from tests.registries import OperatorRegistry
from tests.warm_python import WarmPython

POD = {"dagster-k8s/config": {"container_config": {"resources": {"limits": {"cpu": "2"}}}}}
KINDS = {"pipeline", "refresh", "retry_failed_records", "preview"}


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


def test_one_step_has_one_value_of_a_tag_and_one_pool(
    upper: Any, records: Records, root: Path
) -> None:
    ppl = pipeline_of(first=upper(), second=upper())
    given = {"first": {"queue": "a", "x": "y"}, "second": {"queue": "b"}}
    with pytest.raises(PipelineDefinitionError, match="different values of the tag 'queue'"):
        definitions_of(ppl, records(1), root, op_tags=given, layout="single_step")
    pools = {"first": "disk", "second": "llm"}
    with pytest.raises(PipelineDefinitionError, match="in the pools disk, llm"):
        definitions_of(ppl, records(1), root, pools=pools, layout="single_step")


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_a_pool_belongs_to_its_node_or_to_the_one_step(
    layout: str, upper: Any, records: Records, root: Path
) -> None:
    ppl = pipeline_of(first=upper(), second=upper())
    definitions = definitions_of(ppl, records(1), root, pools={"second": "llm"}, layout=layout)
    assert asset_of(definitions, "docs", "second").op.pool == "llm"
    first = asset_of(definitions, "docs", "first").op.pool
    assert first == ("llm" if layout == "single_step" else None)
    with pytest.raises(PipelineDefinitionError, match="'seconds', which is not a node; did you me"):
        definitions_of(ppl, records(1), root, pools={"seconds": "llm"}, layout=layout)


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
        ("resource_key", "context"),
        ("resource_key", "config"),
        ("resource_key", "io_manager"),
        ("resource_key", "input_first"),
    ],
)
def test_what_a_job_cannot_have_is_refused_by_name(
    option: str, value: Any, upper: Any, records: Records, root: Path
) -> None:
    with pytest.raises(ConfigurationError, match=f"Setting {option} is "):
        definitions_of(pipeline_of(first=upper()), records(1), root, **{option: value})


@pytest.mark.slow
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


SCRIPT = """
import os, sys, time
from pathlib import Path

from dagster_dataops import DataOpsResource, build_definitions, data_register, pipeline

HOME = Path(__file__).parent


@data_register("data.script", _concurrency_mode="MODE", _ignore_errors=False)
def call(record: dict, node: str) -> dict:
    began = time.monotonic()
    time.sleep(0.02)
    with (HOME / "calls").open("a") as file:
        print(node, os.getpid(), began, time.monotonic(), "sqlalchemy" in sys.modules, file=file)
    return record


def job():
    with pipeline("docs") as ppl:
        for number in range(NODES):
            ppl.add(f"node_{number}", call(node=f"node_{number}"), inputs=[ppl.source])
    return build_definitions(
        ppl,
        source=HOME / "texts.jsonl",
        resource=DataOpsResource(root=str(HOME / "results")),
        executor="multiprocess",
        KEYWORDS
    ).resolve_job_def("docs_pipeline")
"""
RUN = """
import sys

import dagster as dg
import script

with dg.DagsterInstance.get() as instance:
    instance.event_log_storage.set_concurrency_slots("llm", 1)
    config = {"execution": {"config": {"max_concurrent": int(sys.argv[1])}}}
    recon = dg.reconstructable(script.job)
    with dg.execute_job(recon, instance=instance, run_config=config) as result:
        assert result.success
"""


@pytest.fixture(scope="module")
def python() -> Iterator[WarmPython]:
    with WarmPython("dagster_dataops.assets.definitions") as warm:
        yield warm


def run_steps(
    python: WarmPython, folder: Path, mode: str, nodes: int, keywords: str = ""
) -> list[tuple[str, int, float, float, bool]]:
    """Run siblings in separate processes; return (node, process, start, end, Dagster)."""
    write_jsonl(folder / "texts.jsonl", list(numbered(24)))
    code = SCRIPT.replace("MODE", mode).replace("NODES", str(nodes)).replace("KEYWORDS", keywords)
    (folder / "script.py").write_text(code)
    (folder / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    python.run(RUN, str(nodes), folder=folder, DAGSTER_HOME=str(folder))
    for number in range(nodes):
        node = f"node_{number}"
        rows = read_jsonl(folder / "results" / "docs" / node / f"{node}_results.jsonl")
        assert rows == list(numbered(24))
    found = []
    for line in (folder / "calls").read_text().splitlines():
        node, process, began, ended, dagster = line.split()
        found.append((node, int(process), float(began), float(ended), dagster == "True"))
    return found


def test_an_executor_has_a_known_name_or_is_the_users_own() -> None:
    assert executor_of("in_process") is dg.in_process_executor
    assert executor_of(dg.multiprocess_executor) is dg.multiprocess_executor
    assert executor_of("multiprocess") is executor_of("multiprocess")
    assert executor_of("multiprocess").name == "multiprocess"
    name: Any = "threads"
    with pytest.raises(dg.DagsterInvalidDefinitionError, match="'threads' is neither in_process"):
        executor_of(name)


def test_all_jobs_of_assets_have_the_executor_that_was_chosen(
    registry: OperatorRegistry, records: Callable[[int], Path]
) -> None:
    @registry("data.text")
    def same(record: dict) -> dict:
        return record

    ppl = pipeline_of(same=same())
    definitions = build_definitions(ppl, source=records(1), executor="multiprocess", jobs=JOB_KINDS)
    found = {
        job.name: definitions.resolve_job_def(job.name).executor_def.name
        for job in definitions.jobs or ()
    }
    assert found == {
        "docs_pipeline": "multiprocess",
        "docs_refresh": "multiprocess",
        "docs_retry_failed_records": "multiprocess",
        "docs_preview": "in_process",
    }
    assert definitions.executor is None


@pytest.mark.slow
def test_the_server_of_steps_has_imported_dagster_and_shares_no_thread_or_file(
    python: WarmPython, tmp_path: Path
) -> None:
    code = """
import json, os, sys, threading
import dagster_dataops.assets.definitions
def files():
    opened = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    found = {os.readlink(path) for path in opened if os.path.lexists(path)}
    return {path for path in found if ".so" not in path}  # some systems keep libraries open
before = files()
import dagster_dataops.assets.preload
print(json.dumps([
    "sqlalchemy" in sys.modules, len(threading.enumerate()), sorted(files() - before)
]))
"""
    assert json.loads(python.run(code, folder=tmp_path)) == [True, 1, []]


@pytest.mark.slow
def test_a_failed_warm_up_only_makes_the_server_slow(python: WarmPython, tmp_path: Path) -> None:
    code = """
import dagster as dg

def fail(*_, **__):
    raise RuntimeError("no memory")

dg.materialize = fail
import dagster_dataops.assets.preload
print("up")
"""
    assert python.run(code, folder=tmp_path).strip() == "up"


@pytest.mark.slow
def test_a_pool_of_one_slot_keeps_steps_from_calling_at_the_same_time(
    python: WarmPython, tmp_path: Path
) -> None:
    keywords = 'pools={"node_0": "llm", "node_1": "llm"},'
    calls = run_steps(python, tmp_path, "single", 2, keywords)
    spans = {
        node: (min(c[2] for c in calls if c[0] == node), max(c[3] for c in calls if c[0] == node))
        for node in ("node_0", "node_1")
    }
    assert len({call[1] for call in calls}) == 2
    (_, first_end), (second_start, _) = sorted(spans.values())
    assert first_end < second_start

"""Tests of attempts under Dagster: resuming, stopping, waiting, defaults."""

import os
import re
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pydantic import PrivateAttr

from dagster_dataops import (
    DataOpsIOManager,
    DataOpsResource,
    LLMResource,
    LocalCluster,
    OperatorContext,
    RayCluster,
    build_definitions,
    config,
)
from dagster_dataops.assets.runtime import resource as resource_module
from dagster_dataops.assets.runtime.step_context import continued_runs
from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.errors import (
    ClusterError,
    FolderLockedError,
    RecordError,
    RetryRefusedError,
)
from tests.assets.helpers import (
    Records,
    dataset_of,
    definitions_of,
    execute,
    log_of,
    metadata_of,
    numbered,
    pipeline_of,
    resource_at,
    result_of,
)
from tests.registries import OperatorRegistry

STEP = "docs__fragile"


class Fragile:
    """An operator that raises at one record a number of times, and counts its calls."""

    def __init__(self, registry: OperatorRegistry) -> None:
        self.calls: Counter[int] = Counter()
        self.failures_left = 0
        self.fails_at = -1
        fragile = self

        @registry("data.text", _concurrency_mode="single", _ignore_errors=False)
        def work(record: dict, suffix: str = "!") -> dict:
            fragile.calls[record["id"]] += 1
            if record["id"] == fragile.fails_at and fragile.failures_left:
                fragile.failures_left -= 1
                msg = "no answer"
                raise ConnectionError(msg)
            record["text"] += suffix
            return record

        self.operator = work()

    def fail(self, *, at: int, times: int = 1) -> None:
        self.fails_at, self.failures_left = at, times


@pytest.fixture
def fragile(registry: OperatorRegistry) -> Fragile:
    return Fragile(registry)


@pytest.fixture
def definitions(fragile: Fragile, records: Records, root: Path) -> dg.Definitions:
    ppl = pipeline_of(fragile=fragile.operator)
    return definitions_of(ppl, records(100), root, retry_policy=dg.RetryPolicy(max_retries=1))


@pytest.fixture
def without_retries(fragile: Fragile, records: Records, root: Path) -> dg.Definitions:
    return definitions_of(pipeline_of(fragile=fragile.operator), records(100), root)


def expected(count: int = 100) -> list[dict[str, Any]]:
    return [{**record, "text": f"{record['text']}!"} for record in numbered(count)]


def test_a_retry_of_the_step_resumes_where_the_attempt_stopped(
    definitions: dg.Definitions, fragile: Fragile, root: Path, instance: dg.DagsterInstance
) -> None:
    fragile.fail(at=60)
    result = execute(definitions, instance)
    assert result.success
    assert result_of(root, "docs", "fragile") == expected()
    assert fragile.calls == Counter({**dict.fromkeys(range(100), 1), 60: 2})
    assert metadata_of(result, "docs", "fragile")["rows_resumed"] == 60
    assert any(
        "resuming: 60 records settled by run" in line or "resuming: 60 of" in line
        for line in log_of(instance, result.run_id)
    )


def test_a_failed_retry_keeps_finished_records_for_the_next_run(
    definitions: dg.Definitions, fragile: Fragile, root: Path, instance: dg.DagsterInstance
) -> None:
    fragile.fail(at=60, times=2)
    assert not execute(definitions, instance, raise_on_error=False).success
    assert not (root / "docs/fragile/fragile_results.jsonl").exists()
    result = execute(definitions, instance)
    assert result_of(root, "docs", "fragile") == expected()
    assert fragile.calls == Counter({**dict.fromkeys(range(100), 1), 60: 3})
    assert metadata_of(result, "docs", "fragile")["rows_resumed"] == 60


def test_the_error_of_a_failed_step_names_the_record(
    without_retries: dg.Definitions, fragile: Fragile, instance: dg.DagsterInstance
) -> None:
    fragile.fail(at=60)
    with pytest.raises(RecordError, match=r"record 60 .*line 61.*ConnectionError: no answer"):
        execute(without_retries, instance)


@pytest.mark.parametrize(
    ("config", "mark", "told"),
    [
        ({"resume": "never"}, "!", "starting afresh, without 60 records"),
        ({"params": {"suffix": "?"}}, "?", "its options have changed since"),
    ],
)
def test_never_to_resume_or_another_option_starts_afresh_with_a_log_line(
    without_retries: dg.Definitions,
    fragile: Fragile,
    root: Path,
    instance: dg.DagsterInstance,
    config: dict[str, Any],
    mark: str,
    told: str,
) -> None:
    fragile.fail(at=60)
    execute(without_retries, instance, raise_on_error=False)
    result = execute(without_retries, instance, {"ops": {STEP: {"config": config}}})
    assert {record["text"][-1] for record in result_of(root, "docs", "fragile")} == {mark}
    assert fragile.calls[0] == 2
    assert metadata_of(result, "docs", "fragile").get("rows_resumed") is None
    assert told in "\n".join(log_of(instance, result.run_id))


RETRY = {"ops": {STEP: {"config": {"resume": "failed_records", "ignore_errors": True}}}}


def test_the_launchpad_ignores_errors_and_retries_only_failed_records(
    without_retries: dg.Definitions, fragile: Fragile, root: Path, instance: dg.DagsterInstance
) -> None:
    fragile.fail(at=60)
    first = execute(without_retries, instance, {"ops": {STEP: {"config": {"ignore_errors": True}}}})
    metadata = metadata_of(first, "docs", "fragile")
    names = ("rows_in", "dagster/row_count", "rows_failed")
    assert [metadata[name] for name in names] == [100, 99, 1]
    rest = [number for number in range(100) if number != 60]
    assert [record["id"] for record in result_of(root, "docs", "fragile")] == rest
    result = execute(without_retries, instance, RETRY)
    assert fragile.calls == Counter({**dict.fromkeys(range(100), 1), 60: 2})
    assert result_of(root, "docs", "fragile") == expected()
    metadata = metadata_of(result, "docs", "fragile")
    assert (metadata["rows_in"], metadata["rows_failed"], metadata["rows_resumed"]) == (100, 0, 99)
    assert metadata["notes"] == (
        f"retrying 1 failed record of run {first.run_id}; the other 99 are kept"
    )
    assert "kept_from" not in metadata


def test_records_kept_across_option_changes_are_in_the_metadata(
    without_retries: dg.Definitions, fragile: Fragile, root: Path, instance: dg.DagsterInstance
) -> None:
    fragile.fail(at=60)
    first = execute(without_retries, instance, {"ops": {STEP: {"config": {"ignore_errors": True}}}})
    config = {**RETRY["ops"][STEP]["config"], "params": {"suffix": "?"}}
    result = execute(without_retries, instance, {"ops": {STEP: {"config": config}}})
    texts = [record["text"][-1] for record in result_of(root, "docs", "fragile")]
    assert texts == ["!"] * 60 + ["?"] + ["!"] * 39
    metadata = metadata_of(result, "docs", "fragile")
    assert metadata["kept_from"] == first.run_id
    assert "although the operator's options have changed since" in metadata["notes"]


def test_a_retry_of_failed_records_that_another_input_forbids_fails_the_step(
    without_retries: dg.Definitions,
    fragile: Fragile,
    records: Records,
    instance: dg.DagsterInstance,
) -> None:
    fragile.fail(at=60)
    execute(without_retries, instance, {"ops": {STEP: {"config": {"ignore_errors": True}}}})
    records(101)  # in place of the 100
    with pytest.raises(RetryRefusedError, match="the input is not that of run"):
        execute(without_retries, instance, RETRY)
    assert max(fragile.calls.values()) == 1


def test_a_result_published_before_a_crash_is_reused_by_the_re_execution(
    without_retries: dg.Definitions,
    fragile: Fragile,
    root: Path,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def die(*_: object) -> dict[str, Any]:
        msg = "killed after publishing"
        raise RuntimeError(msg)

    with monkeypatch.context() as patch:
        patch.setattr("dagster_dataops.assets.steps.run_step.report_metadata", die)
        died = execute(without_retries, instance, raise_on_error=False)
    assert not died.success
    assert len(result_of(root, "docs", "fragile")) == 100

    monkeypatch.setattr(resource_module, "continued_runs", lambda _: frozenset({died.run_id}))
    again = execute(without_retries, instance)
    assert set(fragile.calls.values()) == {1}
    assert result_of(root, "docs", "fragile") == expected()
    assert "already finished by run" in metadata_of(again, "docs", "fragile")["notes"]


def test_a_fresh_materialization_runs_the_operator_again(
    without_retries: dg.Definitions, fragile: Fragile, instance: dg.DagsterInstance
) -> None:
    execute(without_retries, instance)
    execute(without_retries, instance)
    assert set(fragile.calls.values()) == {2}


class FakeRun:
    def __init__(self, run_id: str, parent: str | None, tags: dict[str, str]) -> None:
        self.run_id, self.parent_run_id, self.tags = run_id, parent, tags
        self.is_finished = False
        self.status = dg.DagsterRunStatus.STARTED


class FakeContext:
    """The parts of a context that the resource uses."""

    def __init__(self, *runs: FakeRun) -> None:
        self.run = runs[0]
        self.run_id = self.run.run_id
        self.instance = self
        self._runs = {run.run_id: run for run in runs}

    def get_run_by_id(self, run_id: str) -> FakeRun | None:
        return self._runs.get(run_id)


RESUMES = {"dagster/is_resume_retry": "true"}
RESUMES_ASSETS = {"dagster/is_asset_resume_retry": "true"}


@pytest.mark.parametrize(
    ("runs", "continued"),
    [
        ([FakeRun("a", None, {})], set()),
        ([FakeRun("a", "b", {}), FakeRun("b", None, {})], set()),  # all steps again
        ([FakeRun("a", "b", RESUMES), FakeRun("b", None, {})], {"b"}),
        ([FakeRun("a", "b", RESUMES_ASSETS), FakeRun("b", "c", RESUMES)], {"b", "c"}),
        ([FakeRun("a", "b", RESUMES), FakeRun("b", "c", {})], {"b"}),
        ([FakeRun("a", "b", RESUMES)], {"b"}),  # the parent was deleted
        ([FakeRun("a", "b", RESUMES), FakeRun("b", "a", RESUMES)], {"a", "b"}),
    ],
)
def test_a_run_continues_its_parents_as_long_as_they_were_re_executed_from_failure(
    runs: list[FakeRun], continued: set[str]
) -> None:
    context: Any = FakeContext(*runs)
    assert continued_runs(context) == continued


def test_a_folder_that_another_run_holds_is_waited_for_then_refused_by_its_name(
    without_retries: dg.Definitions, root: Path, instance: dg.DagsterInstance
) -> None:
    lock = FolderLock(root / "docs" / "fragile", "another-run", 0)
    try:
        with pytest.raises(FolderLockedError, match=f"another-run.*process {os.getpid()}"):
            execute(without_retries, instance)
    finally:
        lock.release()


def test_a_run_that_is_dying_is_waited_for(
    fragile: Fragile, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    ppl = pipeline_of(fragile=fragile.operator)
    definitions = definitions_of(ppl, records(5), root)
    lock = FolderLock(root / "docs" / "fragile", "dying-run", 0)
    timer = threading.Timer(0.3, lock.release)
    timer.start()
    config = {"resources": {"dataops": {"config": {"lock_seconds": 20.0}}}}
    assert execute(definitions, instance, config).success
    timer.join()


def test_the_root_is_given_or_configured(root: Path, tmp_path: Path) -> None:
    assert DataOpsResource().root_path == root == config.data_process_path
    assert DataOpsResource(root=str(tmp_path)).root_path == tmp_path
    assert DataOpsResource(root="~/results").root_path == Path.home() / "results"
    assert DataOpsResource(root="results").root_path == Path.cwd() / "results"


def _has_failed(event: dg.DagsterEvent) -> bool:
    return event.is_failure


def test_a_url_as_the_root_of_the_launchpad_fails_the_run_and_makes_no_folder(
    without_retries: dg.Definitions,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    result = without_retries.resolve_implicit_global_asset_job_def().execute_in_process(
        run_config={"resources": {"dataops": {"config": {"root": "ftp://host/results"}}}},
        instance=instance,
        raise_on_error=False,
    )
    assert not result.success
    text = str([event.event_specific_data for event in result.filter_events(_has_failed)])
    assert "Setting root is 'ftp://host/results'" in text
    assert "a path on this machine" in text
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["max_workers", "flush_seconds", "lock_seconds"])
def test_numbers_below_zero_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        DataOpsResource(**{name: -1})


@pytest.mark.parametrize(("own", "found"), [(None, 3), (2, 2)])
def test_workers_of_the_operator_override_those_of_the_resource(
    own: int | None,
    found: int,
    registry: OperatorRegistry,
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    threads: set[str] = set()
    barrier = threading.Barrier(found, timeout=300)

    @registry("data.text", _concurrency_mode="thread")
    def count(record: dict) -> None:
        threads.add(threading.current_thread().name)
        barrier.wait()

    resource = DataOpsResource(root=str(root), max_workers=3)

    @dg.asset
    def counted(context: dg.AssetExecutionContext) -> None:
        folder = resource.folder(["counted"])
        operator = count(_max_workers=own) if own else count()
        source = write(root, found * 2)
        resource.run_operator(context, operator, [source], folder)

    dg.materialize([counted], instance=instance)
    assert len(threads) == found


def write(root: Path, count: int) -> Any:

    return dataset_of(root / "texts.jsonl", numbered(count))


def test_an_asset_of_the_users_own_may_run_an_operator(
    fragile: Fragile, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset
    def own(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> int:
        source = write(root, 5)
        folder = dataops.folder(context.asset_key.path)
        report = dataops.run_operator(context, fragile.operator, [source], folder)
        return report.manifest.rows_out

    result = dg.materialize([own], instance=instance, resources={"dataops": resource_at(root)})
    assert result.output_for_node("own") == 5


class Judge(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A client that Dagster sets up at the start of a run."""

    prefix: str

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        self._ready = True

    def ask(self, text: str) -> str:
        assert self._ready
        return f"{self.prefix} {text}"


class WithClients(DataOpsResource):
    """The resource with clients."""

    judge: Judge
    model: str = "small"


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_fields_of_a_subclass_are_clients_of_operators(
    registry: OperatorRegistry,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
    layout: Any,
    mode: str,
) -> None:
    @registry("data.text", _concurrency_mode=mode, _max_workers=2)
    def ask(record: dict, context: OperatorContext) -> dict:
        clients = context.clients
        return {"reply": clients["judge"].ask(record["text"]), "model": clients["model"]}

    resource = WithClients(root=str(root), judge=Judge(prefix="yes:"))
    definitions = build_definitions(
        pipeline_of(ask=ask()), source=records(3), resource=resource, layout=layout
    )
    assert execute(definitions, instance).success
    wanted = [{"reply": f"yes: {record['text']}", "model": "small"} for record in numbered(3)]
    assert result_of(root, "docs", "ask") == wanted


def test_a_missing_client_is_named_with_the_remedy(
    registry: OperatorRegistry, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    @registry("data.text", _concurrency_mode="single", _ignore_errors=False)
    def ask(record: dict, context: OperatorContext) -> dict:
        return context.clients["judge"]

    definitions = definitions_of(pipeline_of(ask=ask()), records(3), root)
    with pytest.raises(RecordError, match=r"build_definitions\(clients={'judge'"):
        execute(definitions, instance)


@pytest.mark.slow
def test_operators_in_process_mode_run_on_the_cluster_of_the_resource(
    registry: OperatorRegistry, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    @registry("data.text")
    def where(record: dict) -> dict:
        return {"id": record["id"]}

    @registry("data.text", _agents=False, _max_workers=1)
    def at_home(record: dict) -> dict:
        return {"id": record["id"], "home": os.getpid() > 0}

    resource = DataOpsResource(root=str(root), cluster=LocalCluster(agents=1, cpus_per_agent=1))
    pipeline = pipeline_of(where=where(), at_home=at_home())
    definitions = build_definitions(pipeline, source=records(5), resource=resource)
    assert execute(definitions, instance).success
    assert [row["id"] for row in result_of(root, "docs", "where")] == [0, 1, 2, 3, 4]
    assert len(result_of(root, "docs", "at_home")) == 5


def test_an_operator_that_asks_for_agents_fails_without_a_cluster(
    registry: OperatorRegistry, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    @registry("data.text", _agents={"num_gpus": 1})
    def embed(record: dict) -> dict:
        return record

    definitions = definitions_of(pipeline_of(embed=embed()), records(3), root)
    with pytest.raises(ClusterError, match=r"num_gpus.*set cluster= of DataOpsResource"):
        execute(definitions, instance)


class RayOfTests(dg.ConfigurableResource[None]):
    """Like a resource of dagster-ray: it has an address between the start and the end of a step."""

    _host: str = PrivateAttr(default="")

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        self._host = "head"

    @property
    def ray_address(self) -> str:
        if not self._host:
            raise ValueError("not initialized")
        return f"ray://{self._host}:10001"


@pytest.mark.filterwarnings("ignore:The `__fields__` attribute")  # of Dagster's nested resources
def test_the_cluster_may_be_a_resource_that_dagster_starts_for_the_step(
    registry: OperatorRegistry,
    records: Callable[[int], Path],
    root: Path,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @registry("data.text", _concurrency_mode="process")
    def spread(record: dict) -> None: ...

    def refused(cluster: RayCluster) -> Any:
        raise ClusterError(str(cluster), "is one of a test")

    monkeypatch.setattr(RayCluster, "open", refused)
    resource = DataOpsResource(root=str(root), cluster=RayOfTests())
    ppl = pipeline_of(spread=spread())
    definitions = build_definitions(ppl, source=records(3), resource=resource)
    with pytest.raises(ClusterError, match="Ray at ray://head:10001: is one of a test"):
        execute(definitions, instance)


@pytest.mark.parametrize(
    ("resource", "field", "hint"),
    [
        (DataOpsResource, "max_worker", "did you mean 'max_workers'?"),
        (DataOpsResource, "clients", "give clients to build_definitions(clients={"),
        (LLMResource, "server", "its fields: api_key, base_url, batch_share,"),
        (DataOpsIOManager, "root", "its fields: dataops"),
    ],
)
def test_unknown_fields_of_resources_are_refused(
    resource: Callable[..., Any], field: str, hint: str
) -> None:
    text = f"unexpected keyword argument {field!r}; {hint}"
    with pytest.raises(TypeError, match=re.escape(text)):
        resource(**{field: {}})


def test_a_result_links_to_its_page_in_the_view(
    registry: OperatorRegistry, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    @registry("data.text", _concurrency_mode="single")
    def same(record: dict) -> dict:
        return record

    for address in (None, "http://localhost:8765/"):
        resource = DataOpsResource(root=str(root), view_url=address)
        ours = build_definitions(pipeline_of(one=same()), source=records(2), resource=resource)
        result = execute(ours, instance)
        link = "http://localhost:8765/records/docs/one" if address else None
        assert metadata_of(result, "docs", "one").get("view") == link
        told = f"see the records: python -m dagster_dataops view {root}"
        assert log_of(instance, result.run_id).count(told) == 1

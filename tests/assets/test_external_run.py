"""Tests of assets that are made in external processes, which Dagster Pipes starts."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
import pytest

from dagster_dataops.assets.runtime.external.external_call import ExternalCall, answering
from dagster_dataops.assets.runtime.external.external_results import messages_of, reported_results
from dagster_dataops.errors import ExternalRunError
from tests.assets.helpers import read_jsonl
from tests.command_line import main
from tests.faults.cases import cases
from tests.faults.crashing import wait_until
from tests.faults.warm_starts import warm_interpreter

pytestmark = [  # Pipes itself uses names that Dagster has deprecated or previews
    pytest.mark.filterwarnings("ignore:.*PipesMessageReader.expected_writer_count"),
    pytest.mark.filterwarnings("ignore:AssetExecutionContext.run_id is deprecated"),
]

ROOT = Path(__file__).parents[2]
RECORDS = 300
SLOW_FROM = 200  # records from which on the operator is slow, while there is a file `slow`
# Metadata that differs from run to run, or from root to root.
DIFFERS = ("seconds", "records_per_second", "uri", "path", "trace", "timestamp")

SHARED = f"""
import os, sys, time
from pathlib import Path

import dagster as dg

from dagster_dataops import (
    DataOpsResource, build_definitions, data_register, dataops_assets, dataops_resources, pipeline,
)

HERE = Path(__file__).parent


@data_register("data.GROUP", _concurrency_mode="single", _ignore_errors=False)
def count(record, key="length"):
    if record["n"] >= {SLOW_FROM} and (HERE / "slow").exists():
        (HERE / "process").write_text(str(os.getpid()))
        time.sleep(0.2)
    if (HERE / "bad").exists():
        raise ValueError("bad weather")
    with (HERE / "calls").open("a") as file:
        print(record["n"], file=file)
    return record | {{key: len(record["text"])}}


@data_register("data.GROUP", _concurrency_mode="single")
def even(record):
    if (HERE / "dies").exists():
        os._exit(9)
    return record if record["n"] % 2 == 0 else []


with pipeline("docs") as ppl:
    ppl.counted = count()
    ppl.even = even()

ROOT = os.environ.get("TEST_ROOT", str(HERE / "root"))
RESOURCES = dataops_resources(DataOpsResource(root=ROOT)) | {{"pipes": dg.PipesSubprocessClient()}}
COMMAND = [sys.executable, "-m", "dagster_dataops", "run", "-f"]
PARTITIONED = dict(
    source=str(HERE / "{{partition}}.jsonl"),
    partitions_def=dg.StaticPartitionsDefinition(["a", "b", "c"]),
    backfill_policy=dg.BackfillPolicy.single_run(),
)
"""
OURS = """
@dataops_assets(ppl, **(dict(source=str(HERE / "docs.jsonl")) | KEYWORDS))
def docs(
    context: dg.AssetExecutionContext, dataops: DataOpsResource, pipes: dg.PipesSubprocessClient
):
    command = [*COMMAND, __file__]
    yield from dataops.run_by_pipes(context, pipes, command=command, env=ENVIRONMENT)


defs = dg.Definitions(assets=[docs], resources=RESOURCES)
"""
HERE = OURS.replace(
    "dataops.run_by_pipes(context, pipes, command=command, env=ENVIRONMENT)", "dataops.run(context)"
)
PLAIN = """
given = dict(source=str(HERE / "docs.jsonl")) | KEYWORDS
defs = build_definitions(ppl, **given, resource=DataOpsResource(root=ROOT))
"""
THEIRS = """
@dg.asset(check_specs=CHECKS, **KEYWORDS)
def mine(context: dg.AssetExecutionContext, pipes: dg.PipesSubprocessClient):
    command = [*COMMAND, str(HERE / "plain.py"), *ARGUMENTS]
    return pipes.run(context=context, command=command).get_materialize_result()


defs = dg.Definitions(assets=[mine], resources=RESOURCES)
"""


class Location:
    """A code location in a folder, and the instance that runs its assets."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.folder = folder
        self.instance = instance
        rows = [f'{{"n":{n},"text":"text {n}"}}\n' for n in range(RECORDS)]
        for name in ("docs", "a", "b", "c"):
            (folder / f"{name}.jsonl").write_text("".join(rows))

    def file(self, name: str, code: str, **values: str) -> Path:
        given = {"KEYWORDS": "{}", "ENVIRONMENT": "{}", "CHECKS": "[]", "ARGUMENTS": "[]"} | values
        assigned = "".join(f"{key} = {value}\n" for key, value in given.items())
        path = self.folder / name
        group = re.sub(r"\W", "_", f"{self.folder.name}_{path.stem}")  # one for each file
        path.write_text(SHARED.replace("GROUP", group) + assigned + code)
        return path

    def definitions(self, code: str, name: str = "defs.py", **values: str) -> dg.Definitions:
        path = self.file(name, code, **values)
        namespace: dict[str, Any] = {"__file__": str(path), "__name__": path.stem}
        exec(compile(path.read_text(), path, "exec"), namespace)  # noqa: S102 - its own code
        found: dg.Definitions = namespace["defs"]
        return found

    def run(self, definitions: dg.Definitions, **keywords: Any) -> dg.ExecuteInProcessResult:
        job = definitions.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance, **{"raise_on_error": False, **keywords}
        )

    def touch(self, *names: str) -> None:
        for name in names:
            (self.folder / name).touch()

    def remove(self, *names: str) -> None:
        for name in names:
            (self.folder / name).unlink()

    def calls(self) -> list[int]:
        return [int(line) for line in (self.folder / "calls").read_text().split()]

    def result(self, node: str, partition: str = "", root: str = "root") -> bytes:
        place = self.folder / root / "docs" / node
        place = place / "partitions" / partition if partition else place
        return (place / f"{node}_results.jsonl").read_bytes()

    def told(self, result: dg.ExecuteInProcessResult) -> str:
        """Return all log lines of a run, and the errors of its events."""
        logs = self.instance.all_logs(result.run_id)
        return "".join(f"\n{one.user_message}\n{one.dagster_event}" for one in logs)

    def external_process(self) -> int:
        """Return the process of the operator once it is slow, and some records are settled."""
        file, root = self.folder / "process", self.folder / "root"
        wait_until(
            lambda: file.exists() and file.read_text() != "" and any(_settled(root)), 100, "calls"
        )
        return int(file.read_text())


def _settled(root: Path) -> Iterator[Path]:
    """Yield the files with settled records of unfinished results."""
    found = root.rglob("checkpoints/*/segment*")
    return (path for path in found if path.stat().st_size > 0)


WARM = ("dagster_dataops.__main__", "dagster_dataops.assets.preload", "dagster_pipes")


@pytest.fixture(autouse=True)
def _without_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Pipes fork Python's processes from one that has imported Dagster: it takes 2 seconds."""

    def started(command: list[str], cwd: str | None, env: dict[str, str], **given: Any) -> Any:
        if command[0] != sys.executable:
            return subprocess.Popen(command, cwd=cwd, env=env, **given)
        folder = Path(cwd or Path.cwd())
        return warm_interpreter(*WARM).start(command[1:], 1, folder=folder, environment=env)

    monkeypatch.setattr("dagster._core.pipes.subprocess.Popen", started)


@pytest.fixture
def location(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> Location:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return Location(tmp_path, instance)


def materializations(result: dg.ExecuteInProcessResult) -> list[dg.AssetMaterialization]:
    events = result.get_asset_materialization_events()
    return [event.step_materialization_data.materialization for event in events]


def shown(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if not name.endswith(DIFFERS)}


def metadata_of(result: dg.ExecuteInProcessResult) -> dict[tuple[str, str | None], Any]:
    return {
        (one.asset_key.to_user_string(), one.partition): shown(one.metadata)
        for one in materializations(result)
    }


def checks_of(result: dg.ExecuteInProcessResult) -> dict[tuple[str, str], Any]:
    return {
        (one.asset_key.to_user_string(), one.check_name): (
            one.passed,
            one.severity,
            one.description,
            one.metadata,
        )
        for one in result.get_asset_check_evaluations()
    }


def versions_of(result: dg.ExecuteInProcessResult) -> list[list[str | None]]:
    names = ("data_version", "code_version", "input_data_version/docs/docs")
    tags = [one.tags or {} for one in materializations(result)]
    return [[one.get(f"dagster/{name}") for name in names] for one in tags]


@pytest.mark.parametrize("partitioned", cases([True], campaign=[False, True]))
@pytest.mark.slow
def test_an_asset_made_outside_has_the_bytes_and_events_of_one_made_here(
    location: Location, partitioned: bool
) -> None:
    given = {"KEYWORDS": "PARTITIONED"} if partitioned else {}
    tags = {"dagster/asset_partition_range_start": "a", "dagster/asset_partition_range_end": "b"}
    keywords = {"tags": tags if partitioned else {}, "raise_on_error": True}
    own = {**given, "ROOT": 'str(HERE / "here")'}
    own["RESOURCES"] = (
        "dataops_resources(DataOpsResource(root=ROOT)) | {'pipes': RESOURCES['pipes']}"
    )
    result = location.run(location.definitions(OURS, **given), **keywords)
    with dg.DagsterInstance.ephemeral() as location.instance:
        expected = location.run(location.definitions(HERE, **own), **keywords)

    assert len(metadata_of(expected)) == (4 if partitioned else 3)  # one is that of the file
    assert metadata_of(result) == metadata_of(expected)
    assert versions_of(result) == versions_of(expected)
    assert checks_of(result) == checks_of(expected)
    assert len(checks_of(expected)) == 2
    for node in ("counted", "even"):
        for name in ("a", "b") if partitioned else ("",):
            assert location.result(node, name) == location.result(node, name, "here")


@pytest.mark.slow
def test_log_lines_are_those_of_the_step(location: Location) -> None:
    definitions = location.definitions(OURS, KEYWORDS="PARTITIONED")
    result = location.run(definitions, partition_key="b")
    assert result.success
    assert list(metadata_of(result)) == [("docs/counted", "b"), ("docs/even", "b")]
    told = location.told(result)
    assert "external process successfully opened" in told
    assert "STEP_START" not in told.split("successfully opened")[1].split("\n")[0]


@pytest.mark.slow
def test_what_a_killed_process_has_settled_is_not_done_again(location: Location) -> None:
    definitions = location.definitions(OURS)
    location.touch("slow")
    killer = threading.Thread(
        target=lambda: os.kill(location.external_process(), signal.SIGKILL), daemon=True
    )
    killer.start()
    killed = location.run(definitions)
    killer.join()
    assert not killed.success
    begun = location.calls()
    assert begun == list(range(len(begun)))
    assert len(begun) < RECORDS

    location.remove("slow")
    again = location.run(definitions)

    assert again.success
    found = metadata_of(again)["docs/counted", None]
    resumed = found["dagster_dataops/rows_resumed"].value
    assert resumed > 0
    assert f"counted: resuming: {resumed}" in location.told(again)  # a log line of the step
    assert location.calls() == [*begun, *range(resumed, RECORDS)]
    assert found["dagster_dataops/resumed_from"].value == killed.run_id
    rows = read_jsonl(location.folder / "root/docs/counted/counted_results.jsonl")
    assert [row["n"] for row in rows] == list(range(RECORDS))


@pytest.mark.slow
def test_a_result_that_was_published_but_not_reported_is_kept_once(location: Location) -> None:
    definitions = location.definitions(OURS)
    location.touch("dies")  # in the second operator: the events of the first one are lost
    assert not location.run(definitions).success
    location.remove("dies")

    again = location.run(definitions)
    assert again.success
    assert location.calls() == list(range(RECORDS))
    assert metadata_of(again)["docs/counted", None]["dagster/row_count"].value == RECORDS

    assert location.run(definitions).success  # on purpose: it was reported
    assert len(location.calls()) == 2 * RECORDS


@pytest.mark.slow
def test_dynamic_partitions_config_and_tags_of_the_launch_arrive(location: Location) -> None:
    dynamic = (
        "dict(source=str(HERE / '{partition}.jsonl'), "
        "partitions_def=dg.DynamicPartitionsDefinition(name='files'))"
    )
    definitions = location.definitions(OURS, KEYWORDS=dynamic)
    location.instance.add_dynamic_partitions("files", ["c", "a"])
    config = {"ops": {"docs": {"config": {"counted": {"params": {"key": "size"}}}}}}
    result = location.run(definitions, partition_key="a", run_config=config)
    assert result.success, location.told(result)
    rows = location.result("even", "a").splitlines()
    assert rows[0] == b'{"n":0,"text":"text 0","size":6}'
    assert len(location.calls()) == RECORDS

    tags = {"dagster_dataops/refresh": "true"}
    assert location.run(definitions, partition_key="a", run_config=config, tags=tags).success
    assert len(location.calls()) == RECORDS  # nothing was stale


@pytest.mark.slow
def test_a_failed_operator_is_named_in_the_run_and_tried_again_by_the_step_alone(
    location: Location,
) -> None:
    policy = "{'retry_policy': dg.RetryPolicy(max_retries=1)}"
    location.touch("bad")
    result = location.run(location.definitions(OURS, KEYWORDS=policy))
    told = location.told(result)
    assert not result.success
    assert told.count("\n[pipes] external process pipes closed with exception") == 2  # tries
    assert re.search(r"Operator \w+\.count failed on record 0", told)
    assert "ValueError: bad weather" in told


def _lines(instance: dg.DagsterInstance) -> str:
    """Return the log lines of the only run."""
    (record,) = instance.get_run_records()
    logs = instance.all_logs(record.dagster_run.run_id)
    return "".join(f"{one.user_message}\n" for one in logs)


@pytest.mark.slow
@pytest.mark.parametrize("sent", cases([signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]))
def test_a_terminated_run_ends_the_process_and_keeps_what_is_finished(
    location: Location, sent: signal.Signals, stored: dg.DagsterInstance
) -> None:
    policy = "{'retry_policy': dg.RetryPolicy(max_retries=3)}"
    location.file("defs.py", OURS, KEYWORDS=policy)
    location.touch("slow")
    home = location.folder / "instance"
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    code = (
        "import dagster as dg, defs\n"
        "with dg.DagsterInstance.get() as instance:\n"
        "    job = defs.defs.resolve_implicit_global_asset_job_def()\n"
        "    job.execute_in_process(instance=instance)\n"
    )
    given = os.environ | {"DAGSTER_HOME": str(home), "PYTHONPATH": f"{ROOT}:{location.folder}"}
    script = location.folder / "run.py"
    script.write_text(code)
    warm = warm_interpreter(*WARM)
    with warm.start([str(script)], 1, folder=location.folder, environment=given) as run:
        external = location.external_process()
        wait_until(lambda: "records/s" in _lines(stored), 60, "progress in the log")
        run.send_signal(sent)
        run.wait(300)
    assert not psutil.pid_exists(external)
    (record,) = stored.get_run_records()
    assert record.dagster_run.status in {
        dg.DagsterRunStatus.FAILURE,
        dg.DagsterRunStatus.CANCELED,
    }
    assert _lines(stored).count("successfully opened") == 1  # it was not tried again
    assert len(location.calls()) in range(SLOW_FROM, RECORDS)


@pytest.mark.slow
def test_other_clients_report_to_an_asset_of_their_own(location: Location) -> None:
    location.file("plain.py", PLAIN)
    arguments = {"ARGUMENTS": "['docs/counted', 'docs/even', '--checks']"}
    checks = {"CHECKS": "[dg.AssetCheckSpec('failed_records', asset='mine')]"}
    result = location.run(location.definitions(THEIRS, **arguments, **checks))
    assert result.success, location.told(result)
    (one,) = materializations(result)
    assert one.asset_key == dg.AssetKey("mine")
    with dg.DagsterInstance.ephemeral() as location.instance:
        own = metadata_of(location.run(location.definitions(PLAIN, "plain.py")))
    wanted = own["docs/even", None]
    found = shown(one.metadata)
    schema, own_schema = (each.pop("dagster/column_schema").value for each in (found, wanted))
    assert schema.columns == own_schema.columns  # Pipes has no place for constraints of a table
    assert {name: value.value for name, value in found.items()} == {
        name: value.value for name, value in wanted.items()
    }
    (check,) = result.get_asset_check_evaluations()
    assert (check.passed, check.check_name) == (True, "failed_records")
    assert check.metadata["dagster_dataops/description"].value == "No record failed."


@pytest.mark.slow
def test_other_clients_have_one_partition(location: Location) -> None:
    location.file("plain.py", PLAIN, KEYWORDS="PARTITIONED")
    theirs = "{'partitions_def': PARTITIONED['partitions_def']}"
    arguments = "['docs/counted', 'docs/even']"
    definitions = location.definitions(THEIRS, KEYWORDS=theirs, ARGUMENTS=arguments)
    result = location.run(definitions, partition_key="c")
    assert result.success, location.told(result)
    (one,) = materializations(result)
    assert one.partition == "c"
    assert one.metadata["dagster/partition_row_count"].value == RECORDS / 2
    assert location.result("even", "c")


REDO = "[*COMMAND[:-1], '--redo-records', 'failed', COMMAND[-1]]"
WRONG = {
    "Give both the same root": {"ENVIRONMENT": "{'TEST_ROOT': str(HERE / 'other')}"},
    "choose the records in the launch of the asset": {"COMMAND": REDO},
    "sent no results": {"COMMAND": "['true']"},
}


@pytest.mark.slow
@pytest.mark.parametrize(("said", "given"), WRONG.items(), ids=WRONG)
def test_what_does_not_fit_is_told_in_the_run(
    location: Location, said: str, given: dict[str, str]
) -> None:
    result = location.run(location.definitions(OURS, **given))
    assert not result.success
    assert said in location.told(result)


@pytest.mark.slow
def test_without_a_client_the_command_materializes_and_prints(
    location: Location, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    file = str(location.file("plain.py", PLAIN))
    assert main(["run", "-f", file, "docs/counted"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"docs/counted: {RECORDS} records"
    assert main(["run", "-f", file]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"docs/even: {RECORDS // 2} records"
    partitioned = str(location.file("parts.py", PLAIN, KEYWORDS="PARTITIONED"))
    assert main(["run", "-f", partitioned, "--partition", "b"]) == 0
    assert f"docs/even b: {RECORDS // 2} records" in capsys.readouterr().out
    assert main(["run", "-f", file, "docs/missing"]) == 1
    assert "one of: docs/counted, docs/even" in capsys.readouterr().err


def test_a_call_of_another_version_is_refused_by_name() -> None:
    with pytest.raises(ExternalRunError, match="Install the same version"):
        ExternalCall.received({"dagster_dataops": {"root": "/r", "step": "s", "new_field": 1}})
    assert ExternalCall.received({}) is None


def test_a_process_of_an_external_process_is_refused() -> None:
    with (
        answering(None),
        pytest.raises(ExternalRunError, match="dataops.run_by_pipes"),
        answering(None),
    ):
        pass
    with answering(None):
        pass


class _Step:
    """A step, and what its external process has sent."""

    metadata: Mapping[str, Any] = {}
    selected_asset_keys = frozenset({dg.AssetKey("a")})

    def __init__(self, messages: list[Any]) -> None:
        self._messages = messages

    def get_custom_messages(self) -> list[Any]:
        return self._messages


LONG_TEXT = 'quotes ", \\ and \u00e4\U0001f600 \n' * 4000


def test_no_message_is_longer_than_what_dagster_writes_at_once_and_all_together_are_the_results():
    event = dg.AssetMaterialization("a", metadata={"text": dg.MetadataValue.md(LONG_TEXT)})
    check = dg.AssetCheckEvaluation(dg.AssetKey("a"), "c", passed=True, metadata={"n": 1})
    messages = messages_of([event], [check])
    assert max(len(json.dumps(message)) for message in messages) < 7000

    step: Any = _Step([{"other": 1}, *messages, None])
    result, outcome = reported_results(step, step)
    assert isinstance(result, dg.MaterializeResult)
    assert result.metadata == event.metadata
    assert isinstance(outcome, dg.AssetCheckResult)
    assert (outcome.check_name, outcome.passed) == ("c", True)

    for arrived in (messages[:-1], messages[1:], [messages[1], messages[0], *messages[2:]]):
        broken: Any = _Step(arrived)
        with pytest.raises(ExternalRunError, match=r"of the \d+ parts of its results arrived"):
            list(reported_results(broken, broken))


def test_messages_of_another_version_are_named():
    step: Any = _Step([{"dagster_dataops": ["{}"]}])
    with pytest.raises(ExternalRunError, match="has another version of dagster-dataops"):
        list(reported_results(step, step))

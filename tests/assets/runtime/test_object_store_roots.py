"""Test assets with results on an object store, each run as on a machine of its own."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import (
    DataOpsIOManager,
    DataOpsResource,
    JsonlDataset,
    LocalCluster,
    assets,
    build_definitions,
    checks,
    config,
    load_result,
    pipeline,
    trace,
)
from dagster_dataops.configuration import root_setting
from dagster_dataops.errors import InputError
from tests.assets.helpers import execute, numbered, pipeline_of, read_jsonl, write_jsonl
from tests.execution.helpers import node, operator_for, run, second_thread
from tests.nodes import Manifest, result_by_range, write_result
from tests.object_stores import SECRETS, FakeStore, keep_at_most, s3_server, use
from tests.registries import OperatorRegistry

ROOT = "memory://assets/results"


@pytest.fixture
def machines(tmp_path: Path) -> Any:
    """Return a function that goes on as on another machine, with the same store."""
    store, numbers = FakeStore(), count()

    def go_on() -> FakeStore:
        config.data_process_scratch = tmp_path / f"machine{next(numbers)}"
        bucket = root_setting("root", ROOT).bucket
        assert bucket is not None
        use(bucket, store)
        return store

    return go_on


def metadata_of(result: dg.ExecuteInProcessResult, name: str) -> dict[str, Any]:
    found = {}
    for event in result.get_asset_materialization_events():
        if event.asset_key is not None and event.asset_key.path[-1] == name:
            found = dict(event.step_materialization_data.materialization.metadata)
    return {key: value.value for key, value in found.items()}


def test_assets_and_io_manager_read_what_another_machine_has_published(
    machines: Any, instance: dg.DagsterInstance
) -> None:
    store = machines()
    dataops = DataOpsResource(root=ROOT)
    manager = DataOpsIOManager(dataops=dataops)

    @dg.asset(key=["own", "made"], io_manager_key="io")
    def made() -> list[dict[str, Any]]:
        return [{"n": 1}, {"n": 2}]

    got: list[Any] = []

    @dg.asset(ins={"made": dg.AssetIn(key=["own", "made"])}, io_manager_key="io")
    def used(made: JsonlDataset) -> list[dict[str, Any]]:
        got.append(made.read())
        return [*made, {"n": 3}]

    first = dg.materialize([made], resources={"io": manager}, instance=instance)
    machines()
    second = dg.materialize(
        [made, used], resources={"io": manager}, instance=instance, selection=[used]
    )

    assert got == [[{"n": 1}, {"n": 2}]]
    uri = metadata_of(first, "made")["dagster/uri"]
    assert uri.startswith(f"{ROOT}/own/made/.versions/")
    assert uri.endswith("/made_results.jsonl")
    assert store.objects[uri.removeprefix("memory://assets/")][0] == b'{"n":1}\n{"n":2}\n'
    assert metadata_of(second, "used")["dagster/row_count"] == 3


def test_a_value_that_is_stored_again_replaces_the_earlier_one(
    machines: Any, instance: dg.DagsterInstance
) -> None:
    values = iter([[{"n": 1}], [{"n": 2}], [{"n": 2}]])

    @dg.asset(io_manager_key="io")
    def made() -> list[dict[str, Any]]:
        return next(values)

    kept = []
    for _ in range(3):
        store = machines()
        manager = DataOpsIOManager(dataops=DataOpsResource(root=ROOT))
        dg.materialize([made], resources={"io": manager}, instance=instance)
        kept.append([key for key in store.objects if ".versions" in key])

    assert [len(keys) for keys in kept] == [1, 1, 1]
    machines()
    assert load_result(f"{ROOT}/made").read() == [{"n": 2}]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with s3_server() as found:
        yield found


@pytest.fixture
def on_s3(address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """Return a function that goes on as on another machine, whose working copy it returns."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    numbers = count()

    def go_on() -> Path:
        config.data_process_scratch = tmp_path / f"machine{next(numbers)}"
        return config.data_process_scratch

    with second_thread(True):  # no forks
        yield go_on


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_an_operator_reads_the_result_of_another_machine_by_ranges(
    on_s3: Any,
    registry: OperatorRegistry,
    tmp_path: Path,
    instance: dg.DagsterInstance,
    layout: Any,
) -> None:
    @registry("data.text", _concurrency_mode="process", _max_workers=2)
    def upper(record: dict) -> dict:
        return {**record, "text": record["text"].upper()}

    @registry("data.text", _concurrency_mode="process", _max_workers=2)
    def marked(record: dict) -> list[dict]:
        if record["id"] == 7:
            raise ValueError("seven")
        return [record, {**record, "text": record["text"] + "!"}]

    ppl = pipeline_of(upper=upper(), marked=marked())
    source = write_jsonl(tmp_path / "texts.jsonl", list(numbered(500)))
    facts = {}
    for root in (f"s3://results/{layout}", str(tmp_path / "local")):
        resource = DataOpsResource(root=root)
        definitions = build_definitions(ppl, source=source, resource=resource, layout=layout)
        for name in ("upper", "marked"):
            scratch = on_s3()
            result = execute(definitions, instance, only=[["docs", name]])
        folder = resource.folder(["docs", "marked"])
        facts[root[:2]] = folder.result.read_bytes(), result, folder, scratch
    there, here = facts["s3"], facts[str(tmp_path)[:2]]

    assert there[0] == here[0]
    _, result, folder, scratch = there
    copies = {path.name for path in scratch.rglob("*.jsonl")}
    assert copies == {"marked_results.jsonl", "marked_error.jsonl"}
    url = f"s3://results/{layout}/docs/upper/upper_results.jsonl"
    assert read_jsonl(folder.errors)[0]["path"] == url
    manifest = Manifest.load(folder.manifest)
    assert manifest is not None
    assert manifest.inputs[0]["path"].endswith("/docs/upper/upper_results.jsonl")
    with config.temporary(data_process_scratch=scratch):  # on the machine of the last step
        assert "text 8" in str(trace(folder.path, 15))


@pytest.mark.slow
def test_the_options_of_a_store_may_be_known_to_the_resource_alone(
    address: str,
    registry: OperatorRegistry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    instance: dg.DagsterInstance,
) -> None:
    """Results, artefacts, the report and the preview are found by the bucket of the resource."""
    monkeypatch.setattr(config, "data_process_scratch", tmp_path / "scratch")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    group = registry.new_group("seen")

    class Known(group):
        def build(self, records, folder):
            (folder / "size").write_text(str(len(list(records))))

    class Sized(group):
        def __init__(self, known, **settings):
            super().__init__(**settings)
            self.known = known

        def forward(self, record: dict) -> dict:
            return {**record, "size": (self.known / "size").read_text()}

    with pipeline("docs") as ppl:
        ppl.known = Known()
        ppl.sized = Sized(known=ppl.known, _concurrency_mode="single")
    options = {name.lower(): value for name, value in SECRETS.items()} | {"endpoint": address}
    resource = DataOpsResource(root="s3://results/secret", storage_options=options)
    source = write_jsonl(tmp_path / "texts.jsonl", list(numbered(5)))
    definitions = build_definitions(
        ppl, source=source, resource=resource, report=True, jobs=["pipeline", "preview"]
    )
    jobs = list(definitions.jobs or ())
    assert len(jobs) == 2
    for job in jobs:
        assert definitions.resolve_job_def(job.name).execute_in_process(instance=instance).success
    assert load_result(resource.folder(["docs", "sized"])).read()[0]["size"] == "5"


@pytest.mark.slow
def test_a_result_by_range_is_the_same_input_as_its_copy_until_it_is_replaced(
    on_s3: Any, tmp_path: Path
) -> None:
    def folder() -> assets.NodeFolder:
        return DataOpsResource(root="s3://results/ranges").folder(["made"])

    on_s3()
    local = write_result(folder(), [{"n": n, "do": "replace"} for n in range(9)], "first")
    on_s3()
    found = result_by_range(folder())
    copy = found.download()

    assert (found.identity, found.rows, found.read()) == (local.identity, 9, local.read())
    assert copy.identity == local.identity
    assert copy.path.read_bytes() == local.path.read_bytes()
    assert not folder().result.exists()

    context = {"cluster": LocalCluster(agents=2, cpus_per_agent=1)}
    here = run(operator_for("process", 1), local, node(tmp_path / "here"))
    away = run(operator_for("process", 1), found, node(tmp_path / "away"), **context)
    assert away.dataset.path.read_bytes() == here.dataset.path.read_bytes()
    assert away.manifest.made_from == here.manifest.made_from

    write_result(folder(), [{"n": 1}], "second")
    for attempt in (found.read, found.check_content, found.download):
        with pytest.raises(InputError, match="s3://results/ranges/made/made_results.jsonl: "):
            attempt()


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_assets_whose_results_stay_in_the_bucket_are_those_of_others(
    machines: Any,
    registry: OperatorRegistry,
    tmp_path: Path,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    layout: Any,
) -> None:
    @registry("data.text", _concurrency_mode="single")
    def upper(record: dict) -> dict:
        return {**record, "text": record["text"].upper()}

    @registry("data.text", _concurrency_mode="single")
    def even(record: dict) -> Any:
        if record["id"] == 7:
            raise ValueError("seven")
        return [] if record["id"] % 2 else record

    got: list[Any] = []

    @dg.asset(ins={"even": dg.AssetIn(key=["docs", "even"])})
    def used(even: list[dict[str, Any]]) -> None:
        got.append(even)

    source = write_jsonl(tmp_path / "texts.jsonl", list(numbered(100)))
    shown, manifests = [], []
    for large in (1 << 30, 100):
        keep_at_most(monkeypatch, outputs=large, result=large)
        store = machines()
        store.objects.clear()
        resource = DataOpsResource(root=ROOT)
        ppl = pipeline_of(upper=upper(), even=even())
        declared = {"even": [checks.no_nulls("text"), checks.missing_aux()]}
        definitions = build_definitions(
            ppl, source=source, resource=resource, layout=layout, checks=declared
        )
        result = execute(definitions, instance)
        passed = [one.passed for one in result.get_asset_check_evaluations()]
        manifest = result_by_range(resource.folder(["docs", "even"]))
        facts = metadata_of(result, "even")
        shown.append((sorted(facts), facts["dagster/row_count"], passed, manifest.fingerprint))
        folder = resource.folder(["docs", "even"])
        assert folder.result.exists() == (large > 100)
        found = Manifest.load(folder.manifest)
        assert found is not None
        manifests.append((found.operator, found.failed, found.rows_out, len(found.inputs)))
        every = [used, *(definitions.assets or ())]
        dg.materialize(
            every, selection=[used], instance=instance, resources=dict(definitions.resources or {})
        )

    assert shown[0] == shown[1]
    assert sorted(shown[0][2]) == [False, True, True, True]
    assert manifests[0] == manifests[1] == ("text.even", 1, 50, 1)
    assert got[0] == got[1]
    assert len(got[1]) == 50

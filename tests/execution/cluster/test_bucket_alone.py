"""Tests of runs whose machines share a bucket and nothing else."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from dagster_dataops import JsonlDataset, RunReport, config, load_result
from dagster_dataops.checkpoints.journal.sent_pieces import SentPlace
from dagster_dataops.checkpoints.places.bucket_claim import BucketClaim
from dagster_dataops.configuration import root_setting
from dagster_dataops.errors import StorageError
from tests.execution.cluster.fixtures import Apart, Meanwhile, input_of, of_another_user, works
from tests.execution.helpers import node, run
from tests.faults.cases import cases
from tests.faults.partitioned import PartitionedCase, in_partitions, stages_begun
from tests.nodes import NodeFolder, ResumePolicy, Root
from tests.object_stores import SECRETS, reading, s3_server, unreliable

_MIXED = ["keep", "fail", "twice", "drop", "keep", "keep"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    pytest.importorskip("obstore", reason="obstore is not installed")
    pytest.importorskip("moto.server", reason="moto is not installed")
    with s3_server() as address:
        yield address


@pytest.fixture
def bucket(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set the environment of the machines; return the URL of a root."""
    for name, value in {**SECRETS, "AWS_ENDPOINT_URL": server}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MACHINES", str(tmp_path / "machines"))
    return f"s3://results/{tmp_path.name}"


def head(folder: Path, url: str) -> Root:
    """Return a root of results on a machine of its own."""
    of_another_user(folder)
    with config.temporary(data_process_scratch=folder):
        return root_setting("root", url)


def result(folder: Path, url: str, name: str = "works") -> tuple[bytes, bytes]:
    """Return result and error file of a node, as another machine reads them."""
    there = NodeFolder.of(head(folder, url) / name)
    content = load_result(there).path.read_bytes()
    return content, there.errors.read_bytes()


def at_home(tmp_path: Path, dataset: JsonlDataset) -> tuple[bytes, bytes]:
    """Return result and error file of a run without a bucket."""
    folder = node(tmp_path / "home")
    run(works(), dataset, folder)
    return folder.result.read_bytes(), folder.errors.read_bytes()


def away(folder: Path, url: str, dataset: JsonlDataset, **context: object) -> RunReport:
    """Run over agents that share nothing but the bucket with the head."""
    cluster = Apart(agents=2, cpus_per_agent=1)
    there = NodeFolder.of(head(folder, url) / "works")
    return run(works(seconds=0.001), dataset, there, cluster=cluster, **context)


@pytest.mark.slow
def test_agents_put_their_outputs_in_the_bucket(tmp_path: Path, bucket: str) -> None:
    dataset = input_of(tmp_path, _MIXED * 50)

    away(tmp_path / "head", bucket, dataset, resume=ResumePolicy.AUTO)

    assert result(tmp_path / "reader", bucket) == at_home(tmp_path, dataset)
    assert not list((tmp_path / "machines").rglob("segment-*"))


@pytest.mark.slow
def test_a_head_that_dies_is_continued_on_another_machine(tmp_path: Path, bucket: str) -> None:
    dataset = input_of(tmp_path, _MIXED * 100)

    def killed() -> None:
        raise KeyboardInterrupt  # in a process of its own it would be SIGKILL; see the campaign

    progress = Meanwhile(200, killed)
    with pytest.raises(KeyboardInterrupt):
        away(tmp_path / "head", bucket, dataset, progress=progress, flush_seconds=0)
    report = away(tmp_path / "other", bucket, dataset, resume=ResumePolicy.AUTO, whole_result_mb=0)

    assert 0 < report.manifest.resumed < len(_MIXED) * 100
    assert result(tmp_path / "reader", bucket) == at_home(tmp_path, dataset)


class _Parted(PartitionedCase):
    """Runs over agents, with inputs and results in a bucket."""

    def __init__(self, tmp_path: Path, name: str, url: str) -> None:
        super().__init__(tmp_path, name)
        self._url = url
        self.expected = self.result("alone")
        source = head(tmp_path / "source", f"{url}-input")
        for number, dataset in enumerate(self.inputs):
            key = f"{source.path.relative_to(source.bucket.folder)}/{number}.jsonl"
            reading(source.bucket).put(key, dataset.path.read_bytes())
            self.inputs[number] = JsonlDataset.of_file(f"{url}-input/{number}.jsonl")

    def place(self, where: str) -> NodeFolder:
        if where == "alone":
            return super().place(where)
        return NodeFolder.of(head(self.folder / where, self._url) / "works")

    def away(self, where: str) -> bytes:
        """Run on a machine; return the result as another one reads it."""
        self.result(where, "process", cluster=Apart(agents=2, cpus_per_agent=1))
        return load_result(self.place("reader")).path.read_bytes()

    def objects(self) -> dict[str, bytes]:
        """Return the files of parts in the bucket."""
        place = self.place("reader")
        store = reading(place.bucket)
        names = store.names(place.bucket.key_of(place.path))
        return {name: store.read(name)[0] for name in names if "-parts-" in name}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exact", "sort"])
def test_agents_work_in_partitions_that_are_in_the_bucket(
    tmp_path: Path, bucket: str, name: str
) -> None:
    with in_partitions() as patch:
        begun = stages_begun(patch)
        case = _Parted(tmp_path, name, bucket)
        assert case.away("head") == case.expected
    assert begun[:2] == ["split", "work" if name == "sort" else "decide"]
    assert not list(tmp_path.rglob("range-*"))
    assert not case.objects()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", cases(["near", "group"], campaign=["parts", "near", "top", "group", "merge"])
)
def test_agents_do_each_kind_of_step_in_partitions(tmp_path: Path, bucket: str, name: str) -> None:
    with in_partitions():
        case = _Parted(tmp_path, name, bucket)
        assert case.away("head") == case.expected
    assert not list(tmp_path.rglob("range-*"))
    assert not case.objects()


@pytest.mark.slow
@pytest.mark.parametrize("name", cases(["merge"], campaign=["exact", "merge"]))
def test_another_machine_goes_on_with_the_partitions_of_a_head_that_died(
    tmp_path: Path, server: str, bucket: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def note(method: str, path: str) -> str:
        if method == "PUT" and "-parts-" in path:
            made.append(path.rpartition("-parts-")[2])
        return ""

    with in_partitions(), unreliable(server, note) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        case = _Parted(tmp_path, name, bucket)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(case, "result", partial(case.result, cluster=Apart(agents=2)))
            case.kill_after("split", "process")
        before, parts = made.copy(), case.objects()
        made.clear()
        assert {path.split("-")[1] for path in before} == {"range"}
        assert case.away("other") == case.expected
    assert made
    assert "range" not in {path.split("-")[1] for path in made}
    assert len(parts) == len(set(before))
    assert not case.objects()


@pytest.mark.slow
def test_an_input_that_only_the_head_has_is_sent_once(tmp_path: Path, bucket: str) -> None:
    root = head(tmp_path / "head", bucket)
    dataset = input_of(root.path, _MIXED * 20)  # in the working copy

    away(tmp_path / "head", bucket, dataset)

    assert result(tmp_path / "reader", bucket) == at_home(tmp_path, dataset)


@pytest.mark.slow
def test_the_result_of_another_node_is_read_in_the_bucket(tmp_path: Path, bucket: str) -> None:
    dataset = input_of(tmp_path, ["keep"] * 50)
    first = away(tmp_path / "head", bucket, dataset)
    assert first.dataset.path.exists()  # on the machine of the head alone
    there = NodeFolder.of(head(tmp_path / "head", bucket) / "second")
    run(works(), first.dataset, there, cluster=Apart(agents=1, cpus_per_agent=1))

    home = node(tmp_path / "home")
    run(works(), dataset, home)
    assert load_result(there).path.read_bytes() == home.result.read_bytes()


@pytest.mark.slow
def test_an_agent_that_does_not_reach_the_bucket_says_so(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = input_of(tmp_path, ["keep"] * 5)
    hidden = f"{bucket.removeprefix('s3://results/')}-another"

    def sent_place(claim: BucketClaim) -> SentPlace:
        return SentPlace(claim._place.bucket, hidden, "00000001-x", f"{hidden}/claim")

    monkeypatch.setattr(BucketClaim, "sent_place", sent_place)
    with pytest.raises(StorageError, match=r"machine .* sees no such object, which the run has"):
        away(tmp_path / "head", bucket, dataset)

"""Tests that what earlier versions have left on the disk is read, resumed and retried.

A case that fails here means that users lose work with an upgrade: mend the reader, not the case.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

from dagster_dataops import DataLoader2, config, data, load_artefact, load_replies, load_result
from dagster_dataops.configuration import folder_at
from dagster_dataops.datasets.exporters.delivery import Exported
from dagster_dataops.errors import NewerVersionError, StreamStateError
from dagster_dataops.models.batches.batch_delivery import BatchState
from tests.each import each
from tests.frozen.conftest import HERE, VERSIONS
from tests.models.running_server import RunningServer, running_server
from tests.nodes import Manifest, NodeFolder, published
from tests.object_stores import FakeStore, machine

Thaw = Callable[..., Path]
_KILLED_AT: Final = 20  # records that were finished at least
RECORDS: Final = (
    *("single", "thread", "async", "process", "counts", "outputs", "parts", "reuse", "batch"),
    *("mapped", "chain"),
)
FINISHED: Final = (*RECORDS, "dataset", "selection", "stream", "library", "export")
WITH_FAILURES: Final = ("single", "thread", "async", "process", "outputs", "parts")
UNFINISHED: Final = (
    *("killed_single", "killed_thread", "killed_async", "killed_process", "killed_counts"),
    *("killed_outputs", "killed_reuse", "killed_batch", "killed_mapped", "killed_chain"),
)
# Their code or options are others in this version, so they are processed again.
CHANGED: Final = {("0.2.0", "library")}


def cases() -> Any:
    import frozen_cases

    return frozen_cases


def finished(case: str) -> Any:
    """Return a finished case as this version makes it: one file in place of parts."""
    if case == "parts":
        return cases().single_node("parts", cases().frozen.double(_concurrency_mode="single"))
    return cases().FINISHED[case]("")


def node_of(root: Path, case: str) -> NodeFolder:
    return NodeFolder.of(folder_at(root / case / "node"))


def lines_in(folder: NodeFolder) -> dict[str, bytes]:
    """Return the results of a node and its error rows without tracebacks, by relative path."""
    found = {
        str(path.relative_to(folder.path)): b"".join(
            part.read_bytes() for part in (sorted(path.iterdir()) if path.is_dir() else [path])
        )
        for path in sorted(folder.path.rglob("*_results.jsonl"))
    }
    if folder.errors.exists():
        rows = [json.loads(line) for line in folder.errors.read_bytes().splitlines()]
        found["errors"] = json.dumps([(row["index"], row["input"]) for row in rows]).encode()
    return found


def anew(tmp_path: Path, case: str, made: Any) -> dict[str, bytes]:
    """Return what a run of this version alone writes."""
    root = config.data_process_path
    config.data_process_path = tmp_path / "anew"
    made(str(tmp_path / "input.jsonl"))
    config.data_process_path = root
    return lines_in(node_of(tmp_path / "anew", case))


def manifest_of(folder: NodeFolder) -> Manifest:
    found = Manifest.load(folder.manifest)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server("--batches", "in_progress") as found:
        yield found


# ------------------------------------------------------------ results


@pytest.mark.slow
@each("case", FINISHED)
def test_a_result_is_read_as_it_was_written(thaw: Thaw, tmp_path: Path, case: str) -> None:
    folder = node_of(thaw(case), case)
    manifest = manifest_of(folder)
    rows = sum(
        len(load_result(place.result).read()) for place, _ in manifest.parts(folder).values()
    )
    assert rows == manifest.rows_out > 0
    for place, own in manifest.parts(folder).values():
        dataset = load_result(place.result)
        assert (dataset.rows, dataset.fingerprint) == (own.rows_out, own.fingerprint)
    assert lines_in(folder) == anew(tmp_path, case, finished(case))


@each("case", FINISHED)
def test_a_finished_result_is_used_again(
    thaw: Thaw, tmp_path: Path, version: str, case: str
) -> None:
    folder = node_of(thaw(case), case)
    before = manifest_of(folder)
    finished(case)(str(tmp_path / "input.jsonl"))
    assert (manifest_of(folder).run == before.run) == ((version, case) not in CHANGED)


@each("case", WITH_FAILURES)
def test_failed_records_are_retried_alone(thaw: Thaw, tmp_path: Path, case: str) -> None:
    folder = node_of(thaw(case), case)
    before = manifest_of(folder)
    assert before.failed
    config.data_process_resume = "failed_records"
    finished(case)(str(tmp_path / "input.jsonl"))
    after = manifest_of(folder)
    assert after.resumed == before.rows_in - before.failed
    assert after.attempts == [before.run, after.run]
    assert after.run != before.run
    assert (after.fingerprint, after.failed) == (before.fingerprint, before.failed)
    assert lines_in(folder) == anew(tmp_path, case, finished(case))


def test_unchanged_records_of_another_input_keep_their_outcomes(thaw: Thaw, tmp_path: Path) -> None:
    folder = node_of(thaw("reuse"), "reuse")
    grown = [*cases().RECORDS[:30], {"n": 99, "text": "new"}]
    path = tmp_path / "grown.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in grown))
    finished("reuse")(str(path))
    after = manifest_of(folder)
    assert (after.rows_in, after.resumed) == (31, 30)


def test_an_export_is_used_again_by_its_receipt(thaw: Thaw, tmp_path: Path) -> None:
    folder = node_of(thaw("export"), "export")
    receipt = Exported.load(folder.receipt)
    assert receipt is not None
    assert (receipt.format, receipt.rows) == ("csv", len(cases().RECORDS))


def test_an_artefact_is_read(thaw: Thaw) -> None:
    made = load_artefact(thaw("artefact") / "artefact" / "node")
    words = {word for one in cases().RECORDS for word in one["text"].split()}
    assert (made.path / "words.txt").read_text().split() == sorted(words)


# ------------------------------------------------------------ unfinished runs


@pytest.mark.slow
@each("case", UNFINISHED)
def test_an_unfinished_run_goes_on(thaw: Thaw, tmp_path: Path, case: str) -> None:
    folder = node_of(thaw(case), case)
    assert not folder.manifest.exists()
    made = cases().UNFINISHED[case]("", -1)
    made(str(tmp_path / "input.jsonl"))
    after = manifest_of(folder)
    assert _KILLED_AT <= after.resumed < after.rows_in
    assert len(after.attempts) == 2
    assert not after.kept_from
    assert not folder.checkpoints.exists()
    assert not folder.other_versions.exists()
    assert lines_in(folder) == anew(tmp_path, case, made)


@pytest.mark.slow
@each("case", ["killed_single", "killed_thread", "killed_process", "killed_outputs"])
def test_failed_records_of_an_unfinished_run_are_retried(
    thaw: Thaw, tmp_path: Path, case: str
) -> None:
    folder = node_of(thaw(case), case)
    made = cases().UNFINISHED[case]("", -1)
    config.data_process_resume = "failed_records"
    made(str(tmp_path / "input.jsonl"))
    assert 0 < manifest_of(folder).resumed < manifest_of(folder).rows_in - 1
    assert lines_in(folder) == anew(tmp_path, case, made)


def test_an_unfinished_stream_goes_on(thaw: Thaw, tmp_path: Path) -> None:
    folder = node_of(thaw("killed_stream"), "killed_stream")
    made = cases().UNFINISHED["killed_stream"]("", -1)
    made(str(tmp_path / "input.jsonl"))
    assert manifest_of(folder).resumed > 0
    assert lines_in(folder) == anew(tmp_path, "killed_stream", made)


def test_positions_of_a_newer_version_are_refused_and_stay(
    thaw: Thaw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = node_of(thaw("killed_stream"), "killed_stream").path
    before = {path: path.read_bytes() for path in folder.rglob("[!.]*") if path.is_file()}
    monkeypatch.setattr("dagster_dataops.checkpoints.resume.unfinished_stream.VERSION", 1)
    with pytest.raises(NewerVersionError, match="the positions of the stream in .* format 2"):
        cases().UNFINISHED["killed_stream"]("", -1)(str(tmp_path / "input.jsonl"))
    assert {path: path.read_bytes() for path in before} == before


def test_a_publication_that_was_cut_short_is_finished(thaw: Thaw, tmp_path: Path) -> None:
    folder = node_of(thaw("killed_publishing"), "killed_publishing")
    made = cases().UNFINISHED["killed_publishing"]("", -1)
    made(str(tmp_path / "input.jsonl"))
    after = manifest_of(folder)
    assert (after.resumed, len(after.attempts)) == (0, 1)  # it had only to be renamed
    assert lines_in(folder) == anew(tmp_path, "killed_publishing", made)


@each(
    "options",
    [
        {"names": {"n": "number", "text": "other"}},
        {"names": {"n": "number"}},
        {"names": {"n": "number", "text": "words", "x": "y"}},
        {"names": {"n": "number", "text": "words"}, "order": ("text", "n")},
        {"names": {"n": "number", "text": "words"}, "order": ("n",)},
    ],
)
def test_an_unfinished_run_with_other_options_does_not_go_on(
    thaw: Thaw, tmp_path: Path, options: dict[str, Any]
) -> None:
    folder = node_of(thaw("killed_mapped"), "killed_mapped")
    made = cases().single_node(
        "killed_mapped", cases().frozen.Mapped(**options, _concurrency_mode="single")
    )
    made(str(tmp_path / "input.jsonl"))
    assert manifest_of(folder).resumed == 0
    assert lines_in(folder) == anew(tmp_path, "killed_mapped", made)


@each("key", ["first key", "second key"])
def test_a_value_that_version_0_2_has_not_noted_is_not_taken_for_the_same(
    thaw: Thaw, tmp_path: Path, version: str, key: str
) -> None:
    """The records before the kill may have been made with another one."""
    folder = node_of(thaw("killed_sealed"), "killed_sealed")
    sealed = cases().frozen.Sealed(encryption_key=key, _concurrency_mode="single")
    made = cases().single_node("killed_sealed", sealed)
    made(str(tmp_path / "input.jsonl"))
    resumes = version != "0.2.0" and key == "first key"
    assert (manifest_of(folder).resumed > 0) == resumes
    assert lines_in(folder) == anew(tmp_path, "killed_sealed", made)
    shutil.rmtree(folder.path)


@pytest.mark.parametrize("version", ["0.2.0"])
@pytest.mark.parametrize("resume", [True, "across_code"])
def test_records_of_the_library_are_kept_across_its_code_on_request(
    thaw: Thaw, tmp_path: Path, version: str, resume: Any
) -> None:
    """The option ``engine`` came later."""
    folder = node_of(thaw("killed_library"), "killed_library")
    made = cases().UNFINISHED["killed_library"]("", -1)
    with config.temporary(data_process_resume=resume):
        made(str(tmp_path / "input.jsonl"))
    after = manifest_of(folder)
    assert (after.resumed >= _KILLED_AT) == (resume == "across_code")
    assert bool(after.kept_from) == (resume == "across_code")
    assert lines_in(folder) == anew(tmp_path, "killed_library", made)


# ------------------------------------------------------------ object stores


def stored(version: str, tmp_path: Path) -> Path:
    """Return the root of results on a store."""
    store, folder = FakeStore(), HERE / version / "store"
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            store.put(str(path.relative_to(folder)), path.read_bytes())
    config.data_process_scratch = tmp_path / "copies"
    return machine(tmp_path / "copies", store).path


def test_results_on_a_store_are_read_and_retried(thaw: Thaw, tmp_path: Path, version: str) -> None:
    thaw()
    config.data_process_path = root = stored(version, tmp_path)
    given = str(tmp_path / "input.jsonl")
    for case in cases().STORED:
        folder = node_of(root, case)
        published(folder)  # makes the working copy
        before = manifest_of(folder)
        finished(case)(given)
        assert manifest_of(folder).run == before.run
    config.data_process_resume = "failed_records"
    folder = node_of(root, "single")
    before = manifest_of(folder)
    finished("single")(given)
    assert manifest_of(folder).resumed == before.rows_in - before.failed


def test_unfinished_runs_on_a_store_go_on(thaw: Thaw, tmp_path: Path, version: str) -> None:
    thaw()
    config.data_process_path = root = stored(version, tmp_path)
    for case in cases().STORED_UNFINISHED:
        made = cases().UNFINISHED[case]("", -1)
        made(str(tmp_path / "input.jsonl"))
        assert manifest_of(node_of(root, case)).resumed > 0
        assert lines_in(node_of(root, case)) == anew(tmp_path, case, made)


# ------------------------------------------------------------ models


def test_stored_replies_are_read(thaw: Thaw) -> None:
    replies = list(load_replies(thaw("asks") / "asks" / "node"))
    assert len(replies) == len(cases().RECORDS)
    assert all(reply.text for reply in replies)


def test_an_unfinished_run_that_asks_pays_for_the_rest_alone(
    thaw: Thaw, tmp_path: Path, server: RunningServer
) -> None:
    folder = node_of(thaw("killed_asks"), "killed_asks")
    stored = len(list(load_replies(folder.path)))
    server.reset()
    made = cases().asks("killed_asks", server.address, replies_without_address="use")
    made(str(tmp_path / "input.jsonl"))
    after = manifest_of(folder)
    assert server.stats()["answered"] == len(cases().RECORDS) - stored
    assert after.counts["calls"] == len(cases().RECORDS)
    assert after.rows_out == len(cases().RECORDS)


def test_the_state_of_batches_is_read(thaw: Thaw) -> None:
    state = BatchState(thaw("killed_batches") / "killed_batches" / "node")
    assert len(state.waiting) == 1
    assert [part["requests"] for part in state.open_parts] == [len(cases().RECORDS)]
    state.save()


# ------------------------------------------------------------ indices


_NEAR: Final = pytest.mark.skipif(not find_spec("rensa"), reason="needs the extra 'dedup'")


@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("index", {}),
        ("urls", {"by": "url", "input_key": "text"}),
        pytest.param("near", {"by": "near"}, marks=_NEAR),
    ],
)
def test_an_index_finds_what_it_was_built_of(
    thaw: Thaw, case: str, options: dict[str, Any]
) -> None:
    built = load_artefact(thaw(case) / case / "node").path
    config.data_process_resume = False
    given = [*cases().RECORDS[:5], {"n": 100, "text": "nothing like the others at all"}]
    assert data.dedup.Against(built, **options)(given) == given[5:]


def test_a_table_finds_its_rows(thaw: Thaw) -> None:
    table = load_artefact(thaw("table") / "table" / "node").path
    config.data_process_resume = False
    found = data.join.Lookup(table, on="n")([{"n": 3}, {"n": 300}])
    assert found == [{"n": 3, "text": "word3 x3"}, {"n": 300}]


# ------------------------------------------------------------ streams and loaders


@pytest.mark.parametrize("version", VERSIONS)
def test_the_state_of_a_stream_is_loaded(thaw: Thaw, version: str) -> None:
    thaw()
    states = json.loads((HERE / version / "streams.json").read_bytes())
    assert states.keys() == cases().STREAMS.keys()
    for name, make in cases().STREAMS.items():
        stream = make().and_return(seed=5)
        stream.load_state_dict(states[name])
        rest = list(make().and_return(seed=5))[4:]
        assert (name, list(stream)) == (name, rest)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_state_of_a_stream_with_another_constant_is_refused(
    thaw: Thaw, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    thaw()
    state = json.loads((HERE / version / "streams.json").read_bytes())["words"]
    monkeypatch.setattr(cases(), "WORDS", {1: "one", 2: "deux"})
    with pytest.raises(StreamStateError, match=r"stage 2 \(map\) differs in its code"):
        cases().STREAMS["words"]().and_return(seed=5).load_state_dict(state)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_state_of_a_loader_is_loaded(thaw: Thaw, version: str) -> None:
    thaw()
    make = cases().STREAMS["shuffle"]
    state = json.loads((HERE / version / "loader.json").read_bytes())
    expected = DataLoader2(make())
    expected.seed(3)
    with_state = DataLoader2.from_state(state, make())
    assert list(with_state) == list(expected)[4:]
    expected.shutdown()
    with_state.shutdown()


# ------------------------------------------------------------ identities


def test_options_of_the_library_that_came_later_do_not_count_at_their_default() -> None:
    """Name an option that is new in ``added_later`` of its class."""
    known = json.loads((HERE / "0.2.0" / "library.json").read_bytes())
    missing = {
        f"{name}({option.name}=)"
        for name, options in known.items()
        if (found := _operator(name)) is not None
        for option in found.__dataops_spec__.options
        if not {option.name, *option.former}.intersection(options)
        and option.name not in found.added_later
    }
    assert not missing


def _operator(name: str) -> Any:
    group, _, operator = name.partition(".")
    return getattr(getattr(data, group), operator, None)

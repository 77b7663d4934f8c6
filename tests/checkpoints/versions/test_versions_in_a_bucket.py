"""Versions of results in a bucket: kept without a copy, compared, restored, removed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import (
    JsonlDataset,
    To,
    config,
    data_register,
    diff,
    load_artefact,
    load_result,
    restore,
    trace,
    versions,
)
from dagster_dataops.errors import ConfigurationError, NewerVersionError, VersionMissingError
from tests.command_line import main
from tests.nodes import NodeFolder, OperatorExecutor, RunContext
from tests.object_stores import FakeStore, leave_short_parts, machine
from tests.pipelines.history.nodes_with_history import numbered, write_records


@data_register("data.in_bucket", _concurrency_mode="single")
def sign(record: dict[str, Any], text: str = ".") -> Any:
    return [] if record["n"] == 3 else {**record, "text": text}


_artefacts: Any = data_register.new_group("bucket_history")


class Words(_artefacts):
    """Builds a file of an option."""

    def __init__(self, end: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.end = end

    def build(self, records: Any, folder: Path) -> None:
        (folder / "words").write_text(f"{len(list(records))}{self.end}")


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def folder(tmp_path: Path, store: FakeStore) -> Iterator[NodeFolder]:
    with config.temporary(data_process_scratch=tmp_path / "scratch"):
        root = machine(tmp_path / "scratch", store)
        yield NodeFolder.of(root / "docs" / "node")


@pytest.fixture
def source(tmp_path: Path) -> JsonlDataset:
    return JsonlDataset.of_file(write_records(tmp_path / "in.jsonl", numbered(10)))


def _run(operator: Any, source: JsonlDataset, folder: NodeFolder) -> None:
    OperatorExecutor(RunContext(run="run")).run(operator, [source], folder)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch, store: FakeStore) -> FakeStore:
    """Return the store, in which also short parts of results stay."""
    leave_short_parts(monkeypatch)
    return store


def _run_in_parts(operator: Any, source: JsonlDataset, folder: NodeFolder) -> None:
    context = RunContext(run="run", whole_result_mb=0, flush_seconds=0)
    OperatorExecutor(context).run(operator, [source], folder)


def _kept(store: FakeStore) -> tuple[int, int]:
    """Return the numbers of lists of parts, and of objects with parts."""
    lists = sum(key.endswith(".jsonl.parts") for key in store.objects)
    return lists, len({key for key in store.objects if "/.journal/data/" in key})


@contextmanager
def _other_machine(tmp_path: Path, store: Any) -> Iterator[NodeFolder]:
    """Yield the folder of the node on another machine; the scratch of the first one is gone."""
    (tmp_path / "scratch").rename(tmp_path / "lost")  # old files are being deleted in it
    with config.temporary(data_process_scratch=tmp_path / "other"):
        yield NodeFolder.of(machine(tmp_path / "other", store) / "docs" / "node")


def _texts(folder: NodeFolder | str) -> set[str]:
    return {str(row["text"]) for row in load_result(folder).read()}


def test_a_version_is_a_head_whose_files_stay(folder, source, store):
    for text in "abc":
        before = {key for key in store.objects if key.endswith("node_results.jsonl")}
        _run(sign(text=text, _keep_versions=1), source, folder)
    heads = [key for key in store.objects if "/.history/" in key]
    results = {key for key in store.objects if key.endswith("node_results.jsonl")}

    assert heads == ["root/docs/node/.history/00000002.json"]
    assert len(results) == 2
    assert len(before & results) == 1  # the very object of the result before
    assert [one.name for one in versions(folder.path)] == ["2", "current"]


def test_versions_are_compared_and_restored_from_another_machine(folder, source, store, tmp_path):
    for text in "ab":
        _run(sign(text=text, _keep_versions=2), source, folder)
    with _other_machine(tmp_path, store) as other:
        found = diff(other.path)
        assert found.changed == 9
        assert [str(one) for one in found.causes] == ['option text: "a" became "b"']

        restore(other.path, 1)

        assert _texts(other) == {"a"}
        assert [one.name for one in versions(other.path)] == ["1", "2", "current"]
    assert _texts(folder) == {"a"}  # the first machine


def test_removed_versions_leave_no_object(folder, source, store):
    for text in "abc":
        _run(sign(text=text, _keep_versions=5), source, folder)
    restore(folder.path, 1)
    assert main(["versions", str(folder.path), "--keep", "0"]) == 0

    results = [key for key in store.objects if key.endswith("node_results.jsonl")]

    assert len(results) == 1
    assert not [key for key in store.objects if "/.history/" in key]
    assert _texts(folder) == {"a"}


def _newer(store: FakeStore, key: str) -> None:
    content = store.objects[key][0]
    assert b"6-little" in content
    store.put(key, content.replace(b"6-little", b"7-little"))


@pytest.mark.parametrize("newer", [".history/00000001.json", "node_results.jsonl.json"])
def test_nothing_is_removed_where_a_newer_version_has_written(
    folder, source, parts, newer, capsys, monkeypatch
):
    for text in "abc":
        _run_in_parts(sign(text=text, _keep_versions=3), source, folder)
    _newer(parts, f"root/docs/node/{newer}")
    before = {key: stored[0] for key, stored in parts.objects.items() if "/.journal/" not in key}

    for keep in "012":
        assert main(["versions", str(folder.path), "--keep", keep]) == 1
        assert f"/{newer} has format 7-little" in capsys.readouterr().err
    with pytest.raises(NewerVersionError, match=f"/{newer} has format 7-little"):
        restore(folder.path, 2)
    with pytest.raises(NewerVersionError, match=f"/{newer} has format 7-little"):
        _run(sign(text="d", _keep_versions=1), source, folder)
    if "history" not in newer:
        monkeypatch.setenv("DATAOPS_DATA_PROCESS_SCRATCH", str(config.data_process_scratch))
        assert main(["whole", str(folder.path)]) == 1
        assert f"/{newer} has format 7-little" in capsys.readouterr().err
    after = {key: stored[0] for key, stored in parts.objects.items() if "/.journal/" not in key}
    assert after == before


def test_an_artefact_is_restored(folder, source, store):
    for end in "!?":
        _run(Words(end=end, _keep_versions=1), source, folder)
    restore(folder.path, 1)
    assert (load_artefact(folder).path / "words").read_text() == "10!"
    place = folder.root.at(folder.path)
    for given in (place, str(place), folder.path, load_artefact(folder).path):
        assert (load_artefact(given).path / "words").read_text() == "10!"
    with pytest.raises(ConfigurationError, match="docs://there"):
        load_artefact("docs://there")


@pytest.mark.parametrize("root", [False, True])
def test_a_restore_names_the_nodes_that_read_the_result_also_elsewhere(
    folder, source, store, tmp_path, root
):
    for text in "ab":
        _run(sign(text=text, _keep_versions=1), source, folder)
    reader = NodeFolder.of(folder.root.at(folder.path.parent / "reader"))
    _run(sign(text="c"), load_result(folder), reader)
    with _other_machine(tmp_path, store) as other:
        given = {"root": "memory://bucket/root"} if root else {}
        readers = restore(other.path, 1, **given).readers
        assert [(one.path.name, one.current) for one in readers] == [("reader", False)]
    with pytest.raises(ConfigurationError, match="docs://there"):
        restore(folder.path, 1, root="docs://there")


def test_versions_of_a_node_that_reads_another_one_are_compared_elsewhere(
    folder, source, store, tmp_path
):
    reader = NodeFolder.of(folder.root.at(folder.path.parent / "reader"))
    for text in "ab":
        _run(sign(text=text, _keep_versions=1), source, folder)
        _run(sign(text=f"{text}{text}", _keep_versions=2), load_result(folder), reader)
    with _other_machine(tmp_path, store):
        url = "memory://bucket/root/docs/reader"
        found = diff(url)
        assert (found.changed, [one.name for one in found.causes]) == (9, ["text", ""])
        restore(url, 1)
        assert _texts(url) == {"aa"}
        restore(url, 2)
        assert "line 1 -> line 1" in str(trace(url, 1))
        assert str(source.path) in str(trace(url, 1))
        assert [one.name for one in versions(url)][-1] == "current"


@data_register("data.in_bucket", _concurrency_mode="single", outputs=["odd", "even"])
def split(record: dict[str, Any], text: str = ".") -> Any:
    if record["n"] == 5:
        raise ValueError(record["n"])
    return To("odd" if record["n"] % 2 else "even", {**record, "text": text})


def _run_compressed(operator: Any, source: JsonlDataset, folder: NodeFolder) -> None:
    context = RunContext(run="run", result_format="jsonl.zst")
    OperatorExecutor(context).run(operator, [source], folder)


@pytest.mark.parametrize(
    ("run", "operator"),
    [
        (_run, lambda text: sign(text=text, _keep_versions=2)),
        (_run_in_parts, lambda text: sign(text=text, _keep_versions=2)),
        (_run_compressed, lambda text: sign(text=text, _keep_versions=2)),
        (_run, lambda text: split(text=text, _keep_versions=2)),
        (_run, lambda text: Words(end=text, _keep_versions=2)),
    ],
)
def test_a_restored_version_is_not_sent_again(folder, source, parts, tmp_path, run, operator):
    run(operator("a"), source, folder)
    first = {key for key in parts.objects if "/.versions/" in key}
    contents = {key: parts.objects[key][0] for key in first}
    run(operator("b"), source, folder)
    with _other_machine(tmp_path, parts) as other:
        before = set(parts.objects)
        restore(other.path, 1)

        new = {key for key in parts.objects.keys() - before if "/.versions/" in key}
        assert all(key.endswith("_results.jsonl.json") for key in new)  # manifests of outputs
        assert {key: parts.objects[key][0] for key in first} == contents
        restore(other.path, 2)
        restore(other.path, 1)
        assert main(["versions", str(other.path), "--keep", "0"]) == 0
        used = {key for key in parts.objects if "/.versions/" in key} - new
        assert {key for key in used if not key.endswith("_results.jsonl.json")} <= first


def test_a_version_whose_file_is_gone_is_refused(folder, source, store):
    for text in "ab":
        _run(sign(text=text, _keep_versions=1), source, folder)
    _run(sign(text="b"), source, folder)
    key = min(key for key in store.objects if key.endswith("node_results.jsonl"))
    store.objects.pop(key)
    with pytest.raises(VersionMissingError):
        restore(folder.path, 1)
    assert _texts(folder) == {"b"}


def test_the_parts_of_a_version_stay_until_it_is_removed(folder, source, parts):
    for number, text in enumerate("abcd"):
        _run_in_parts(sign(text=text, _keep_versions=2), source, folder)
        lists, objects = _kept(parts)
        assert lists == min(number + 1, 3)
        assert objects >= lists
    assert [one.name for one in versions(folder.path)] == ["2", "3", "current"]
    found = diff(folder.path, 2, 3)
    assert (found.changed, [one.name for one in found.causes]) == (9, ["text"])

    assert main(["versions", str(folder.path), "--keep", "0"]) == 0

    assert _kept(parts)[0] == 1
    _run(sign(text="e"), source, folder)
    assert _kept(parts) == (0, 0)
    assert _texts(folder) == {"e"}


def test_one_object_replaces_parts_and_keeps_those_of_versions(folder, source, parts):
    for text in "ab":
        _run_in_parts(sign(text=text, _keep_versions=1), source, folder)
    assert main(["whole", str(folder.path)]) == 0
    assert _kept(parts)[0] == 1
    _run(sign(text="c", _keep_versions=2), source, folder)

    restore(folder.path, 1)

    assert _texts(folder) == {"a"}
    assert [one.name for one in versions(folder.path)] == ["1", "2", "3", "current"]
    assert {str(row["text"]) for row in versions(folder.path)[1].results[""].read()} == {"b"}


def test_a_version_in_parts_is_restored_on_another_machine(folder, source, parts, tmp_path):
    for text in "ab":
        _run_in_parts(sign(text=text, _keep_versions=1), source, folder)
    with _other_machine(tmp_path, parts) as other:
        restore(other.path, 1)
        (other.path / ".history" / "1" / "node_results.jsonl").unlink()  # by `clean`
        assert {str(row["text"]) for row in versions(other.path)[0].results[""].read()} == {"a"}
        _run_in_parts(sign(text="c", _keep_versions=1), source, other)
        assert [one.name for one in versions(other.path)] == ["3", "current"]
    assert _texts(folder) == {"c"}


@pytest.mark.parametrize("forms", [("jsonl.zst", "jsonl"), ("jsonl", "jsonl.zst")])
def test_versions_of_other_forms_are_restored_and_traced(folder, source, parts, forms):
    """A plain result is in parts; a compressed one is one object."""
    for text, form in zip("ab", forms, strict=True):
        context = RunContext(run="run", whole_result_mb=0, flush_seconds=0, result_format=form)
        OperatorExecutor(context).run(sign(text=text, _keep_versions=1), [source], folder)
    assert diff(folder.path).changed == 9
    (old, _) = versions(folder.path)
    found = trace(old.folder.path, line=4)
    assert [one.outcome for one in found.steps] == ["kept"]
    assert found.steps[0].given[0].line == 5

    restore(folder.path, 1)

    assert _texts(folder) == {"a"}
    assert load_result(folder).path.name == f"node_results.{forms[0]}"
    assert not list(folder.path.glob(f"node_results.{forms[1]}"))
    restore(folder.path, 2)
    assert _texts(folder) == {"b"}
    assert main(["versions", str(folder.path), "--keep", "0"]) == 0
    assert _texts(folder) == {"b"}
    assert len([key for key in parts.objects if "/node_results." in key]) == 2  # and the head


@pytest.mark.parametrize("run", [_run, _run_in_parts])
def test_a_run_after_the_head_was_deleted_leaves_the_files_of_versions(folder, source, parts, run):
    for text in "ab":
        run(sign(text=text, _keep_versions=2), source, folder)
    parts.remove(["root/docs/node/node_results.jsonl.json"])
    run(sign(text="c", _keep_versions=2), source, folder)
    assert _texts(folder) == {"c"}

    restore(folder.path, 1)

    assert _texts(folder) == {"a"}


def test_a_list_of_versions_fetches_none_of_them(folder, source, store, tmp_path):
    for text in "ab":
        _run(sign(text=text, _keep_versions=2), source, folder)
    with _other_machine(tmp_path, store) as other:
        (old, present) = versions(other.path)

        assert [(one.name, one.manifest.rows_out) for one in (old, present)] == [
            ("1", 9),
            ("current", 9),
        ]
        assert not (other.path / ".history").exists()
        assert {str(row["text"]) for row in old.results[""].read()} == {"a"}
        assert (other.path / ".history" / "1" / "node_results.jsonl").exists()
        assert {str(row["text"]) for row in present.results[""].read()} == {"b"}

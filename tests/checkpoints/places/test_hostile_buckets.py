"""Tests that who can write to the bucket of results chooses no file of machines that read it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import config, load_result
from dagster_dataops.checkpoints.places.published_objects import PublishedObjects
from dagster_dataops.configuration import root_setting
from dagster_dataops.errors import (
    ConfigurationError,
    PathEscapeError,
    ResultMissingError,
    StorageError,
)
from tests.each import each
from tests.execution.helpers import act, node, plan, run, write_input
from tests.foundation.places.test_places import ESCAPES
from tests.nodes import Manifest, NodeFolder, Root
from tests.object_stores import FakeStore, machine
from tests.parted_results import store_in_parts

_RECORDS = plan(["keep", "fail", "drop", "expand"] * 5)
_NAME = "node"


class _Attack:
    """A bucket with a published result, and machines that read it."""

    def __init__(self, tmp_path: Path) -> None:
        self._tmp, self._machines = tmp_path, 0
        self.store = FakeStore()
        folder = self.machine()
        made = NodeFolder.of(folder)
        run(act(), write_input(tmp_path / "input.jsonl", _RECORDS), made)
        store_in_parts(made, 7)
        (self.head_key,) = (key for key in self.store.objects if key.endswith(".jsonl.json"))
        self.first = self.store.objects[self.head_key][0]

    def machine(self) -> Root:
        """Return the folder of the node on a machine that has no copy of it."""
        self._machines += 1
        scratch = self._tmp / "machines" / str(self._machines)
        return machine(scratch, self.store) / "docs" / _NAME

    def files(self) -> set[Path]:
        """Return the files outside the working copies."""
        return {
            path
            for path in self._tmp.rglob("*")
            if not path.is_dir() and not path.is_relative_to(self._tmp / "machines")
        }

    def clear(self) -> None:
        """Delete the published result, and the journal."""
        for key in [key for key in self.store.objects if "/.versions/" not in key]:
            del self.store.objects[key]

    def change(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Replace the head by a changed one."""
        head = orjson.loads(self.first)
        change(head)
        self.store.put(self.head_key, orjson.dumps(head))


@pytest.fixture
def attack(tmp_path: Path) -> _Attack:
    return _Attack(tmp_path)


def _fact(key: str) -> dict[str, Any]:
    return {"key": key, "size": 5, "modified_ns": 1}


def _named(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda head: head["home"]["files"].update({name: _fact("root/docs/node/.versions/x/y")})


def _keyed(key: str) -> Callable[[dict[str, Any]], object]:
    return lambda head: head["home"]["files"].update({"more": _fact(key)})


def _output(**facts: str) -> Callable[[dict[str, Any]], object]:
    own = {"folder": "a", "name": "a", "parted": "", **facts}
    return lambda head: head.update(outputs={"a": own})


CHANGES = [
    *(_named(name) for name in [*ESCAPES[:-1], "../../../climbed", "/tmp/absolute/.bashrc"]),  # noqa: S108
    *(_keyed(key) for key in ["other/object", "/x", "../x", "root/docs/node/../x", "root/docs"]),
    *(_output(folder=name) for name in ["..", "/etc", "a/../..", "../../x"]),
    *(_output(name=name) for name in ["../x", "a/b", "..", ""]),
    *(_output(parted=name) for name in ["../x", "x", "../../" + "0" * 32]),
    lambda head: head.update(parted="../../../../" + "0" * 32),
    lambda head: head.update(artefact="../x"),
]
DAMAGE = [
    lambda head: head.update(home=[]),
    lambda head: head["home"].update(files=[]),
    lambda head: head["home"].update(commit=[]),
    lambda head: head["home"].update(commit="abc"),
    lambda head: head["home"]["files"].update(x=1),
    lambda head: head["home"]["files"].update(x={"key": 1}),
    lambda head: head["home"]["files"].update(x={**_fact("root/docs/node/x"), "size": "5"}),
    lambda head: head.update(outputs=[1]),
]


@pytest.mark.slow
@each("change", CHANGES)
def test_a_head_that_leads_out_of_its_node_is_refused(attack: _Attack, change: Any) -> None:
    attack.change(change)
    before = attack.files()
    with pytest.raises(PathEscapeError, match=r"fake://bucket/root/docs/node/node_results"):
        load_result(NodeFolder.at(attack.machine()))
    assert attack.files() == before


@each("change", DAMAGE)
def test_a_head_without_its_facts_is_named_damaged(attack: _Attack, change: Any) -> None:
    attack.change(change)
    with pytest.raises(ResultMissingError, match="its manifest is damaged"):
        load_result(NodeFolder.at(attack.machine()))


@each("head", [b"", b"{", b"null", b"[]", b"7", b"\xff", b"\0" * 100])
def test_a_head_that_is_no_object_is_refused_and_nothing_is_deleted(
    tmp_path: Path, attack: _Attack, head: bytes
) -> None:
    attack.store.put(attack.head_key, head)
    before = set(attack.store.objects)
    folder = NodeFolder.of(attack.machine())
    with pytest.raises(ResultMissingError, match="its manifest is damaged"):
        run(act(), write_input(tmp_path / "more.jsonl", _RECORDS), folder)
    with pytest.raises(ResultMissingError, match="its manifest is damaged"):
        load_result(NodeFolder.at(attack.machine()))
    assert before <= set(attack.store.objects)
    assert attack.store.objects[attack.head_key][0] == head


def test_a_run_over_a_hostile_head_deletes_nothing(tmp_path: Path, attack: _Attack) -> None:
    attack.change(_keyed("other/object"))
    attack.store.put("other/object", b"precious")
    folder = NodeFolder.of(attack.machine())
    with pytest.raises(PathEscapeError):
        run(act(), write_input(tmp_path / "more.jsonl", _RECORDS), folder)
    assert "other/object" in attack.store.objects


@each("up", ["x", "node_results.jsonl.json", "/etc/x_results.jsonl.json", "../passwd", "..", ""])
def test_a_result_is_part_of_a_node_above_it_or_refused(attack: _Attack, up: str) -> None:
    attack.store.put(attack.head_key, orjson.dumps({"part_of": up}))
    with pytest.raises(PathEscapeError):
        load_result(NodeFolder.at(attack.machine() / f"{_NAME}_results.jsonl"))


def test_a_result_is_part_of_no_node_above_the_bucket(attack: _Attack) -> None:
    up = "/".join([*[".."] * 9, "node_results.jsonl.json"])
    attack.store.put(attack.head_key, orjson.dumps({"part_of": up}))
    with pytest.raises(PathEscapeError):
        load_result(NodeFolder.at(attack.machine() / f"{_NAME}_results.jsonl"))


def _entry(pieces: object, data: object = "00000002-x", checkpoint: object = 1) -> bytes:
    head = {"kind": "work", "checkpoint": checkpoint, "data": data, "pieces": pieces}
    return orjson.dumps(head) + b"\n"


@pytest.mark.slow
@each(
    "entry",
    [
        *(_entry([[name, 0, 5]]) for name in [*ESCAPES[:-1], "journal", "segment-1.jsonl.x"]),
        *(_entry([["segment-00001.jsonl", 0, 5]], data) for data in ["../../x", "", "a/b", 5]),
        _entry([[["segment-00001.jsonl"], 0, 5]]),
        *(_entry([["segment-00001.jsonl", 0, 5, name]]) for name in ["../x", "", "a/b", 5, None]),
        _entry([["../x.jsonl", 0, 5, "00000002-x"]]),
    ],
)
def test_a_journal_writes_the_files_of_its_checkpoint_only(attack: _Attack, entry: bytes) -> None:
    """The next run of the node would put its pieces back."""
    store = attack.store
    attack.clear()
    store.put("root/docs/node/.journal/00000001", entry)
    store.put("root/docs/node/.journal/data/00000002-x", b"owned")
    before = attack.files()
    folder = NodeFolder.of(attack.machine())
    with pytest.raises(PathEscapeError, match=r"fake://bucket/root/docs/node/.journal/00000001"):
        folder.place.claim("run", 0)
    assert attack.files() == before
    store.put("root/docs/node/.journal/00000001", b"{}\n")
    folder.place.claim("run", 0).release()  # and nothing stays locked


@each(
    "pieces",
    [
        [["segment-00001.jsonl", -1, 5]],
        [["segment-00001.jsonl", 5, 1]],
        [["segment-00001.jsonl", 0, 5, "00000002-x", "xxh3:1"]],
        [["segment-00001.jsonl", 0, 5, "published"]],
        [["segment-00001.jsonl", 0, 5, "published", 1]],
        [["segment-00001.jsonl", 0, 5, "published", "xxh3:1", 2]],
        [["segment-00001.jsonl", 0.5, 5]],
        [[1]],
        5,
    ],
)
def test_a_damaged_entry_of_a_journal_is_named(attack: _Attack, pieces: object) -> None:
    store = attack.store
    attack.clear()
    store.put("root/docs/node/.journal/data/00000002-x", b"owned")
    store.put("root/docs/node/.journal/00000001", _entry(pieces))
    with pytest.raises(StorageError, match="the entry of the journal is damaged"):
        NodeFolder.of(attack.machine()).place.claim("run", 0)


@each("name", ["²", "٣", "x", "-1", "1", "00000001.draft"])
def test_objects_beside_the_entries_of_a_journal_are_ignored(attack: _Attack, name: str) -> None:
    attack.store.put(f"root/docs/node/.journal/{name}", b"{}\n")
    NodeFolder.of(attack.machine()).place.claim("run", 0).release()


def test_a_number_of_an_entry_that_no_run_has_given_is_named(attack: _Attack) -> None:
    attack.store.put("root/docs/node/.journal/" + "9" * 25, b"{}\n")
    with pytest.raises(StorageError, match=r"\.journal/9{25}: .*no run has given this number"):
        NodeFolder.of(attack.machine()).place.claim("run", 0)


def test_a_working_copy_with_a_hostile_head_is_fetched_again(attack: _Attack) -> None:
    place = attack.machine()
    folder, rows = place.path, load_result(NodeFolder.at(place)).read()
    home = PublishedObjects(place.bucket, folder, _NAME)
    path = folder / f".{_NAME}_home.json"
    content, version = orjson.loads(path.read_bytes())
    content["home"]["files"]["../../escaped"] = _fact("x")
    path.write_bytes(orjson.dumps([content, version]))
    (folder.parent.parent / "escaped").write_text("kept")
    assert load_result(NodeFolder.at(place)).read() == rows
    assert (folder.parent.parent / "escaped").read_text() == "kept"
    assert home.fetch() is not None


@each("facts", [{"artefact": "../x"}, {"parted": "/etc"}, {"part_of": "/x_results.jsonl.json"}])
def test_a_local_manifest_with_such_names_counts_as_none(tmp_path: Path, facts: Any) -> None:
    folder: NodeFolder = node(tmp_path / "root")
    run(act(), write_input(tmp_path / "input.jsonl", _RECORDS), folder)
    content = {**orjson.loads(folder.manifest.read_bytes()), **facts}
    assert Manifest.parse(orjson.dumps(content), tmp_path) is None


@each("url", ["memory://../x", "memory://./x", "s3://b/../x", "s3://b/a/./x", "s3://b/a\0b"])
def test_a_url_that_leads_out_of_the_scratch_folder_is_refused(tmp_path: Path, url: str) -> None:
    with config.temporary(data_process_scratch=tmp_path), pytest.raises(ConfigurationError):
        root_setting("root", url)

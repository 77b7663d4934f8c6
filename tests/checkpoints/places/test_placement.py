"""What holds for the place of a node, be it a folder or a bucket."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from dagster_dataops import load_result
from dagster_dataops.checkpoints.folder.manifest import published_uri, result_by_range
from dagster_dataops.checkpoints.places.bucket_claim import BucketClaim
from dagster_dataops.checkpoints.places.folder_place import FolderClaim
from dagster_dataops.checkpoints.places.node_place import NodePlace
from dagster_dataops.checkpoints.places.placement import place_of, place_of_file, refresh_below
from dagster_dataops.configuration import config, root_setting
from dagster_dataops.errors import FolderLockedError, InputError
from dagster_dataops.foundation.places import open_stores
from dagster_dataops.library.export.dataset_card import steps_to
from tests.execution.helpers import act, node, plan, run, write_input
from tests.nodes import NodeFolder, Root
from tests.object_stores import FakeStore, machine

_RECORDS = plan(["keep"] * 20)
Machines = Callable[[str], NodeFolder]


@pytest.fixture(params=["folder", "bucket"])
def machines(request: pytest.FixtureRequest, tmp_path: Path) -> Machines:
    """Return a function of a machine's name: the folder of one node there."""
    store = FakeStore()
    if request.param == "folder":
        return lambda _: node(tmp_path / "shared")
    return lambda name: node(machine(tmp_path / name, store))


def published(machines: Machines, tmp_path: Path) -> NodeFolder:
    folder = machines("one")
    run(act(), write_input(tmp_path / "in.jsonl", _RECORDS), folder)
    return folder


def test_what_one_machine_publishes_another_one_finds(machines, tmp_path):
    assert not machines("two").place.is_published()
    records = load_result(published(machines, tmp_path)).read()

    there = machines("two")
    assert there.place.is_published()
    there.place.refresh()
    assert there.result.read_bytes() == machines("one").result.read_bytes()
    assert load_result(there).read() == records


def test_files_in_place_are_published_without_a_claim(machines, tmp_path):
    folder = published(machines, tmp_path)
    folder.result.write_bytes(b'{"n":1}\n')
    content = folder.manifest.read_bytes()

    folder.place.publish({folder.result: folder.result}, content)

    there = machines("two")
    there.place.refresh()
    assert there.result.read_bytes() == b'{"n":1}\n'
    assert there.manifest.read_bytes() == content


def test_a_claim_excludes_another_one_on_the_same_machine(machines):
    claim = machines("one").place.claim("first", 0)

    with pytest.raises(FolderLockedError, match="run first"):
        machines("one").place.claim("second", 0)
    claim.release()
    machines("one").place.claim("second", 0).release()


def test_only_files_that_this_machine_lacks_are_read_where_they_are(machines, tmp_path):
    here = published(machines, tmp_path)
    assert here.place.remote() is None

    there = machines("two")
    remote, found = there.place.remote(), result_by_range(there)
    assert found.read() == load_result(here).read()
    if remote is None:
        assert found.path == there.result
        return
    assert remote.manifest == here.manifest.read_bytes()
    assert remote.files[here.result.name].size == here.result.stat().st_size
    assert not there.path.exists()
    with pytest.raises(InputError, match="has no path"):
        _ = found.path


def test_a_result_is_named_by_its_place_and_read_by_its_path(machines, tmp_path):
    here = published(machines, tmp_path)
    found = load_result(here)

    assert found.path == here.result
    assert str(found.location) == str(here.located(here.result))
    assert NodeFolder.of_result(found) == here
    assert published_uri(found.location) == here.place.uri(here.result)
    assert pickle.loads(pickle.dumps(found)).read() == found.read()
    assert [one.name for one in steps_to(found.location)] == ["in.jsonl", "node"]


def test_a_user_names_the_folder_of_a_node_by_its_path(tmp_path):
    store = FakeStore()
    made = published(lambda _: node(machine(tmp_path / "one", store)), tmp_path)
    with config.temporary(data_process_scratch=tmp_path / "two"):
        machine(tmp_path / "two", store)
        config.data_process_path = "memory://bucket/root"
        assert load_result(config.data_process_path / "node").read() == load_result(made).read()


def test_an_address_stays_when_a_result_is_replaced(machines, tmp_path):
    folder = published(machines, tmp_path)
    address = folder.place.address(folder.result)
    uri = folder.place.uri(folder.result)

    run(act(), write_input(tmp_path / "in.jsonl", _RECORDS[:3]), folder, run="again")

    assert folder.place.address(folder.result) == address
    assert (folder.place.uri(folder.result) == uri) is not folder.place.at_once


def test_the_folder_decides_which_place_a_node_has(tmp_path):
    local, remote = node(tmp_path), node(machine(tmp_path / "scratch", FakeStore()))
    claims = [folder.place.claim("run", 0) for folder in (local, remote)]

    assert [type(claim) for claim in claims] == [FolderClaim, BucketClaim]
    for claim in claims:
        claim.release()
    for folder in (local, remote):
        found: NodePlace = place_of_file(folder.located(folder.result))
        assert (type(found), found.folder, found.name) == (
            type(place_of(folder.root, folder.name)),
            folder.path,
            folder.name,
        )


def test_the_nodes_of_a_folder_are_refreshed_together(machines, tmp_path):
    here = published(machines, tmp_path)
    there = machines("two")

    refresh_below(there.root)

    assert there.result.read_bytes() == here.result.read_bytes()
    refresh_below(Root(tmp_path / "nothing"))


def test_an_address_needs_no_store(tmp_path, monkeypatch):
    monkeypatch.setattr(open_stores, "_open", lambda *_, **__: pytest.fail("it was opened"))
    with config.temporary(data_process_scratch=tmp_path):
        folder = node(root_setting("root", "s3://nowhere/root") / "docs")

    assert folder.place.address(folder.result) == "s3://nowhere/root/docs/node"

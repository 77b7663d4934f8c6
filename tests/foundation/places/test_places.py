"""Tests of foundation.places: buckets, names below a folder, ranges, private folders."""

import os
import pickle
import stat
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PureWindowsPath
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops import config
from dagster_dataops.configuration import input_object, root_setting
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import ConfigurationError, InputError, PathEscapeError, StorageError
from dagster_dataops.foundation.places import open_stores
from dagster_dataops.foundation.places.bucket import (
    BucketFile,
    CopiedFile,
    StoreBucket,
    facts_of_location,
    local_path,
    location_of,
    published_file,
)
from dagster_dataops.foundation.places.confined_names import below, confined, is_plain
from dagster_dataops.foundation.places.objects import object_store
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.parted_file import PartedFile
from dagster_dataops.foundation.places.private_folders import ForeignFolderError, private_folder
from dagster_dataops.foundation.places.range_source import read_range
from dagster_dataops.training.filestores.tars import index_cache
from tests.each import each
from tests.examples import at_most
from tests.nodes import state_at
from tests.object_stores import FakeStore, reading, writing

_OPTIONS = {"endpoint": "http://server", "secret_access_key": "hunter2"}


@pytest.fixture
def bucket(tmp_path: Path) -> StoreBucket:
    return StoreBucket("s3://docs", tmp_path, _OPTIONS)


def test_the_text_of_an_object_is_its_url_without_the_version_of_a_published_file(bucket):
    assert str(BucketFile(bucket, "a/b.jsonl")) == "s3://docs/a/b.jsonl"
    published = BucketFile(bucket, "node/.versions/00000001-ab/node_results.jsonl")
    assert str(published) == "s3://docs/node/node_results.jsonl"
    copy = CopiedFile(bucket, bucket.folder / "node" / "node_results.jsonl")
    assert published_file(published) == copy
    assert published_file(BucketFile(bucket, "a/b.jsonl")) is None
    assert published_file(bucket.folder / "x") == bucket.folder / "x"


def test_neither_text_nor_pickle_of_an_object_holds_a_secret(bucket):
    file = BucketFile(bucket, "a.jsonl")
    dataset = JsonlDataset(file, 3, fingerprint="etag:x:3")

    assert "hunter2" not in f"{file!r} {dataset!r} {dataset}"
    assert b"hunter2" not in pickle.dumps(dataset)
    again = pickle.loads(pickle.dumps(dataset)).location
    assert (again.key, again.bucket.url) == ("a.jsonl", "s3://docs")
    assert again.bucket.options == {"endpoint": "http://server"}


def test_a_process_of_the_same_run_gets_all_options(bucket):
    file = BucketFile(bucket, "a.jsonl")

    again = location_of(*facts_of_location(file))

    assert again == file
    assert again.bucket.options == _OPTIONS
    assert location_of(*facts_of_location(bucket.folder)) == bucket.folder


def test_an_object_has_no_path_and_the_error_says_what_to_do(bucket):
    dataset = JsonlDataset(BucketFile(bucket, "a.jsonl"), 3)

    with pytest.raises(InputError, match=r"s3://docs/a.jsonl: is an object .* its download\(\)"):
        _ = dataset.path


def test_a_copy_is_known_by_its_url_and_read_by_its_path(tmp_path):
    bucket = StoreBucket("s3://docs", tmp_path, _OPTIONS)
    path = tmp_path / "node" / "a.jsonl"
    path.parent.mkdir()
    path.write_bytes(b'{"n":1}\n')
    file = CopiedFile(bucket, path)

    dataset = JsonlDataset.at(file)

    assert (str(file), file.name, Path(file)) == ("s3://docs/node/a.jsonl", "a.jsonl", path)
    assert str(CopiedFile(bucket, BucketFile(bucket, "in/b.jsonl").copy)) == "s3://docs/in/b.jsonl"
    assert (dataset.path, dataset.read(), dataset.download()) == (path, [{"n": 1}], dataset)
    assert (local_path(file), published_file(file)) == (path, file)
    assert location_of(*facts_of_location(file)) == path  # for a process of the same run
    assert b"hunter2" not in pickle.dumps(dataset)
    assert pickle.loads(pickle.dumps(dataset)).path == path
    path.write_bytes(b"[1]\n")
    with pytest.raises(InputError, match="s3://docs/node/a.jsonl, line 1"):
        dataset.read()


def test_a_copy_counts_as_its_path_in_the_options_of_an_operator(bucket, registry):
    @registry("data.text")
    def joined(record: dict, other: object = None) -> dict:
        return record

    path = bucket.folder / "node" / "a.jsonl"
    digests = {
        joined(other=wrapped(JsonlDataset(location, 3))).__dataops__.options_digest
        for location in (path, CopiedFile(bucket, path))
        for wrapped in (lambda one: one, lambda one: [one])
    }
    assert len(digests) == 2


def test_objects_of_two_servers_differ(tmp_path):
    one, other = (
        input_object("s3://docs/a.jsonl", {"endpoint": f"http://{name}"}) for name in ("x", "y")
    )

    assert one != other
    assert str(one) == str(other)
    assert len({one, other, input_object("s3://docs/a.jsonl", {"endpoint": "http://x"})}) == 2


_PARTS = [
    "..",
    ".",
    "",
    "/",
    "a",
    "a.b",
    "...",
    "~",
    "\0",
    "\\",
    "C:",
    "\ud800",
    "\udcff",
    " ",
    "é",
]
_NAMES = st.lists(st.sampled_from(_PARTS), max_size=5).map("/".join) | st.text(
    st.characters() | st.sampled_from("./\\\0~"), max_size=20
)
ESCAPES = [
    "",
    ".",
    "..",
    "/",
    "/etc/passwd",
    "../x",
    "a/../../x",
    "a/..",
    "./a",
    "a/.",
    "a//b",
    "a/",
]
ESCAPES += ["\0", "a\0b", "//a", "\ud800"]


@settings(max_examples=at_most(200))
@given(_NAMES)
def test_a_name_is_below_its_folder_or_refused(name: str) -> None:
    root = Path("/srv/root")
    try:
        path = below(root, name, "the head")
    except PathEscapeError:
        return
    assert os.path.normpath(path) == str(path) != str(root)
    assert path.relative_to(root).as_posix() == name


@each("name", [*ESCAPES, None, 1, b"a", ["a"]])
def test_what_leads_out_of_its_folder_is_refused(name: object) -> None:
    with pytest.raises(PathEscapeError, match="leads out") as caught:
        confined(name, "memory://bucket/head.json")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert "memory://bucket/head.json" in str(copy)


@each("part", ["a", "a.b", "...", "~", "-rf", " a", "é", "\udcff", "a b", "C:", "a\\b"])
def test_any_other_name_of_a_file_is_plain(part: str) -> None:
    assert is_plain(part, windows=False)


@settings(max_examples=at_most(100))
@given(st.text(st.sampled_from("aC:\\/. "), max_size=6))
def test_on_windows_a_plain_name_is_one_part_without_a_drive(part: str) -> None:
    if is_plain(part, windows=True):
        assert PureWindowsPath(part).parts == (part,)
        assert not PureWindowsPath(part).drive


@pytest.fixture
def openings(monkeypatch):
    """Replace stores by stores in memory; return the arguments of each opening."""
    calls = []

    def open_store(bucket, *, written_below=None):
        calls.append(written_below)
        return FakeStore()

    monkeypatch.setattr(object_store, "open_store", open_store)
    return calls


@pytest.fixture
def shared(tmp_path):
    with config.temporary(data_process_scratch=tmp_path / "scratch"):
        return root_setting("root", "memory://bucket/root").bucket


class CountingLock:
    """A lock that counts the threads that have come to it."""

    def __init__(self):
        self._lock = threading.Lock()
        self.came = threading.Semaphore(0)

    def __enter__(self):
        self.came.release()
        self._lock.acquire()

    def __exit__(self, *_):
        self._lock.release()


def test_threads_that_need_a_store_at_once_open_it_once(shared, openings, monkeypatch):
    threads, lock, open_store = 8, CountingLock(), object_store.open_store
    monkeypatch.setattr(open_stores, "_OPENING", lock)

    def open_late(bucket, *, written_below):
        if not openings:
            assert all(lock.came.acquire(timeout=60) for _ in range(threads))
        return open_store(bucket, written_below=written_below)

    monkeypatch.setattr(object_store, "open_store", open_late)
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(writing, [shared] * threads))

    assert openings == [""]
    assert {id(store) for store in found} == {id(found[0])}


def test_a_store_that_was_opened_for_reading_is_opened_anew_for_writing(shared, openings):
    first, second = reading(shared), writing(shared)

    assert openings == [None, ""]
    assert first is not second
    assert reading(shared) is second
    assert openings == [None, ""]


@given(st.binary(max_size=60), st.integers(0, 70), st.integers(0, 70), st.integers(1, 7))
def test_a_range_is_read_whole_though_the_system_stops_short(data, start, length, step):
    real = os.pread
    with (
        tempfile.TemporaryFile(buffering=0) as file,
        patch("os.pread", lambda d, count, at: real(d, min(count, step), at)),
    ):
        file.write(data)

        assert read_range(file.fileno(), start, length) == data[start : start + length]


def parted(folder, parts):
    folder.mkdir(exist_ok=True)
    for number, part in enumerate(parts):
        (folder / f"docs_results-{number:05d}.jsonl").write_bytes(part)
    return folder


@given(
    st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=12),
    st.integers(0, 110),
    st.integers(0, 110),
)
def test_a_range_of_a_file_in_parts_is_that_of_the_whole(parts, start, length):
    with tempfile.TemporaryDirectory() as folder, opened(parted(Path(folder), parts)) as source:
        whole = b"".join(parts)

        assert read_range(source, start, length) == whole[start : start + length]


def test_parts_are_read_in_the_order_of_their_numbers(tmp_path):
    parted(tmp_path, [b"%d\n" % number for number in range(12)])
    (tmp_path / "docs_results-00011.jsonl").rename(tmp_path / "docs_results-000011.jsonl")
    (tmp_path / ".DS_Store").touch()

    assert PartedFile(tmp_path).read(0, 100) == b"".join(b"%d\n" % n for n in range(12))


@pytest.mark.parametrize("unfit", ["missing", "twice", "other", "named"])
def test_a_folder_of_anything_but_parts_is_no_file(tmp_path, unfit):
    parted(tmp_path, [b"a\n", b"b\n", b"c\n"])
    if unfit == "missing":
        (tmp_path / "docs_results-00001.jsonl").unlink()
    else:
        names = {"other": "notes.txt", "named": "pages_results-00003.jsonl"}
        name = names.get(unfit, "docs_results-000002.jsonl")
        (tmp_path / name).write_text("")

    with pytest.raises(IsADirectoryError):
        PartedFile(tmp_path)


def test_an_edit_of_any_part_changes_the_state(tmp_path):
    parted(tmp_path, [b"a\n", b"b\n"])
    before = state_at(tmp_path)
    first = tmp_path / "docs_results-00000.jsonl"
    os.utime(first, ns=(0, before.modified_ns + 1))

    assert state_at(tmp_path) != before
    assert before.size == 4


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def _link(place: Path) -> None:
    (place.parent.parent / "elsewhere").mkdir(exist_ok=True)
    place.symlink_to(place.parent.parent / "elsewhere")


def _dangling(place: Path) -> None:
    place.symlink_to(place.parent.parent / "nowhere")


def _open(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


def _sticky(place: Path) -> None:
    place.mkdir()
    place.chmod(0o1777)


def _of_another(place: Path) -> None:
    if os.getuid():
        pytest.skip("only root can make a folder of another user")
    place.mkdir(mode=0o700)
    os.chown(place, 65534, 65534)


def test_a_folder_is_created_for_this_user_alone(temporary: Path) -> None:
    before = os.umask(0)
    try:
        folder = private_folder("ours")
    finally:
        os.umask(before)
    assert folder == temporary / f"ours-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert private_folder("ours") == folder


@pytest.mark.parametrize("mode", [0o755, 0o775, 0o2770])
def test_a_folder_of_this_user_that_others_cannot_write_to_becomes_private(
    temporary: Path, mode: int
) -> None:
    folder = temporary / f"ours-{os.getuid()}"
    folder.mkdir()
    folder.chmod(mode)
    (folder / "kept").touch()
    private_folder("ours")
    assert stat.S_IMODE(folder.stat().st_mode) & 0o777 == 0o700
    assert (folder / "kept").exists()


@pytest.mark.parametrize("plant", [_link, _dangling, _open, _sticky, _of_another, Path.touch])
def test_what_another_user_may_have_made_is_refused_and_left_alone(
    temporary: Path, plant: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [temporary / f"{name}-{os.getuid()}" for name in ("ours", "dagster-dataops")]
    places.append(temporary / f"dagster_dataops-{os.getuid()}")
    for place in places:
        plant(place)
    before = [place.lstat() for place in places]
    (temporary / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(temporary / "file"))
    monkeypatch.delenv("DATAOPS_DATA_PROCESS_SCRATCH", raising=False)
    config.data_process_scratch = None
    with pytest.raises(ForeignFolderError, match="remove it"):
        private_folder("ours")
    with pytest.raises(ConfigurationError, match="DATAOPS_DATA_PROCESS_SCRATCH"):
        root_setting("root", "memory://bucket/results")  # for working copies
    with pytest.raises(StorageError, match="XDG_CACHE_HOME"):
        index_cache.cache_folder()
    assert [place.lstat() for place in places] == before


def test_indices_are_kept_in_the_temporary_folder_without_a_home(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(temporary / "file"))
    folder = index_cache.cache_folder()
    assert folder == temporary / f"dagster_dataops-{os.getuid()}" / "indices"
    assert folder.is_dir()

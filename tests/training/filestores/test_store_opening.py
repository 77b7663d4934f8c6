"""Tests of filestores.store_opening, and of what all stores have in common."""

import pickle
import threading

import pytest

from dagster_dataops import SourceInfo, file_store
from dagster_dataops.errors import (
    AuxFileMissingError,
    DuplicateKeyError,
    IndexOutdatedError,
    InputError,
    PathEscapeError,
)
from dagster_dataops.records import encode
from tests.training.filestores.shards import dataset, stores, write_tar

FORMS = ["./aux", "filesystem://./imgs", "imgs", "lines.jsonl", "memory", "filesystem+memory"]


@pytest.fixture
def given(tmp_path):
    (tmp_path / "lines.jsonl").write_text("".join(f'{{"n":{n}}}\n\n' for n in range(5)))
    return stores(tmp_path)


@pytest.fixture(params=FORMS)
def store(request, given):
    import fsspec

    form = request.param
    if "memory" in form:
        memory = fsspec.filesystem("memory")
        for kind in ("aux", "imgs"):
            memory.put(str(given / kind), f"/stores/{kind}", recursive=True)
        part = "aux" if form == "memory" else "imgs"
        yield file_store(f"{form}://stores/{part}")
        memory.rm("/stores", recursive=True)
        return
    yield file_store(form, given)


def test_a_store_has_names_contents_and_sources(store):
    name = next(iter(store.names()))

    data, source = store[name]

    assert store.get(name) == data
    assert name in store
    assert len(store) == len(list(store.names()))
    assert isinstance(source, SourceInfo)
    assert (source.dataset_path, source.file_names) == (store.get_path(), [name])
    assert store.version() == store.version()


def test_a_sample_remembers_the_files_that_were_read_for_it(store):
    name, sample = next(iter(store.names())), {"__sources__": []}

    store.get(name, sample)

    assert [one.index for one in sample["__sources__"]] == [name]


def test_a_missing_file_is_named_with_the_nearest_one(store):
    near = next(iter(store.names()))
    with pytest.raises(AuxFileMissingError, match="no file") as caught:
        store.named("pictures").get(near[:-1])
    assert isinstance(caught.value, KeyError)
    assert "pictures (" in str(caught.value)
    assert f"among {len(store)}; nearest" in str(caught.value)


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/passwd"])
def test_no_name_leads_out_of_a_store(store, name):
    assert name not in store
    with pytest.raises(PathEscapeError):
        store.get(name)


def test_a_store_can_be_pickled_and_used_by_threads(store):
    copied = pickle.loads(pickle.dumps(store))
    names = list(store.names())
    found = []
    threads = [
        threading.Thread(target=lambda: found.append([copied.get(one) for one in names]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[store.get(one) for one in names]] * 4
    copied.close()
    assert copied.get(names[0]) == found[0][0]


def test_relative_paths_belong_to_the_base(given):
    assert file_store("filesystem://imgs", given).get("m0003.txt") == b"file 3"
    assert file_store(f"filesystem://{given}/imgs").get("m0003.txt") == b"file 3"
    assert file_store(f"file://{given}/imgs").get("m0003.txt") == b"file 3"
    assert file_store(given / "aux" / "*.tar").get("m0013.txt") == b"aux 13"


def test_an_unknown_place_is_refused(given):
    for text in ("nowhere", "filesystem://nowhere"):
        with pytest.raises(InputError, match="no such"):
            file_store(text, given)
    with pytest.raises(InputError, match=r"'foo\+bar' is unknown; known: filesystem .* s3"):
        file_store("foo+bar://x/y")
    with pytest.raises(InputError, match="multi-storage-client"):
        file_store("msc://profile/x")
    (given / "notes.txt").write_text("no store")
    with pytest.raises(InputError, match="is a file; it must be a folder, tar shards"):
        file_store("notes.txt", given)


def test_links_inside_a_folder_are_followed_and_others_refused(given):
    (given / "imgs" / "inside.txt").symlink_to(given / "imgs" / "m0001.txt")
    (given / "imgs" / "outside.txt").symlink_to(given / "secret.txt")
    store = file_store("filesystem://imgs", given)
    assert store.get("inside.txt") == b"file 1"
    with pytest.raises(PathEscapeError):
        store.get("outside.txt")


def test_a_key_in_two_shards_is_refused_or_chosen(tmp_path):
    write_tar(tmp_path / "d-0.tar", [("k.txt", b"one"), ("x.txt", b"x")])
    write_tar(tmp_path / "d-1.tar", [("k.txt", b"two"), ("y.txt", b"y")])
    with pytest.raises(DuplicateKeyError, match=r"'k' occurs twice, in d-0.tar and in d-1.tar"):
        file_store(tmp_path).get("x.txt")
    assert file_store(tmp_path, duplicates="first").get("k.txt") == b"one"
    assert file_store(tmp_path, duplicates="last").get("k.txt") == b"two"


def test_a_shard_that_changes_after_indexing_is_noticed(tmp_path):
    dataset(tmp_path / "a")
    store = file_store(tmp_path / "a")
    assert store.get("a00003.txt") == b"caption 3"
    write_tar(tmp_path / "a" / "shards/data-000.tar", [("other.txt", b"o" * 5000)])
    store.close()
    with pytest.raises(IndexOutdatedError, match=r"data-000.tar.*'a00003.txt'"):
        store.get("a00003.txt")


def test_lines_of_a_changed_file_are_refused(given):
    store = file_store("lines.jsonl", given)
    assert store.get("3.json") == b'{"n":3}'
    (given / "lines.jsonl").write_text('{"n":7}\n' * 9)
    with pytest.raises(IndexOutdatedError):
        store.get("3.json")


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "a\0b", "", "."])
def test_a_name_that_leads_out_is_refused(name, given):
    with pytest.raises(PathEscapeError, match="store of pictures"):
        file_store("imgs", given).named("store of pictures").get(name)


def test_a_name_gets_its_plain_form(given):
    store = file_store("imgs", given)
    assert store.get("./sub//x.bin") == store.get("sub/x.bin")


ONE = SourceInfo.of("d", 3, "s.tar", ["a.txt"])


def test_its_keys_are_attributes_and_it_is_json():
    assert (ONE.dataset_path, ONE["index"]) == ("d", 3)
    assert encode({"s": ONE}).startswith(b'{"s":{"dataset_path":"d","index":3')
    assert pickle.loads(pickle.dumps(ONE)).shard_name == "s.tar"
    with pytest.raises(AttributeError):
        _ = ONE.path


def test_a_source_is_added_once_to_a_new_list(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    store, before = file_store(tmp_path), []
    sample = {"__sources__": before}

    assert store.get("a.txt", sample) == store.get("a.txt", sample) == b"a"

    assert before == []
    assert sample["__sources__"] == [store["a.txt"][1]]

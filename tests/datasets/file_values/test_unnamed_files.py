"""Tests of the deletion of files that no result names."""

import os
import shutil
import threading
import time
from hashlib import sha256

import pytest

from dagster_dataops import File, config, data_register, pipeline
from dagster_dataops.configuration import root_setting
from tests.command_line import main
from tests.each import each
from tests.nodes import FileKeeper, FolderLock
from tests.object_stores import FakeStore, leave_short_parts, machine, use, writing


@data_register("data.unnamed_files", _concurrency_mode="single")
def draw(record):
    record["image"] = File(f"image {record['n']}".encode())
    if record["n"] == 9:
        raise KeyboardInterrupt
    return record


@data_register("data.unnamed_files", _concurrency_mode="single")
def copied(record):
    return {"copy": [record["image"]]}


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    with config.temporary(data_process_path=root):
        made([{"n": n} for n in range(4)])
        yield root


def made(records, **settings):
    with pipeline("p") as ppl:
        ppl.draw = draw(**settings)
        ppl.copied = copied()
    return ppl(records)


def stored(root):
    return sorted(
        path.parent.name + path.name
        for path in (root / "files").glob("[0-9a-f][0-9a-f]/*")
        if not path.name.startswith(".")
    )


def digest(number):
    return sha256(f"image {number}".encode()).hexdigest()


def age(root, days=30.0):
    then = time.time() - days * 86_400
    for path in (root / "files").rglob("*"):
        os.utime(path, (then, then))


def test_only_old_files_that_no_result_names_are_deleted(root, capsys):
    age(root)
    shutil.rmtree(root / "p" / "draw")
    assert main(["prune-files", str(root), "--yes"]) == 0
    assert capsys.readouterr().out.startswith("0 files older than 7 days")
    assert len(stored(root)) == 4
    shutil.rmtree(root / "p")
    for arguments, left in (([], 4), (["--days", "60", "--yes"], 4), (["--yes"], 0)):
        assert main(["prune-files", str(root), *arguments]) == 0
        assert len(stored(root)) == left
    assert "4 files older than 7 days" in capsys.readouterr().out


def test_files_of_an_unfinished_run_and_of_other_roots_are_kept(root, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        made([{"n": n} for n in range(5, 10)])
    age(root)
    shutil.rmtree(root / "p" / "copied")
    for path in (root / "p" / "draw").glob("draw_*"):
        path.unlink()
    (tmp_path / "other.jsonl").write_text(f'{{"x":"files/{digest(0)[:2]}/{digest(0)[2:]}"}}')
    assert main(["prune-files", str(root), "--also", str(tmp_path / "other.jsonl"), "--yes"]) == 0
    assert stored(root) == sorted(map(digest, (0, 5, 6, 7, 8)))


def test_compressed_results_and_kept_versions_keep_what_they_name(root, capsys):
    shutil.rmtree(root / "p")
    with config.temporary(result_format="jsonl.zst"):
        for numbers in ((0, 1), (2,)):
            with pipeline("p") as ppl:
                ppl.draw = draw(_keep_versions=1)
            ppl([{"n": n} for n in numbers])
    age(root)
    assert main(["prune-files", str(root), "--yes"]) == 0
    assert stored(root) == sorted(map(digest, range(3)))

    assert main(["versions", str(root / "p" / "draw"), "--keep", "0"]) == 0
    assert main(["prune-files", str(root), "--yes"]) == 0
    assert stored(root) == [digest(2)]

    (result,) = root.glob("p/draw/draw_results.jsonl.zst")
    result.write_bytes(result.read_bytes()[:-1])  # what it names is not known any more
    assert main(["prune-files", str(root), "--yes"]) != 0
    assert stored(root) == [digest(2)]
    assert "draw_results.jsonl.zst" in capsys.readouterr().err


def bumped(manifest):
    return manifest.replace(b'"6-little"', b'"7-little"')


def test_a_result_or_version_of_a_newer_package_keeps_all_files(root, capsys):
    made([{"n": 1}], _keep_versions=1)
    made([{"n": 2}], _keep_versions=1)
    age(root)
    name = "draw_results.jsonl.json"
    (version,) = root.glob(f"p/draw/.history/*/{name}")
    for path in (root / "p" / "draw" / name, version):
        before = path.read_bytes()
        path.write_bytes(bumped(before))
        assert main(["prune-files", str(root), "--yes"]) == 1
        assert f"{path} has format 7-little, of a newer version" in capsys.readouterr().err
        path.write_bytes(before)
    assert stored(root) == sorted(map(digest, range(4)))
    assert main(["prune-files", str(root), "--yes"]) == 0
    assert stored(root) == sorted(map(digest, (1, 2)))


def test_a_file_that_is_made_again_counts_as_new(root):
    shutil.rmtree(root / "p")
    age(root)
    made([{"n": 1}])
    shutil.rmtree(root / "p")
    assert main(["prune-files", str(root), "--yes"]) == 0
    assert stored(root) == [digest(1)]


def test_drafts_that_a_kill_left_are_deleted_after_the_grace_period(root):
    draft = root / "files" / digest(0)[:2] / f".{digest(0)[2:]}.0011223344556677.draft"
    draft.write_bytes(b"half")
    assert main(["prune-files", str(root), "--yes"]) == 0
    assert draft.exists()
    age(root)
    assert main(["prune-files", str(root), "--yes"]) == 0
    assert not draft.exists()
    assert len(stored(root)) == 4


def test_nothing_is_deleted_while_a_run_works_below_the_root(root, capsys):
    shutil.rmtree(root / "p")
    age(root)
    lock = FolderLock(root / "p" / "draw", "run", 0.0)
    try:
        assert main(["prune-files", str(root), "--yes"]) == 1
    finally:
        lock.release()
    assert "in use by a run" in capsys.readouterr().err
    assert len(stored(root)) == 4


def test_a_node_may_have_the_name_of_the_folder(tmp_path):
    with config.temporary(data_process_path=tmp_path):
        with pipeline("") as ppl:
            ppl.files = draw()
        first, second = ppl([{"n": 1}]), ppl([{"n": 1}])
    assert first == second
    age(tmp_path)
    assert main(["prune-files", str(tmp_path), "--yes"]) == 0
    assert digest(1) in stored(tmp_path)


def test_a_wrong_root_and_a_wrong_period_are_refused(root, capsys):
    assert main(["prune-files", str(root / "none")]) == 1
    assert main(["prune-files", str(root), "--days", "-1"]) == 1
    assert "a number of days" in capsys.readouterr().err


BUCKET = "memory://unnamed/results"


@pytest.fixture
def store(tmp_path):
    store = FakeStore()
    with config.temporary(data_process_scratch=tmp_path / "scratch", data_process_path=BUCKET):
        bucket = root_setting("root", BUCKET).bucket
        assert bucket is not None
        use(bucket, store)
        made([{"n": n} for n in range(4)])
        yield store


def stored_objects(store):
    return sorted(
        "".join(key.split("/")[-2:])
        for key in store.objects
        if key.startswith("results/files/") and "/." not in key
    )


def age_objects(store, days=30.0, below="results/"):
    for key in store.modified:
        if key.startswith(below):
            store.modified[key] = time.time() - days * 86_400


def forget(store, node):
    store.remove(store.names(f"results/{node}"))


def test_files_in_a_bucket_are_deleted_as_those_of_a_folder(store, capsys):
    age_objects(store, below="results/files/")
    forget(store, "p/draw")
    assert main(["prune-files", BUCKET, "--yes"]) == 0
    assert capsys.readouterr().out.startswith("0 files older than 7 days")
    assert stored_objects(store) == sorted(map(digest, range(4)))
    forget(store, "p")
    made([{"n": 1}])
    for arguments, left in (
        ([], 4), (["--days", "60", "--yes"], 4), (["--also", f"{BUCKET}/p", "--yes"], 1)
    ):  # fmt: skip
        assert main(["prune-files", BUCKET, *arguments]) == 0
        assert len(stored_objects(store)) == left
    assert stored_objects(store) == [digest(1)]
    assert "3 files older than 7 days" in capsys.readouterr().out
    assert not [key for key in store.objects if "clock" in key]


def test_versions_in_a_bucket_keep_what_they_name_in_any_form(store):
    forget(store, "p")
    for number, form in enumerate(("jsonl.zst", "jsonl", "jsonl.zst")):
        with pipeline("p") as ppl:
            ppl.draw = draw(_keep_versions=1)
        with config.temporary(result_format=form):
            ppl([{"n": number}])
    age_objects(store)
    assert main(["prune-files", BUCKET, "--yes"]) == 0
    assert stored_objects(store) == sorted(map(digest, (1, 2)))


def test_a_result_version_or_run_of_a_newer_package_keeps_all_files_of_a_bucket(
    store, capsys, monkeypatch
):
    forget(store, "p/copied")
    for number in (1, 2):
        with pipeline("p") as ppl:
            ppl.draw = draw(_keep_versions=1)
        ppl([{"n": number}])
    node = "results/p/draw"
    kept = min(store.names(f"{node}/.history"))
    for key in (f"{node}/draw_results.jsonl.json", kept):
        before = store.objects[key][0]
        store.put(key, bumped(before))
        age_objects(store)
        assert main(["prune-files", BUCKET, "--yes"]) == 1
        assert f"memory://unnamed/{key} has format 7-little" in capsys.readouterr().err
        store.put(key, before)

    monkeypatch.setattr("dagster_dataops.checkpoints.folder.run_fingerprint.FORMAT", "7-little")
    with pytest.raises(KeyboardInterrupt):
        made([{"n": 3}, {"n": 9}])
    age_objects(store)
    assert main(["prune-files", BUCKET, "--yes"]) == 1
    told = capsys.readouterr().err
    assert f"memory://unnamed/{node}/.journal/" in told
    assert " has format 7-little" in told
    assert stored_objects(store) == sorted(map(digest, range(4)))


def test_a_result_in_parts_is_not_newer(store, monkeypatch):
    leave_short_parts(monkeypatch)
    with pipeline("p") as ppl:
        ppl.draw = draw()
    for form in ("jsonl", "jsonl.zst"):
        with config.temporary(whole_result_mb=0, result_format=form):
            ppl([{"n": 7}])
        if form == "jsonl":
            assert b" with parts" in store.objects["results/p/draw/draw_results.jsonl.json"][0]
        age_objects(store)
        assert main(["prune-files", BUCKET, "--yes"]) == 0
    assert digest(7) in stored_objects(store)


def test_an_object_of_another_place_keeps_what_it_names(store, tmp_path):
    forget(store, "p")
    age_objects(store)
    names = [f"files/{digest(n)[:2]}/{digest(n)[2:]}" for n in range(3)]
    store.put("other/records.jsonl", b"x" * ((8 << 20) - 30) + f'"{names[0]}"'.encode())
    (tmp_path / "more.jsonl").write_text(names[1])
    also = [
        "--also",
        "memory://unnamed/other/records.jsonl",
        "--also",
        str(tmp_path / "more.jsonl"),
    ]
    assert main(["prune-files", BUCKET, "--yes", *also]) == 0
    assert stored_objects(store) == sorted(map(digest, range(2)))


def test_outputs_of_an_unfinished_run_in_two_objects_keep_what_they_name(store):
    forget(store, "p")
    name = f'"files/{digest(2)[:2]}/{digest(2)[2:]}"'.encode()
    store.put("results/p/draw/.journal/data/00000002-a", b"{" + name[:20])
    store.put("results/p/draw/.journal/data/00000003-a", name[20:] + b"}")
    age_objects(store)
    assert main(["prune-files", BUCKET, "--yes"]) == 0
    assert stored_objects(store) == [digest(2)]


def test_a_run_of_another_machine_keeps_all_files_of_a_bucket(store, capsys):
    forget(store, "p")
    age_objects(store)
    for kind in ("claim", "work"):
        entry = b'{"kind":"%s","host":"there"}\n' % kind.encode()
        store.put("results/p/draw/.journal/00000007", entry)
        assert main(["prune-files", BUCKET, "--yes"]) == 1
        assert "in use by a run on there" in capsys.readouterr().err
    assert len(stored_objects(store)) == 4
    store.put("results/p/draw/.journal/00000008", b'{"kind":"commit"}\n')
    assert main(["prune-files", BUCKET, "--yes"]) == 0
    assert stored_objects(store) == []


def test_a_run_that_found_its_result_finished_keeps_no_files(store):
    with config.temporary(data_process_resume=True):
        made([{"n": n} for n in range(4)])
    age_objects(store, below="results/files/")
    assert main(["prune-files", BUCKET, "--yes"]) == 0
    lock = FolderLock(config.data_process_path / "p" / "draw", "run", 0.0)
    try:
        assert main(["prune-files", BUCKET]) == 1
    finally:
        lock.release()


def test_a_file_that_is_stored_again_while_a_bucket_is_searched_is_kept(store):
    forget(store, "p")
    age_objects(store)
    put = store.put

    def put_again(key, data):
        if "clock" in key:
            again = f"results/files/{digest(1)[:2]}/{digest(1)[2:]}"
            put(again, store.objects[again][0])
        put(key, data)

    store.put = put_again
    assert main(["prune-files", BUCKET, "--yes"]) == 0
    assert stored_objects(store) == [digest(1)]


def test_a_bucket_whose_results_change_meanwhile_keeps_all_files(store, capsys):
    forget(store, "p")
    age_objects(store)
    store.put("results/notes.jsonl", b"{}")
    read_range = store.read_range

    def changed(*arguments):
        store.put("results/new.jsonl", b"{}")
        return read_range(*arguments)

    store.read_range = changed
    assert main(["prune-files", BUCKET, "--yes"]) == 1
    assert "has changed results meanwhile" in capsys.readouterr().err
    assert main(["prune-files", "memory://unnamed/none"]) == 1
    assert "a root with objects below it" in capsys.readouterr().err
    assert len(stored_objects(store)) == 4


def test_a_store_tells_the_time_of_its_objects(tmp_path):
    with config.temporary(data_process_scratch=tmp_path, data_process_path="memory://listed/a"):
        made([{"n": n} for n in range(4)])
        bucket = root_setting("root", "memory://listed/a").bucket
        assert bucket is not None
        listed = writing(bucket).listed("a")
        assert listed.keys() == writing(bucket).listed("").keys()
        [image] = [one for key, one in listed.items() if key.endswith(digest(1)[2:])]
        assert image.status.size == len("image 1")
        assert abs(image.modified - time.time()) < 60
        assert main(["prune-files", "memory://listed/a", "--days", "0", "--yes"]) == 0


class Interrupted:
    """A block around the requests of a store that calls a function before one of them."""

    def __init__(self, function, at):
        self.function, self.at, self.requests = function, at, 0

    def __call__(self):
        return self

    def __enter__(self):
        self.requests += 1
        if self.requests == self.at + 1:
            self.function()

    def __exit__(self, *_):
        pass


def use_store(store):
    bucket = root_setting("root", BUCKET).bucket
    assert bucket is not None
    use(bucket, store)


class OtherMachine:
    """A run on another machine that stores file 1 again, and pauses before one of its requests.

    Args:
        store: The store.
        scratch: Its folder for working copies.
        pause: The number of the request, from 0.
    """

    def __init__(self, store, scratch, pause):
        self._reached, self._goes_on = threading.Event(), threading.Event()
        self._pause, self._requests, self._waits = pause, 0, threading.Event()
        seen = store.seen_by(lambda: self)
        read = seen.read
        seen.read = lambda key: self._noticed(read(key))
        keeper = FileKeeper(machine(scratch, seen, "results"))
        keeper.keep(File(b"image 1"))
        self._thread = threading.Thread(target=keeper.sync)
        self._thread.start()
        self._reached.wait(30)

    def __enter__(self):
        if self._requests == self._pause:
            self._reached.set()
            self._goes_on.wait(30)
        self._requests += 1

    def __exit__(self, *_):
        pass

    def _noticed(self, found):
        if found is not None and found[0].startswith(b"deleting"):
            self._waits.set()
        return found

    def go_on(self):
        """Let it go on until it ends, or waits for the end of a deletion."""
        self._goes_on.set()
        while self._thread.is_alive() and not self._waits.is_set():
            self._thread.join(0.01)

    def end(self):
        self._goes_on.set()
        self._thread.join(30)


@pytest.mark.slow
@each("pause", [0, 1, 2])
def test_a_file_that_a_run_stores_again_during_the_deletion_is_there(store, tmp_path, pause):
    """Interleave the requests of both: the run goes on before each request of the command."""
    key = f"results/files/{digest(1)[:2]}/{digest(1)[2:]}"
    number, lost = 0, []
    while True:
        forget(store, "p")
        store.remove(["results/files/.pruned"])
        store.put(key, b"image 1")
        age_objects(store, below=key)
        other = OtherMachine(store, tmp_path / f"other{pause}-{number}", pause)
        interrupted = Interrupted(other.go_on, number)
        use_store(store.seen_by(interrupted))
        ended = main(["prune-files", BUCKET, "--yes"])
        other.end()
        assert ended == 0
        if digest(1) not in stored_objects(store):
            lost.append(number)
        if interrupted.requests <= number:
            break
        number += 1
    assert number > 5
    assert lost == []


def test_a_run_stores_files_again_that_were_deleted_while_it_stored_them(store, tmp_path):
    key = f"results/files/{digest(1)[:2]}/{digest(1)[2:]}"
    request = 0
    while True:
        forget(store, "p")
        store.put(key, b"image 1")
        age_objects(store, below=key)
        use_store(store)

        def prune():
            assert main(["prune-files", BUCKET, "--yes"]) == 0

        interrupted = Interrupted(prune, request)
        root = machine(tmp_path / f"other{request}", store.seen_by(interrupted), "results")
        keeper = FileKeeper(root)
        keeper.keep(File(b"image 1"))
        keeper.sync()
        assert digest(1) in stored_objects(store)
        if interrupted.requests <= request:
            break
        request += 1
    assert request == 3


def test_a_second_command_waits_for_none_and_a_killed_one_is_forgotten(store, capsys):
    forget(store, "p")
    age_objects(store)
    store.put("results/files/.pruned", b"deleting x")
    assert main(["prune-files", BUCKET, "--yes"]) == 1
    assert "another prune-files" in capsys.readouterr().err
    assert len(stored_objects(store)) == 4
    age_objects(store)
    assert main(["prune-files", BUCKET, "--yes"]) == 0
    assert stored_objects(store) == []
    assert store.objects["results/files/.pruned"][0].startswith(b"idle")

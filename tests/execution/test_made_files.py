"""Tests of operators that return files: references, stored contents, and refusals of the disk."""

import json
from hashlib import sha256

import pytest

from dagster_dataops import (
    Drop,
    chain,
    config,
    data_register,
    pipeline,
    read_sequence,
)
from dagster_dataops.errors import FileNotStoredError, OutageError, StorageError
from dagster_dataops.files import File, FileReference
from tests.execution.helpers import MODES

group = data_register.new_group("made_files")
VALUES = {}


def drawn(record):
    number = record["n"]
    record["image"] = File(b"\x89PNG\r\n\x1a\n" + bytes([number % 5]) * 50)
    record["more"] = [{"text": File(f"text {number}".encode(), "text/plain")}, number]
    match number % 10:
        case 7:
            return [record, {**record, "part": 2}]
        case 8:
            return Drop("eight")
        case 9:
            raise ValueError(number)
    return record


@data_register("data.made_files", _max_workers=2)
def draw(record: dict):
    return drawn(record)


@data_register("data.made_files", _max_workers=2)
async def draw_async(record: dict):
    return drawn(record)


@data_register("data.made_files", rewrite_func="forward_batch", _batch_size=4, _max_workers=2)
def draw_batch(records):
    found = []
    for record in records:
        try:
            found.append(drawn(record))
        except ValueError as error:
            found.append(error)
    return found


@data_register("data.made_files", rewrite_func="forward_batch_input")
def draw_all(records: list):
    for record in records:
        if record["n"] % 10 < 7:
            yield drawn(record)


@data_register("data.made_files")
def measure(record: dict):
    reference = FileReference.of(record["image"], "column 'image'")
    return {"n": record["n"], "size": reference.size, "read": len(reference.read())}


@pytest.fixture(autouse=True)
def root(tmp_path):
    with config.temporary(data_process_path=tmp_path / "root"):
        yield tmp_path / "root"


def run(operator, count=40):
    with pipeline("p") as ppl:
        ppl.node = operator
    return ppl([{"n": n} for n in range(count)])


def checked(root, records):
    """Return the records; check that each file that they name is whole."""
    for record in records:
        for one in (record["image"], record["more"][0]["text"]):
            data = (root / one["file"]).read_bytes()
            digest = sha256(data).hexdigest()
            assert one["file"] == f"files/{digest[:2]}/{digest[2:]}"
            assert (one["digest"], one["size"]) == (f"sha256:{digest}", len(data))
            assert FileReference.of(one).read() == data
    return records


def stored(root):
    return sorted(path for path in (root / "files").glob("??/*"))


@pytest.mark.parametrize("operator", [draw, draw_batch], ids=["record", "batch"])
def test_every_mode_writes_the_same_references_and_stores_each_content_once(root, operator):
    results = {}
    for mode in MODES:
        chosen = draw_async if mode == "async" and operator is draw else operator
        if mode == "async" and operator is draw_batch:
            continue
        with config.temporary(data_process_path=root / mode):
            results[mode] = checked(root / mode, run(chosen(_concurrency_mode=mode)))
            assert len(stored(root / mode)) == 5 + 36 - 4  # images, texts of records that stay
    first = results["single"]
    assert len(first) == 36
    assert all(found == first for found in results.values())
    assert first[0]["image"]["media_type"] == "image/png"
    assert first[0]["more"][1] == 0


def test_a_dataset_operator_makes_files_too(root):
    assert len(checked(root, run(draw_all()))) == 28


def test_a_reader_that_makes_files_stores_them_below_the_root(root):
    source = read_sequence([{"n": n} for n in range(7)]).map(drawn).and_return()
    with pipeline("q") as ppl:
        ppl.node = measure()
    assert [row["read"] for row in ppl(source)] == [58] * 7


@pytest.mark.parametrize("first", [draw, draw_async, draw_batch])
def test_the_next_part_of_a_chain_gets_what_the_next_node_would(root, first):
    with pipeline("nodes") as ppl:
        ppl.draw = first()
        ppl.measure = measure()
    whole = ppl([{"n": n} for n in range(40)])
    assert whole[0] == {"n": 0, "size": 58, "read": 58}
    more = {"_batch_size": 4} if first is draw_batch else {}
    assert run(chain(first(), measure(), **more)) == whole


def test_what_else_a_record_cannot_hold_is_named_beside_a_file(root):
    @data_register("data.made_files")
    def odd(record: dict):
        record["a"], record["b"] = File(b"x"), VALUES["b"]
        return record

    for value, found in ((float("nan"), "key 'b' holds nan"), ({1, 2}, "key 'b' holds a set")):
        VALUES["b"] = value
        with pytest.raises(OutageError, match=found):
            run(odd(_concurrency_mode="single"), 1)


def test_a_file_in_a_given_record_is_refused():
    with pipeline("p") as ppl:
        ppl.node = draw()
    with pytest.raises(Exception, match="holds a File, which JSON cannot hold"):
        ppl([{"n": 0, "x": File(b"x")}])


@pytest.mark.parametrize("mode", MODES)
def test_a_run_whose_files_cannot_be_stored_stops_and_resumes(root, mode):
    (root / "files").parent.mkdir(parents=True)
    (root / "files").write_text("no folder")
    operator = (draw_async if mode == "async" else draw)(_concurrency_mode=mode)
    error = StorageError if mode == "process" else FileNotStoredError
    with pytest.raises(error, match="store the file"):
        run(operator)
    (root / "files").unlink()
    with config.temporary(data_process_resume=True):
        assert len(checked(root, run(operator))) == 36


@pytest.mark.parametrize("wrong", [("text",), (None,), (b"x", 3)])
def test_a_file_needs_bytes_and_a_media_type(wrong):
    with pytest.raises(TypeError, match="File takes bytes"):
        File(*wrong)


def test_a_damaged_file_is_stored_again(root):
    run(draw(_concurrency_mode="single"))
    for path in stored(root):
        path.write_bytes(bytes(path.stat().st_size))
    checked(root, run(draw(_concurrency_mode="single")))


def test_a_result_is_read_below_another_root(root, tmp_path):
    run(draw(_concurrency_mode="single"), 5)
    result = root / "p" / "node" / "node_results.jsonl"
    with config.temporary(data_process_path=tmp_path / "other"):
        with pipeline("q") as ppl:
            ppl.measure = measure()
        assert [row["read"] for row in ppl(result)] == [58] * 5
    assert json.loads(result.read_text().splitlines()[0])["n"] == 0

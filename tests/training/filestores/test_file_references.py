"""Tests of crude samples as records that name files, and back."""

import json
from pathlib import Path

import pytest

from dagster_dataops import config, data, pipeline
from dagster_dataops.crude import crude, with_file_contents, with_file_references
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.files import FileChangedError, FileError, FileReference
from tests.training.filestores.shards import write_tar

PARTS = {"jpg": b"\xff\xd8\xff\xe0", "txt": b"text"}


@pytest.fixture
def datasets(tmp_path):
    shards = tmp_path / "shards"
    for number in range(2):
        members = [
            (f"{number}{sample}.{part}", content + bytes([sample]))
            for sample in range(3)
            for part, content in PARTS.items()
        ]
        write_tar(shards / f"s-{number}.tar", members)
    (tmp_path / "lines.jsonl").write_text('{"a":1}\n{"a":2}\n')
    return [str(shards), str(shards / "s-1.tar"), str(tmp_path / "lines.jsonl")]


def test_samples_are_the_same_after_both_conversions(datasets):
    for path in datasets:
        samples = list(crude(path))
        assert samples
        records = [json.loads(json.dumps(with_file_references(one))) for one in samples]
        assert not any(isinstance(value, bytes) for one in records for value in one.values())
        assert [with_file_contents(one) for one in records] == samples


def test_a_reference_names_shard_and_file_with_its_facts(datasets):
    sample = next(iter(crude(datasets[0]).map(with_file_references)))
    assert sample["jpg"].pop("digest").startswith("sha256:")
    assert sample["jpg"] == {
        "file": f"{datasets[0]}/s-0.tar#00.jpg",
        "size": 5,
        "media_type": "image/jpeg",
    }


def test_only_the_parts_that_are_named_are_replaced(datasets):
    sample = next(iter(crude(datasets[0])))
    for one in (["jpg"], "jpg"):
        record = with_file_references({**sample, "j": b"x"}, one)
        assert record["jpg"]["size"] == 5
        assert (record["txt"], record["j"]) == (sample["txt"], b"x")
        assert with_file_contents(record, one) == {**sample, "j": b"x"}


def test_a_part_without_a_source_is_refused(datasets):
    sample = next(iter(crude(datasets[0])))
    with pytest.raises(UnfitRecordError, match=r"no source of the sample has '00\.new'"):
        with_file_references({**sample, "new": b"made by a cooker"})


def test_a_changed_shard_is_noticed(datasets, tmp_path):
    record = with_file_references(next(iter(crude(datasets[1]))))
    write_tar(tmp_path / "new.tar", [("10.jpg", b"other")])
    (tmp_path / "new.tar").replace(datasets[1])
    with pytest.raises(FileChangedError, match="has the digest"):
        with_file_contents(record, ["jpg"])


def test_a_pipeline_takes_samples_that_name_files(datasets, tmp_path):
    for number, path in enumerate(datasets[:2]):
        samples = [one["jpg"] for one in crude(path)]
        with pipeline("named") as ppl:
            ppl.same = data.shape.Add(values={"k": 1})
        root = tmp_path / f"root{number}"
        for stream in (
            crude(path).map(with_file_references),
            crude(path).map(with_file_references).take(9).and_return(on_error="skip"),
        ):
            with config.temporary(data_process_path=root):
                records = ppl(stream)
            assert [with_file_contents(one, "jpg")["jpg"] for one in records] == samples


def test_a_file_behind_the_end_of_a_torn_shard_is_missing_with_the_reason(datasets):
    shard = Path(datasets[1])
    shard.write_bytes(shard.read_bytes()[:4_700])  # within the fifth of six files
    assert FileReference(f"{shard}#11.jpg").read() == PARTS["jpg"] + b"\1"
    with pytest.raises(FileError, match=r"no file '12\.txt' among 4, and not .*archive is torn"):
        FileReference(f"{shard}#12.txt").read()

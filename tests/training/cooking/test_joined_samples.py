"""Samples of equal key in several datasets are one sample."""

import gzip
import json
import pickle
from itertools import islice

import fsspec
import pytest

from dagster_dataops import (
    CrudeSample,
    Sample,
    TextSample,
    basic_sample_keys,
    cook,
    cooker,
    metadataset,
    restore_record,
)
from dagster_dataops.errors import CookerError, MetadatasetError
from dagster_dataops.pipelines.tracing.crude_origins import crude_files
from dagster_dataops.testing import assert_resumes_anywhere
from tests.training.cooking.mixtures import cook_text, dataset, store, written

BOTH = (
    "  train:\n    join:\n      - {path: a}\n      - {path: b%s}\n"
    "    joiner: {__module__: tests.training.cooking.test_joined_samples, __function__: both}\n%s"
)


class TwoTexts(Sample):
    """A joined sample."""

    first: str
    second: str | None


def both(first, second):
    return {"txt": first["txt"] + b" + " + (second["txt"] if second else b"nothing")}


def keyed(first, second):
    return {"txt": first["txt"] + b" %d" % json.loads(second["json"])["n"]}


def by_name(*, right, left):
    return CrudeSample.from_joined(left, {"second": right["txt"]})


def fails_at_2(first, second):
    if first["__key__"] == "0002":
        raise ValueError("two")
    return both(first, second)


def no_sample(first, second):
    return first["txt"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The datasets a with 6 samples, and b with 4 in other shards."""
    dataset(tmp_path / "a", 6, {"side": "left"})
    dataset(tmp_path / "b", 4, shards=1)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mixed(folder, nonmatch="", more="", cookers=cook_text):
    text = f", nonmatch: {nonmatch}" if nonmatch else ""
    return metadataset(written(folder, BOTH % (text, more)), cookers=cookers)


def texts(stream):
    return [record["text"] for record in stream]


def test_a_sample_without_a_match_is_left_out(folder):
    assert texts(mixed(folder, "skip")) == [f"a {n} + b {n}" for n in range(4)]


def test_a_sample_without_a_match_is_joined_with_none(folder):
    wanted = [*(f"a {n} + b {n}" for n in range(4)), "a 4 + nothing", "a 5 + nothing"]

    assert texts(mixed(folder, "none")) == wanted


def test_a_sample_without_a_match_is_an_error_that_names_the_key_and_the_place(folder):
    stream = mixed(folder)

    with pytest.raises(MetadatasetError, match=r"mix.yaml, line 4 .*/b has no sample '0004'"):
        next(iter(stream))


def test_samples_that_the_first_dataset_lacks_are_left_out(folder):
    dataset(folder / "c", 9)
    text = BOTH.replace("path: b", "path: c") % ("", "")

    assert len(texts(metadataset(written(folder, text), cookers=cook_text))) == 6


def test_named_datasets_are_passed_by_name(folder):
    text = (
        "  train:\n    join:\n      left: {path: a}\n      right: {path: b, nonmatch: skip}\n"
        "    joiner: {__module__: tests.training.cooking.test_joined_samples, "
        "__function__: by_name}\n"
    )
    first = next(iter(metadataset(written(folder, text))))

    assert (first["txt"], first["second"]) == (b"a 0", b"b 0")


def test_a_class_merges_the_fields_of_all_samples(folder):
    text = BOTH.replace("tests.training.cooking.test_joined_samples", "dagster_dataops").replace(
        "__function__", "__class__"
    )
    text = text.replace("both", "CrudeSample") % (", nonmatch: none", "")
    found = [sample["txt"] for sample in metadataset(written(folder, text))]

    assert found == [b"b 0", b"b 1", b"b 2", b"b 3", b"a 4", b"a 5"]


def test_fields_of_later_samples_win_and_the_keys_are_not_merged():
    made = TwoTexts.from_joined(
        {"__key__": "k", "first": "1", "second": "2"}, None, {"second": "3"}
    )

    assert made == {"first": "1", "second": "3"}


def test_a_joined_sample_has_the_key_of_the_first_and_the_sources_of_all(folder):
    sample = next(
        iter(metadataset(written(folder, BOTH % (", nonmatch: skip", "    subflavors: {k: 1}\n"))))
    )
    place = f"{folder}/a + {folder}/b"

    assert sample["__key__"] == "0000"
    assert sample["__restore_key__"] == [place, "s-0.tar", "0000"]
    assert sample["__subflavors__"] == {"side": "left", "k": 1}
    assert [one.dataset_path for one in sample["__sources__"]] == [f"{folder}/a", f"{folder}/b"]


def test_stores_of_all_datasets_are_passed_to_the_cooker(folder):
    store(folder / "media", 6)

    @cooker
    def with_file(sample, media):
        file = media.get(f"m{int(sample['__key__'])}.txt", sample)
        return TextSample(**basic_sample_keys(sample), text=file.decode())

    text = BOTH % (", nonmatch: skip, aux: {media: 'filesystem://./media'}", "")

    assert texts(metadataset(written(folder, text), cookers=with_file))[3] == "file 3"


def test_a_cooker_that_wants_the_primary_store_is_refused(folder):
    @cooker(need_primary=True)
    def with_primary(sample, primary):
        return sample

    with pytest.raises(CookerError, match="no primary store"):
        mixed(folder, "skip", cookers=with_primary)


def test_ranges_are_those_of_the_joined_samples(folder):
    more = "    subset: {range: [50%, end]}\n"

    assert texts(mixed(folder, "skip", more)) == ["a 2 + b 2", "a 3 + b 3"]


def test_a_join_is_an_entry_of_a_blend(folder):
    entry = BOTH.removeprefix("  train:\n") % (", nonmatch: skip", "")
    lines = "".join(f"    {line}\n" for line in entry.splitlines())
    text = f"  train:\n    blend_epochized:\n      - repetitions: 2\n{lines}      - {{path: b}}\n"
    stream = metadataset(written(folder, text), cookers=cook_text, seed=1)
    found = texts(stream)

    assert sum("+" in text for text in found) == 8
    assert len(found) == 12
    assert [leaf.name for leaf in stream.leaves] == ["a + b", "b#2"]


def test_it_resumes_anywhere_in_any_process(folder):
    stream = mixed(folder, "none").and_return()

    assert_resumes_anywhere(lambda: mixed(folder, "none").and_return())
    assert texts(stream.workers(2)) == texts(mixed(folder, "none"))
    assert texts(pickle.loads(pickle.dumps(stream))) == texts(mixed(folder, "none"))


def test_a_record_is_made_again_alone(folder):
    for record in mixed(folder, "none"):
        assert restore_record(mixed(folder, "none"), record["__restore_key__"]) == record


def test_the_lines_of_its_index_are_cooked_to_the_same_records(folder):
    mix = mixed(folder, "none", cookers=None)
    rows = json.loads(json.dumps(list(mix.index())))
    records = list(cook(cook_text)(rows))

    assert [row["index"] for row in rows] == list(range(6))
    traced = crude_files([json.dumps(rows[0])])
    assert {(one.dataset, one.name) for one in traced} == {
        (f"{folder}/{name}", f"0000.{part}") for name in "ab" for part in ("json", "txt")
    }
    assert records == [json.loads(json.dumps(one)) for one in mixed(folder, "none")]


def test_the_index_resumes_anywhere(folder):
    assert_resumes_anywhere(lambda: mixed(folder, "none", cookers=None).index().and_return())


def test_an_error_of_the_joiner_is_that_of_one_sample(folder):
    text = (BOTH % (", nonmatch: skip", "")).replace("both", "fails_at_2")
    stream = metadataset(written(folder, text), cookers=cook_text).and_return(on_error="skip")

    assert texts(stream) == ["a 0 + b 0", "a 1 + b 1", "a 3 + b 3"]


def test_a_joiner_that_returns_no_sample_is_named(folder):
    text = (BOTH % (", nonmatch: skip", "")).replace("both", "no_sample")

    with pytest.raises(Exception, match="no_sample returned a bytes"):
        list(islice(metadataset(written(folder, text)), 1))


@pytest.mark.parametrize(
    ("joiner", "words"),
    [
        ("{__module__: no_such_module, __function__: f}", r"line 8 .*No module named"),
        (
            "{__module__: %s, __function__: bot}",
            "no attribute 'bot'",
        ),
        (
            "{__module__: %s, __function__: by_name}",
            "cannot join 2 datasets",
        ),
        ("{__module__: json, __function__: __name__}", "not a callable"),
    ],
)
def test_a_joiner_that_cannot_be_called_is_an_error_at_once(folder, joiner, words):
    head, _, _ = (BOTH % ("", "")).partition("    joiner")

    with pytest.raises(MetadatasetError, match=words):
        metadataset(written(folder, f"{head}    joiner: {joiner.replace('%s', __name__)}\n"))


REFUSED = {
    "shards/b.tar.gz": "shards/b.tar.gz is none; copy the dataset to a local folder, decompress",
    "right.jsonl.gz": "is a file; it must be a folder, tar shards or a .jsonl file",
    "memory://joined/b.tar": "memory://joined/b.tar is none; copy the dataset to a local folder",
    "memory://joined/right.jsonl": "is a remote jsonl file; download it",
}


@pytest.mark.parametrize("path", REFUSED)
def test_a_dataset_that_cannot_be_read_by_number_is_refused_at_once(folder, path):
    tar, lines = next((folder / "b").rglob("*.tar")).read_bytes(), b"{}\n"
    memory = fsspec.filesystem("memory")
    memory.pipe({"/joined/b.tar": tar, "/joined/right.jsonl": lines})
    (folder / "shards").mkdir()
    (folder / "shards" / "b.tar.gz").write_bytes(gzip.compress(tar))
    (folder / "right.jsonl.gz").write_bytes(gzip.compress(lines))
    text = (BOTH % ("", "")).replace("path: b", f"path: '{path}'")

    with pytest.raises(MetadatasetError, match=rf"line 7.*{path}.*") as caught:
        metadataset(written(folder, text), cookers=cook_text)
    assert REFUSED[path] in str(caught.value)


@pytest.mark.parametrize("path", ["right.jsonl", "files"])
def test_datasets_of_other_kinds_are_joined(folder, path):
    for name in ("left", "files"):
        (folder / name).mkdir()
    for number in range(2):
        (folder / "left" / f"{number}.txt").write_text(f"left {number}")
        (folder / "files" / f"{number}.json").write_bytes(b'{"n": %d}' % number)
    (folder / "right.jsonl").write_bytes(b'{"n": 0}\n{"n": 1}\n')
    text = (BOTH % ("", "")).replace("path: a", "path: left").replace("path: b", f"path: {path}")
    text = text.replace("__function__: both", "__function__: keyed")

    assert texts(metadataset(written(folder, text), cookers=cook_text)) == ["left 0 0", "left 1 1"]

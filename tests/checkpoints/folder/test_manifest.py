import errno
import os
import re
from pathlib import Path

import orjson
import pytest

from dagster_dataops import load_result
from dagster_dataops.errors import ResultMissingError, StorageError
from tests.execution.helpers import act, expected_results, node, plan, run_over
from tests.nodes import Manifest, published

_RECORDS = plan(["keep", "drop", "fail", "expand"])


@pytest.fixture
def folder(tmp_path: Path):
    run_over(tmp_path, act(_concurrency_mode="single"), _RECORDS, run="first")
    return node(tmp_path)


def test_files_are_named_after_the_node(tmp_path: Path) -> None:
    folder = node(tmp_path, "upper")
    names = [folder.result, folder.manifest, folder.errors]
    assert [path.name for path in names] == [
        "upper_results.jsonl",
        "upper_results.jsonl.json",
        "upper_error.jsonl",
    ]


def test_a_manifest_describes_the_published_result(folder) -> None:
    manifest = Manifest.load(folder.manifest)
    assert manifest is not None
    assert manifest.done
    assert (manifest.rows_in, manifest.dropped, manifest.failed) == (4, 1, 1)
    assert (manifest.run, manifest.attempts, manifest.resumed) == ("first", ["first"], 0)
    assert manifest.size_bytes == folder.result.stat().st_size
    assert manifest.modified_ns == folder.result.stat().st_mtime_ns
    assert Manifest(**vars(manifest)) == manifest


def test_a_published_result_is_a_handle_with_rows_and_digest(folder) -> None:
    dataset = load_result(folder)
    assert dataset.rows == expected_results(_RECORDS).count(b"\n")
    assert dataset.fingerprint is not None
    assert dataset.path.read_bytes() == expected_results(_RECORDS)


def test_a_result_edited_by_hand_counts_as_a_file_of_unknown_rows(folder) -> None:
    folder.result.write_bytes(b'{"a":1}\n')
    assert published(folder) is None
    assert load_result(folder).rows is None
    assert load_result(folder).read() == [{"a": 1}]


def test_a_touched_result_is_no_longer_known(folder) -> None:
    manifest = Manifest.of(folder)
    assert manifest is not None
    assert manifest.tells_of(folder.result)
    os.utime(folder.result, ns=(1, 1))
    assert published(folder) is None
    assert not manifest.tells_of(folder.result)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"done":true}', b"null"])
def test_a_damaged_manifest_counts_as_none(folder, content: bytes) -> None:
    folder.manifest.write_bytes(content)
    assert Manifest.load(folder.manifest) is None
    assert published(folder) is None


def test_a_missing_result_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ResultMissingError, match="nothing was published there yet"):
        load_result(node(tmp_path, "other"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("rows_out", "3"),
            ("size_bytes", None),
            ("attempts", "x"),
            ("made_from", []),
            ("run", 1),
        ),
        *(("attempts", [3]), ("made_from", {"input": 3}), ("inputs", [3]), ("funnel", [None])),
        *(("drops", {"a": "x"}), ("drop_examples", {"a": ["x"]}), ("kept_from", [{"run": 1}])),
        *(("seeds", {"a": None}), ("leaves", ["x"]), ("resumed_from", [[]])),
    ],
)
def test_a_manifest_with_a_value_of_another_kind_is_none(folder, name: str, value: object) -> None:
    content = orjson.loads(folder.manifest.read_bytes())
    assert Manifest.load(folder.manifest) is not None
    folder.manifest.write_bytes(orjson.dumps({**content, name: value}))
    assert Manifest.load(folder.manifest) is None
    assert published(folder) is None


@pytest.mark.parametrize("refusal", [errno.EACCES, errno.EIO])
def test_a_manifest_that_cannot_be_read_is_not_missing(folder, tmp_path, monkeypatch, refusal):
    before, read = folder.result.read_bytes(), Path.read_bytes

    def refused(path: Path) -> bytes:
        if path == folder.manifest:
            raise OSError(refusal, os.strerror(refusal), str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refused)
    told = rf"{re.escape(str(folder.manifest))}: cannot read the manifest: {os.strerror(refusal)}"
    with pytest.raises(StorageError, match=told):
        run_over(tmp_path, act(_concurrency_mode="single"), _RECORDS, run="second")
    with pytest.raises(StorageError, match=told):
        load_result(folder)
    monkeypatch.undo()
    assert (load_result(folder).rows, folder.result.read_bytes()) == (before.count(b"\n"), before)

"""Tests of traces through packs and cookers to files and bytes of shards."""

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import (
    DefaultTaskEncoder,
    FileStore,
    TextSample,
    basic_sample_keys,
    crude,
    data_register,
    pipeline,
    trace,
)
from dagster_dataops.__main__ import main
from dagster_dataops.pipelines.tracing.crude_origins import CrudeFile, crude_files


def write_shard(path: Path, files: Mapping[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, text in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(text)
            tar.addfile(about, io.BytesIO(text.encode()))


def cook_both(sample: dict[str, Any], more: FileStore) -> TextSample:
    second = more.get(f"m{sample['__key__'][1:]}.txt", sample).decode()
    text = f"{sample['txt'].decode()} {second}"
    return TextSample(**basic_sample_keys(sample), text=text)


class Pairs(DefaultTaskEncoder[Any, Any, Any, Any]):
    """Packs the first record of a window with the last one, the second with the last but one."""

    cookers = (cook_both,)

    def select_samples_to_pack(self, samples: list[Any]) -> list[list[Any]]:
        return [[samples[at], samples[-1 - at]] for at in range(len(samples) // 2)]

    def pack_selected_samples(self, samples: list[Any]) -> TextSample:
        return TextSample.derive_from(samples[0], text="|".join(one["text"] for one in samples))


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A dataset of eight samples in two shards, and a store with a text for each."""
    for shard in range(2):
        numbers = range(4 * shard, 4 * shard + 4)
        write_shard(tmp_path / f"a/a-{shard}.tar", {f"a{n}.txt": f"text {n}" for n in numbers})
    write_shard(tmp_path / "more/m.tar", {f"m{n}.txt": f"more {n}" for n in range(8)})
    return tmp_path


@pytest.fixture
def packed(shards: Path, root: Path) -> Path:
    """The folder of packs of the dataset."""
    source = crude(shards / "a", aux={"more": str(shards / "more")})
    Pairs().pipeline("pairs", packing_buffer_size=4).materialize(source)
    return root / "pairs" / "packed"


def bytes_of(file: CrudeFile) -> str:
    assert file.first is not None
    content = (Path(file.dataset) / file.shard).read_bytes()
    return content[file.first : file.end].decode()


def test_a_pack_is_traced_to_the_bytes_of_its_samples_and_of_their_auxiliary_files(
    packed: Path,
) -> None:
    for line, numbers in enumerate([(0, 3), (1, 2), (4, 7), (5, 6)], 1):
        found = trace(packed, line)
        assert [place.line - 1 for place in found.sources] == sorted(numbers)
        texts = {bytes_of(one) for one in found.files}
        assert texts == {f"{kind} {n}" for kind in ("text", "more") for n in numbers}
        assert [step.node for step in found.steps] == ["cooked", "cooked", "packed"]
        assert len(found.files) == 4


def test_a_sample_is_traced_to_the_pack_that_it_is_in(packed: Path) -> None:
    for number, line in enumerate([1, 2, 2, 1, 3, 4, 4, 3]):
        found = trace(packed, source_line=number + 1)
        assert [place.line for place in found.results] == [line]
        assert {bytes_of(one) for one in found.files} == {f"text {number}", f"more {number}"}


def test_records_of_a_stream_that_cooks_are_traced_to_bytes(shards: Path, root: Path) -> None:
    with pipeline("cooked") as ppl:
        ppl.kept = upper()
    source = crude(shards / "a", aux={"more": str(shards / "more")}).cook([cook_both])
    ppl.materialize(source)

    found = trace(root / "cooked" / "kept", 6)

    assert [bytes_of(one) for one in found.files] == ["text 5", "more 5"]


@data_register("data.traced_crude", _concurrency_mode="single")
def upper(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"text": record["text"].upper()}


def test_the_command_prints_files_with_their_bytes(
    packed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", str(packed), "--line", "2"]) == 0
    printed = capsys.readouterr().out
    dataset = packed.parents[2]
    assert f"\nfiles\n    {dataset}/a  a-0.tar  a1.txt  bytes 1,536 to 1,542\n" in printed
    assert f"    {dataset}/more  m.tar  m2.txt  bytes 2,560 to 2,566\n" in printed

    assert main(["trace", str(packed), "--line", "2", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["files"][0]
    assert first == {
        "dataset": f"{dataset}/a",
        "shard": "a-0.tar",
        "name": "a1.txt",
        "first": 1536,
        "end": 1542,
    }


def test_files_of_folders_and_of_stores_that_are_gone_have_no_bytes(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x.txt").write_text("x")
    lines = [
        json.dumps(
            {"__sources__": [{"dataset_path": at, "shard_name": at, "file_names": ["x.txt"]}]}
        )
        for at in (str(tmp_path / "folder"), str(tmp_path / "gone"))
    ]

    found = crude_files(lines)

    assert [str(one) for one in found] == [f"{tmp_path}/{at}  x.txt" for at in ("folder", "gone")]
    assert [(one.first, one.end) for one in found] == [(None, None)] * 2


def test_lines_that_are_no_records_of_crude_samples_have_no_files() -> None:
    lines = [None, '{"parts": 1, "key": 2}', '["__sources__"]', '{"__sources__": 3}', '"parts"']
    assert crude_files(lines) == ()

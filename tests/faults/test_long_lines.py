"""Tests of lines longer than any record: refused with file and line, in limited memory."""

import bz2
import gzip
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import zstandard

from dagster_dataops import read_jsonl
from dagster_dataops.errors import InputError
from dagster_dataops.readers import read_delimited
from dagster_dataops.streams.files import blocks, line_index
from dagster_dataops.text import read_text

_PACKERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gz": lambda data: gzip.compress(data, 9),
    "bz2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=1),
    "zst": zstandard.compress,
}
_LIMITED: Final = """
import resource, sys
from dagster_dataops import read_jsonl
from dagster_dataops.errors import InputError
resource.setrlimit(resource.RLIMIT_AS, (1536 << 20, 1536 << 20))
items = iter(read_jsonl(sys.argv[1]).and_return())
assert next(items) == {"n": 1}
try:
    next(items)
except InputError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("ending", _PACKERS)
def test_a_small_packed_file_of_one_line_of_gigabytes_is_refused_in_bounded_memory(
    tmp_path: Path, ending: str
) -> None:
    pack = _PACKERS[ending]
    path = tmp_path / f"bomb.jsonl.{ending}"
    path.write_bytes(pack(b'{"n":1}\n{"a":"') + pack(b"x" * (8 << 20)) * 512)
    assert path.stat().st_size < 8 << 20
    run = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(path)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    wanted = f"Input {path}, line 2: is longer than 256 MiB, the maximum size of one record"
    assert run.stdout.startswith(wanted)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "LINE_BYTES", 1 << 20)
    monkeypatch.setattr(line_index, "LINE_BYTES", 1 << 20)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("ending", ["", *(f".{ending}" for ending in _PACKERS)])
@pytest.mark.parametrize("shuffled", [False, True])
def test_lines_up_to_the_limit_are_read_and_longer_ones_named(
    tmp_path: Path, ending: str, *, shuffled: bool
) -> None:
    pack = _PACKERS.get(ending[1:], bytes)
    path = tmp_path / f"lines.jsonl{ending}"

    def read(longest: int) -> list[int]:
        rows = [b'{"n":%d}\n' % n for n in range(3)]
        rows.insert(2, b'{"a":"%s"}\n' % (b"x" * (longest - 9)))
        assert len(rows[2]) == longest
        path.write_bytes(pack(b"".join(rows)))
        stream = read_jsonl(path)
        items = stream.shuffle(0) if shuffled else stream
        return sorted(len(item.get("a", "")) for item in items)

    assert read(1 << 20) == [0, 0, 0, (1 << 20) - 9]
    with pytest.raises(InputError, match=r"lines\.jsonl.*, line 3: is longer than"):
        read((1 << 20) + 1)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_too_long_line_of_text_is_an_error_after_the_lines_before_it(
    tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("one\ntwo\n" + "x" * (2 << 20) + "\nlast\n", encoding=encoding)
    stream = iter(read_text(path, encoding=encoding).and_return())
    assert [next(stream), next(stream)] == ["one", "two"]
    with pytest.raises(InputError, match=r"lines\.txt, line 3: is longer than"):
        next(stream)


@pytest.mark.usefixtures("short")
def test_a_row_of_many_lines_is_as_long_as_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n" + '"two\nlines",' * 200_000 + '"and\none"\n')
    stream = iter(read_delimited(path).and_return())
    assert next(stream) == {"a": "1", "b": "2"}
    with pytest.raises(InputError, match=r"rows\.csv, line 3: is longer than"):
        next(stream)

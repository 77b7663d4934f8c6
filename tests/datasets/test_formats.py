import bz2
import gzip
import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import JsonlDataset
from dagster_dataops.errors import InputError

RECORDS = [{"id": n, "text": "a, b", "in": {"x": {}}} for n in range(3)]
LINES = b"".join(json.dumps(record).encode() + b"\n" for record in RECORDS)


@pytest.mark.parametrize(
    ("content", "kind", "advice"),
    [
        (b'id,text\n1,"a, b"\n2,"c\nd"\n3,e\n', "CSV", "read_delimited(path)"),
        (b"id;text\n1;a, b\n", "CSV", "delimiter=';'"),
        (b"id\ttext\n1\ta, b\n", "TSV", "read_delimited(path, delimiter='\\t')"),
        (json.dumps(RECORDS).encode(), "a JSON array", "json.load()"),
        (json.dumps(RECORDS, indent=1).encode(), "a JSON array", "json.load()"),
        (b'[\n{"a":1},\n{"a":2}\n]\n', "a JSON array", "json.load()"),
        (b'[{"a":1},\n{"a":2}]\n', "a JSON array", "json.load()"),
        (json.dumps(RECORDS[0], indent=1).encode(), "JSON of several lines", "on one line"),
        (b'{"a":1},\n{"a":2},\n', "JSON of several lines", "on one line"),
        (b"[1,2]\n[3,4]\n", "JSON values that are not objects", "as an object"),
        (b"<html>\n<body/>\n</html>\n", "XML or HTML", "read_files(path)"),
        (b"once upon a time\nthere was a file\n", "text", "read_text(path"),
        (b"PAR1\x15\x04\x15", "a Parquet file", "read_parquet(path)"),
        (b"ARROW1\x00\x00\xff", "an Arrow file", "read_arrow(path)"),
        (b"WARC/1.0\r\nWARC-Type: response\r\n", "a WARC file", "read_warc(path)"),
        (gzip.compress(LINES, mtime=0), "a gzip file", ".gz"),
        (bz2.compress(LINES), "a bzip2 file", ".bz2"),
        (lzma.compress(LINES), "an xz file", ".xz"),
        (b"PK\x03\x04\x14\x00", "a zip archive", "unpack it"),
        (LINES.decode().encode("utf-16-le"), "text in UTF-16", "UTF-8"),
        (b"\xef\xbb\xbfid,text\n1,a\n", "CSV", "read_delimited(path)"),
    ],
)
def test_a_file_of_another_format_is_refused_with_the_name_of_its_reader(
    tmp_path: Path, content: bytes, kind: str, advice: str
) -> None:
    path = tmp_path / "input"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        JsonlDataset.of_file(path)
    assert str(path) in str(caught.value)
    assert f"looks like {kind}" in str(caught.value) or kind in str(caught.value)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n  \n",
        LINES,
        b"\xef\xbb\xbf" + LINES,
        LINES.replace(b"\n", b"\r\n"),
        b"no JSON\n" * 99 + LINES,
        b"[broken\n" + LINES,
        b'[broken\n{"a":1}\n',
        b"[1, 2]\n" + LINES,
        b'{"a":NaN}\n' * 200,
        b'{"a":1}{"b":2}\n' * 200,
        b'{"cut off',
        b'{"long":"' + b"x" * 200_000 + b'"}\n',
    ],
)
def test_a_file_with_an_object_on_one_of_its_first_lines_is_taken(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "input"
    path.write_bytes(content)
    JsonlDataset.of_file(path)


@given(st.binary(max_size=300))
def test_any_file_content_is_accepted_or_refused_with_a_reason(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    try:
        JsonlDataset.of_file(path)
    except InputError as error:
        str(error).encode()

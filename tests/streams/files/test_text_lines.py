"""Tests of dagster_dataops.streams.files.text_lines and text: splitting into lines."""

import pytest

from dagster_dataops import errors, read_jsonl, text
from dagster_dataops.text import LineEnding, read_text


@pytest.fixture
def lines(tmp_path):
    def read(content: bytes, **options):
        path = tmp_path / "file.txt"
        path.write_bytes(content)
        return list(read_text(path, **options))

    return read


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        (b"a\tb\n\n  x  \n", {}, ["a\tb", "", "  x  "]),
        (b"a\nb", {}, ["a", "b"]),
        (b"", {}, []),
        (b"\n", {}, [""]),
        (b"  a \n", {"rtrim": True}, ["  a"]),
        (b"  a \n", {"ltrim": True}, ["a "]),
        (b"  a \n", {"ltrim": True, "rtrim": True}, ["a"]),
        (b"a\n\n   \nb\n", {"skip_empty": True, "rtrim": True}, ["a", "", "b"]),
        (b"a\r\nb\r\n", {}, ["a", "b"]),
        (b"a\r\nb\nc\r\n", {}, ["a", "b\nc"]),
        (b"a\nb\r\n", {}, ["a", "b\r"]),
        (b"a\r\nb", {"line_ending": LineEnding.LF}, ["a\r", "b"]),
        (b"a\nb\r\nc", {"line_ending": LineEnding.CRLF}, ["a\nb", "c"]),
        (b"a\n", {"key": "t"}, [{"t": "a"}]),
        (b"\xef\xbb\xbfa\n", {}, ["a"]),
        (b"\xef\xbb\xbfa\n", {"encoding": "utf-8"}, ["a"]),
        (b"\xef\xbb\xbfa\n", {"encoding": "utf-8-sig"}, ["a"]),
        (b"\xe9\n", {"encoding": "latin-1"}, ["é"]),
        ("é\nü\n".encode("utf-16"), {"encoding": "utf-16"}, ["é", "ü"]),
        ("é\r\nü".encode("utf-16-be"), {"encoding": "utf-16-be"}, ["é", "ü"]),
        ("\ufeffé\nü\n".encode("utf-32-be"), {"encoding": "utf-32"}, ["é", "ü"]),
        ("a\u2028b\x0bc\x85d\n".encode(), {}, ["a\u2028b\x0bc\x85d"]),
    ],
)
def test_lines_are_split_correctly(lines, content, options, expected):
    assert lines(content, **options) == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32"])
def test_lines_do_not_depend_on_blocks(lines, encoding):
    expected = [f"{n}:\u0a00\u000a00"[:3] + "é" * (n % 700) for n in range(900)]
    expected = [line.replace("\n", "") for line in expected]
    content = "\r\n".join(expected).encode(encoding)

    assert lines(content, encoding=encoding, block_size=1024) == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_the_byte_order_mark_of_every_encoding_is_removed(lines, encoding):
    assert lines("\ufeffa\nb\n".encode(encoding), encoding=encoding) == ["a", "b"]


def test_a_line_that_is_not_text_is_an_error_after_the_lines_before_it(tmp_path):
    path = tmp_path / "file.txt"
    path.write_bytes(b"a\n\xff\nb\n")
    stream = read_text(path).and_return()
    items = []
    with pytest.raises(errors.StreamSourceError, match=r"file.txt, line 2: is not utf-8") as caught:
        items.extend(stream)

    assert items == ["a"]
    assert isinstance(caught.value, errors.InputError)
    assert isinstance(caught.value.__cause__, UnicodeDecodeError)
    assert list(read_text(path).and_return(on_error="skip")) == ["a", "b"]


def test_a_missing_file_fails_when_it_is_read_not_when_it_is_named(tmp_path):
    stream = read_text(tmp_path / "none").and_return()

    with pytest.raises(errors.DataPipelineError, match="No such file"):
        next(iter(stream))
    assert stream.is_broken


def test_bad_arguments_are_refused_at_once():
    with pytest.raises(errors.StreamDefinitionError, match="unknown encoding"):
        read_text("x", encoding="nothing")
    with pytest.raises(ValueError, match="at least 1024"):
        read_text("x", block_size=100)
    assert text.read_text is read_text


def test_records_are_read_and_blank_lines_are_not(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a":1}\r\n\n  \n{"a":2}')

    assert list(read_jsonl(path)) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("bad", "reason"), [(b'{"a":', "not JSON"), (b"[1]", "a JSON list, not an object")]
)
def test_a_bad_line_is_an_error_after_the_lines_before_it(tmp_path, bad, reason):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":1}\n\n' + bad + b'\n{"a":2}\n')
    stream = read_jsonl(path).and_return()
    iterator = iter(stream)

    assert next(iterator) == {"a": 1}
    with pytest.raises(errors.StreamSourceError, match=f"a.jsonl, line 3: {reason}"):
        next(iterator)
    kept = read_jsonl(path).and_return(on_error="quarantine")
    assert list(kept) == [{"a": 1}, {"a": 2}]
    assert [one["item"] for one in kept.quarantined] == [bad]


def test_line_numbers_count_blocks_before(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a":1}\n' * 1000 + "bad\n" + '{"a":1}\n' * 10)

    with pytest.raises(errors.StreamSourceError, match=r"line 1001:"):
        list(read_jsonl(path, block_size=1024))

"""Tests of dagster_dataops.streams.files.jsonl and listing."""

import pytest

from dagster_dataops import errors, read_jsonl


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

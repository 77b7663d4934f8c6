"""Tests of dagster_dataops.models.replies.reply_store."""

import subprocess
import sys
from pathlib import Path

import pytest

from dagster_dataops.models.replies.reply_store import ReplyStore, request_key

WRITER = """
import sys
from pathlib import Path
from dagster_dataops.models.replies.reply_store import ReplyStore, request_key
store = ReplyStore(Path(sys.argv[1]))
for number in range(300):
    key = request_key({"writer": sys.argv[2], "number": number})
    store.put(key, number, "rule", {"text": sys.argv[2] * 700, "number": number})
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "replies" / "replies.jsonl"


def key_of(number: int) -> str:
    return request_key({"number": number})


def reply_of(store: ReplyStore, number: int, **how: bool) -> object:
    found = store.get(key_of(number), **how)
    return found and found.reply


def test_a_reply_is_found_again_by_another_store(path: Path):
    store = ReplyStore(path)
    other = ReplyStore(path)
    store.put(key_of(1), 40, "rule", {"text": "one\n"}, seconds=1.5)

    assert store.get(key_of(1)) == (0, 40, "rule", 1.5, {"text": "one\n"}, 1.0, None, "")
    assert other.get(key_of(1)) == (0, 40, "rule", 1.5, {"text": "one\n"}, 1.0, None, "")
    assert store.get(key_of(2)) is None


def test_the_key_depends_on_fields_and_sample_and_not_on_the_order_of_fields():
    assert request_key({"a": 1, "b": 2}) == request_key({"b": 2, "a": 1})
    assert request_key({"a": 1}) != request_key({"a": 2})
    assert request_key({"a": 1}) != request_key({"a": 1}, sample=1)


def test_the_last_reply_to_a_request_counts(path: Path):
    store = ReplyStore(path)
    for text in ("first", "second"):
        store.put(key_of(1), 0, "rule", {"text": text})

    assert reply_of(store, 1) == {"text": "second"}
    assert reply_of(ReplyStore(path), 1) == {"text": "second"}


def test_a_store_cut_at_every_byte_keeps_the_replies_before_and_takes_new_ones(path: Path):
    store = ReplyStore(path)
    ends = [0]
    for number in range(3):
        store.put(key_of(number), number, "rule", {"text": f"é{number}\n"})
        ends.append(path.stat().st_size)
    whole = path.read_bytes()

    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        cut = ReplyStore(path)
        for number in range(3):
            kept = length >= ends[number + 1]
            assert (reply_of(cut, number) is not None) == kept, (length, number)
        cut.put(key_of(9), 0, "rule", {"text": "nine"})
        again = ReplyStore(path)
        assert reply_of(cut, 9) == reply_of(again, 9) == {"text": "nine"}
        # Only the line end was cut: the line is whole again.
        for number in range(3):
            assert (reply_of(again, number) is not None) == (length >= ends[number + 1] - 1)
        for one in (cut, again):
            one.close()


def test_processes_write_to_one_store(path: Path):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in "abc"]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    store = ReplyStore(path)

    for name in "abc":
        for number in range(300):
            found = store.get(request_key({"writer": name, "number": number}))
            assert found is not None
            assert found.reply == {"text": name * 700, "number": number}


def test_a_large_reply_is_read_whole(path: Path):
    store = ReplyStore(path)
    store.put(key_of(1), 0, "rule", {"text": "x" * 3_000_000})
    store.put(key_of(2), 0, "rule", {"text": "two"})

    assert reply_of(ReplyStore(path), 1) == {"text": "x" * 3_000_000}
    assert reply_of(ReplyStore(path), 2) == {"text": "two"}


def test_many_replies_are_found(path: Path):
    store = ReplyStore(path)
    for number in range(3000):
        store.put(key_of(number), number, "rule", {"number": number})

    again = ReplyStore(path)
    assert all(reply_of(again, number) == {"number": number} for number in range(3000))
    assert again.get(key_of(3000)) is None


def test_a_rejected_reply_is_returned_only_if_asked_for(path: Path):
    store = ReplyStore(path)
    store.put(key_of(1), 0, "rule", {"text": "bad"})
    store.reject(key_of(1))
    store.reject(key_of(1))
    store.reject(key_of(2))

    assert reply_of(store, 1) == {"text": "bad"}
    assert reply_of(store, 1, rejected=False) is None
    store.put(key_of(1), 0, "rule", {"text": "better"})
    assert reply_of(ReplyStore(path), 1, rejected=False) == {"text": "better"}


def test_replies_before_a_published_result_are_told_from_later_ones(path: Path):
    store = ReplyStore(path)
    store.begin("")
    store.put(key_of(1), 0, "rule", {"text": "one"})
    again = ReplyStore(path)
    again.begin("")
    assert [one.reply["text"] for one in again.since(again.published)] == ["one"]

    third = ReplyStore(path)
    third.begin("run 1")
    third.put(key_of(2), 0, "rule", {"text": "two"})
    fourth = ReplyStore(path)
    fourth.begin("run 1")

    assert [one.reply["text"] for one in fourth.since(fourth.published)] == ["two"]
    assert fourth.published == third.published > 0
    assert reply_of(fourth, 1) == {"text": "one"}


def test_a_store_is_private_to_the_user(path: Path):
    ReplyStore(path)

    assert path.stat().st_mode & 0o077 == 0


def test_lines_of_other_versions_are_named_and_kept(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = ReplyStore(path)
    store.put(key_of(1), 40, "rule", {"text": "one"})
    store.spend(40, "rule", {})
    store.begin("run")
    store.close()
    ReplyStore(path).close()
    assert caplog.text == ""
    odd = b"".join(
        line + b"\n"
        for line in [
            b'{"key":"zz","start":1,"model":"m","reply":{}}',
            b'{"key":"%b","start":1,"reply":{"text":"two"}}' % key_of(2).encode(),
            b'{"spent":"a","model":"m","reply":{}}',
            b'{"version":9,"digest":"a","body":{}}',
        ]
    )
    path.write_bytes(path.read_bytes() + odd)
    again = ReplyStore(path)
    assert (reply_of(again, 1), reply_of(again, 2)) == ({"text": "one"}, None)
    assert "3 lines of no form that this version of the package reads are kept" in caplog.text
    again.put(key_of(2), 41, "rule", {"text": "two"})
    assert reply_of(again, 2) == {"text": "two"}
    assert odd in path.read_bytes()
    assert len(list(again.since(0))) == 3

"""Tests of dagster_dataops.models.calls.reply_body."""

import orjson
import pytest

from dagster_dataops.errors import BadReplyError
from dagster_dataops.models.calls.reply_body import json_object
from tests.each import each

URL = "http://here/v1/chat/completions"


@each(
    "body",
    [
        b'{"a":1}',
        b'\xef\xbb\xbf{"a":1}',
        b'\n\n   \r\n{"a":1}\n',
        b'{"a":1}\r\n\r\n',
        '{"a":1}'.encode("utf-8-sig"),
    ],
)
def test_marks_and_blank_lines_around_json_are_left_out(body: bytes):
    assert json_object(body, URL) == {"a": 1}


def test_numbers_that_json_does_not_have_are_none():
    body = b'{"a": NaN, "b": [Infinity, -Infinity], "c": 1.5, "d": 99999999999999999999, "e": "x"}'
    found = json_object(body, URL)

    assert found["a"] is None
    assert found["b"] == [None, None]
    assert (found["c"], found["e"]) == (1.5, "x")
    orjson.dumps(found)


def test_half_a_character_is_replaced_so_that_the_reply_can_be_stored():
    found = json_object(rb'{"a": "cut \ud83d", "\udc00": 1}', URL)

    assert found == {"a": "cut ?", "?": 1}
    orjson.dumps(found)


@each(
    "case",
    [
        (b"data: {}\n\ndata: [DONE]\n\n", "", "a stream of events"),
        (b'{"a"', "text/event-stream; charset=utf-8", "a stream of events"),
        (b": PROCESSING\n\ndata: {}", "", "a stream of events"),
        (b"<!DOCTYPE html><html>", "", "a page of HTML"),
        (b"<html>x", "", "a page of HTML"),
        (b"Hello", "text/html", "a page of HTML"),
        (b"", "text/html", "no JSON object"),
        (b"", "", "no JSON object"),
        (b"[1]", "", "no JSON object"),
        (b"null", "", "no JSON object"),
        (b'{"a": 1', "", "no JSON object"),
        (b"<?xml version='1.0'?>", "", "no JSON object"),
        (b'{"a": "\xff"}', "", "no JSON object"),
        (b"[" * 100_000, "", "no JSON object"),
    ],
)
def test_anything_else_is_named_and_shown(case: tuple[bytes, str, str]):
    body, kind, named = case

    with pytest.raises(BadReplyError, match=named) as raised:
        json_object(body, URL, kind)
    assert raised.value.never_json == (named != "no JSON object")
    assert len(str(raised.value)) < 400


def test_json_with_the_wrong_type_is_json():
    assert json_object(b'{"a":1}', URL, "text/html") == {"a": 1}

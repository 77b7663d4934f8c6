"""What a server answers: the body of a reply, and errors."""

import time
from email.utils import formatdate

import orjson
import pytest

from dagster_dataops import errors
from dagster_dataops.errors import BadReplyError
from dagster_dataops.models.calls.reply_body import json_object
from dagster_dataops.models.calls.status_errors import error_of, retry_after
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


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
    ],
)
def test_the_pause_that_a_server_asks_for(headers, seconds):
    assert retry_after(headers) == seconds


def test_a_pause_until_a_date():
    found = retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)})

    assert found is not None
    assert 50 < found <= 60


@pytest.mark.parametrize(
    ("status", "body", "kind", "text"),
    [
        (400, b'{"error": {"message": "bad field"}}', errors.BadRequestError, "bad field"),
        (422, b'{"detail": "x"}', errors.BadRequestError, "detail"),
        (400, b'{"error": "as a text"}', errors.BadRequestError, "as a text"),
        (400, b'{"error": {"code": "content_filter"}}', errors.ContentFilteredError, "400"),
        (402, b"pay", errors.QuotaExhaustedError, "pay"),
        (404, b"", errors.ModelMissingError, "404"),
        (429, b'{"error": {"type": "insufficient_quota"}}', errors.QuotaExhaustedError, "429"),
        (429, b"[1", errors.RateLimitedError, "[1"),
        (529, b"overloaded", errors.ServerFaultError, "overloaded"),
        (500, b"\xff", errors.ServerFaultError, "500"),
    ],
)
def test_the_error_of_a_status(status, body, kind, text):
    error = error_of(status, {"retry-after": "2"}, body)

    assert type(error) is kind
    assert text in str(error)
    assert error.retry_after == 2.0
    assert error.overloaded == (status in {429, 529})

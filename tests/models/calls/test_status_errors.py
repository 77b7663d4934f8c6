"""Tests of dagster_dataops.models.calls.status_errors."""

import time
from email.utils import formatdate

import pytest

from dagster_dataops import errors
from dagster_dataops.models.calls.status_errors import error_of, retry_after


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

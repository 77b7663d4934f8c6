"""Tests of dagster_dataops.models.replies.vectors."""

import base64
import math
import struct
from typing import Any

import pytest

from dagster_dataops.errors import BadReplyError, InvalidOutputError
from dagster_dataops.models.replies.vectors import vector_length, vectors_of
from tests.each import each

TWO = {"input": ["a", "b"]}


def packed(*numbers: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


def reply(*vectors: Any, index: bool = True) -> dict[str, Any]:
    numbered = [{"index": at} if index else {} for at in range(len(vectors))]
    return {
        "data": [
            {**one, "embedding": vector} for one, vector in zip(numbered, vectors, strict=True)
        ]
    }


def test_vectors_are_lists_or_base64_of_numbers_with_the_lowest_byte_first():
    assert vectors_of(TWO, reply([1, 0.5], [0, -2.0])) == [[1, 0.5], [0, -2.0]]
    assert vectors_of(TWO, reply(packed(1, 0.5), packed(0, -2))) == [[1, 0.5], [0, -2]]


def test_vectors_are_in_the_order_of_the_index_or_else_of_the_reply():
    swapped = reply([1], [0])
    swapped["data"][0]["index"], swapped["data"][1]["index"] = 1, 0.0

    assert vectors_of(TWO, swapped) == [[0], [1]]
    assert vectors_of(TWO, reply([1], [0], index=False)) == [[1], [0]]


@each(
    "vectors",
    [
        ([1.0, 2.0], [1.0]),
        ([1.0], [math.nan]),
        ([1.0], [math.inf]),
        ([1.0], [None]),
        ([1.0], ["1"]),
        ([1.0], [True]),
        ([1.0], []),
        ([], []),
        ([1.0], None),
        ([[1.0]], [[1.0]]),
        (packed(1), packed(math.nan)),
        (packed(1), "AAA="),
        (packed(1), "no base64"),
        (packed(1), packed(1, 2)),
    ],
)
def test_a_vector_that_is_none_or_has_another_length_is_named(vectors: tuple[Any, Any]):
    with pytest.raises(InvalidOutputError, match=r"vector \d"):
        vectors_of(TWO, reply(*vectors))


@each(
    "found",
    [
        {},
        {"data": None},
        {"data": "x"},
        {"data": [1, 2]},
        reply([1.0]),
        reply([1.0], [2.0], [3.0]),
        {"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [2]}]},
        {"data": [{"index": 1, "embedding": [1]}, {"index": 2, "embedding": [2]}]},
    ],
)
def test_missing_vectors_are_a_bad_reply(found: dict[str, Any]):
    with pytest.raises(BadReplyError, match="not one of all 2"):
        vectors_of(TWO, found)


def test_the_length_of_stored_vectors():
    assert vector_length(reply(packed(1, 2, 3))) == vector_length(reply([1, 2, 3])) == 3
    assert vector_length({"usage": None}) == vector_length({"data": []}) == 0

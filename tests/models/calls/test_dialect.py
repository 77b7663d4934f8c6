"""Tests of dagster_dataops.models.calls.dialect."""

from typing import Any

import pytest

from dagster_dataops.errors import BadRequestError
from dagster_dataops.models.calls.dialect import Dialect


def request(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "Go."}], **fields}


@pytest.mark.parametrize(
    ("said", "given", "adapted"),
    [
        ("status 400: something else", {"max_tokens": 3}, {"max_tokens": 3}),
        (
            "use 'max_completion_tokens' instead",
            {"max_tokens": 3},
            {"max_completion_tokens": 3},
        ),
        ("status 422: body.seed: extra inputs are not permitted", {"seed": 3}, {}),
    ],
)
def test_a_request_is_left_as_it_is_until_the_server_refuses_a_field(
    said: str, given: dict[str, Any], adapted: dict[str, Any]
):
    dialect, sent = Dialect(), request(**given)

    assert dialect.learn(BadRequestError(said)) is (given != adapted)

    assert dialect.adapted(sent) == request(**adapted)
    assert sent == request(**given)
    assert (dialect.adapted(sent) is sent) is (given == adapted)


def test_a_schema_goes_into_the_text():
    dialect = Dialect()
    form = {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}
    given = request(response_format=form)
    parts = request(response_format=form)
    parts["messages"] = [{"role": "user", "content": [{"type": "text", "text": "Go."}]}]

    dialect.learn(BadRequestError("response_format is not supported"))

    adapted = dialect.adapted(given)
    assert adapted["response_format"] == {"type": "json_object"}
    assert adapted["messages"][0]["content"].startswith("Go.\n\nReply with JSON alone")
    assert adapted["messages"][0]["content"].endswith('{"type":"object"}')
    assert [one["type"] for one in dialect.adapted(parts)["messages"][0]["content"]] == ["text"] * 2
    assert given["messages"][0]["content"] == "Go."

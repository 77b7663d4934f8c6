"""Tests of dagster_dataops.models.calls.dialect."""

from typing import Any

from dagster_dataops.errors import BadRequestError
from dagster_dataops.models.calls.dialect import Dialect


def request(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "Go."}], **fields}


def test_a_request_is_left_as_it_is_until_the_server_refuses_it():
    dialect = Dialect()
    given = request(max_tokens=3)

    dialect.learn(BadRequestError("status 400: something else"))

    assert dialect.adapted(given) is given


def test_max_tokens_gets_its_other_name():
    dialect = Dialect()
    given = request(max_tokens=3)

    dialect.learn(BadRequestError("use 'max_completion_tokens' instead"))

    assert dialect.adapted(given) == request(max_completion_tokens=3)
    assert given == request(max_tokens=3)


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


def test_a_seed_is_left_out():
    dialect = Dialect()

    assert dialect.learn(BadRequestError("status 422: body.seed: extra inputs are not permitted"))

    assert dialect.adapted(request(seed=3)) == request()
    assert not dialect.learn(BadRequestError("status 400: something else"))

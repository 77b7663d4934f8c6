"""Tests of dagster_dataops.models.calls.transports."""

import asyncio
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from dagster_dataops import ModelClient
from dagster_dataops.errors import (
    BadReplyError,
    CallTimeoutError,
    DefinitionError,
    MissingExtraError,
    RateLimitedError,
)
from dagster_dataops.models.calls.transports import transport_of

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "Go."}]}


def sent(complete: Any, request: dict[str, Any] = REQUEST, timeout: float = 5.0) -> dict[str, Any]:
    async def send() -> dict[str, Any]:
        transport = transport_of(ModelClient(complete=complete, timeout=timeout))
        try:
            return await transport.send("/chat/completions", request, lambda: None)
        finally:
            await transport.close()

    return asyncio.run(send())


class Dumped:
    """A reply of a client library."""

    def model_dump(self, mode: str) -> dict[str, Any]:
        return {"mode": mode}


def test_replies_of_client_libraries_are_understood():
    assert sent(lambda _: Dumped()) == {"mode": "json"}


def test_a_coroutine_function_of_the_prompt():
    async def answer(prompt: str) -> str:
        return prompt.upper()

    assert sent(answer)["choices"][0]["message"]["content"] == "GO."


def test_a_coroutine_that_takes_too_long():
    async def answer(prompt: str) -> str:
        await asyncio.sleep(60)
        return prompt

    with pytest.raises(CallTimeoutError, match=r"0\.05 s"):
        sent(answer, timeout=0.05)


def test_an_error_with_a_status_has_its_pause():
    def limited(prompt: str) -> str:
        error = RuntimeError("slow down")
        error.status_code = 429  # type: ignore[attr-defined]
        error.response = SimpleNamespace(headers={"retry-after": "7"})  # type: ignore[attr-defined]
        raise error

    with pytest.raises(RateLimitedError, match="slow down") as caught:
        sent(limited)
    assert caught.value.retry_after == 7.0


def test_other_errors_are_the_users():
    with pytest.raises(ZeroDivisionError):
        sent(lambda _: 1 / 0)


def test_anything_but_json_is_a_bad_reply():
    with pytest.raises(BadReplyError, match="int"):
        sent(lambda _: 7)


def test_an_object_that_cannot_make_calls_is_refused():
    with pytest.raises(DefinitionError, match="type int"):
        sent(7)


def test_a_function_of_a_prompt_cannot_embed():
    with pytest.raises(DefinitionError, match="function of a prompt"):
        sent(str.upper, {"model": "m", "input": ["a"]})


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)

    with pytest.raises(MissingExtraError, match=r"dagster-dataops\[llm\]"):
        transport_of(ModelClient())

"""Addresses of servers, and the proxy and certificate that a call to them takes."""

import asyncio
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from dagster_dataops import ModelClient
from dagster_dataops.errors import (
    BadReplyError,
    CallTimeoutError,
    ConfigurationError,
    DefinitionError,
    MissingExtraError,
    RateLimitedError,
)
from dagster_dataops.models.calls.server_address import (
    canonical_address,
    endpoint_address,
    same_server,
)
from dagster_dataops.models.calls.transports import transport_of
from tests.each import each

ADDRESS = "https://api.example.com/v1"


@each(
    "other",
    [
        "https://api.example.com/v1/",
        "https://api.example.com/v1//",
        "HTTPS://API.Example.COM/v1",
        "https://api.example.com:443/v1",
        "https://api.example.com./v1",
        " https://api.example.com/v1 ",
        "https://user:secret@api.example.com/v1",
        "https://api.example.com/v1#top",
        "https://api.example.com/v1?api_key=secret&key=secret&sig=secret&access_token=x",
    ],
)
def test_equal_addresses_are_equal_texts_without_secrets(other: str):
    assert canonical_address(other) == ADDRESS


@each(
    "other",
    [
        "http://api.example.com/v1",
        "https://api.example.com/v2",
        "https://api.example.com/V1",
        "https://api.example.com:8443/v1",
        "https://api.example.org/v1",
        "https://api.example.com",
        "https://api.example.com/v1?api-version=2024-10-21",
    ],
)
def test_other_addresses_are_other_texts(other: str):
    assert canonical_address(other) != ADDRESS


def test_the_fields_of_a_query_are_sorted_and_names_of_hosts_are_in_ascii():
    assert canonical_address("http://a/?b=1&a=2") == canonical_address("http://A:80?a=2&b=1")
    assert canonical_address("http://bücher.example/v1") == "http://xn--bcher-kva.example/v1"
    assert canonical_address("http://[::1]:8000/v1/") == "http://[::1]:8000/v1"


def test_the_path_of_an_endpoint_comes_before_the_query():
    azure = "https://x.openai.azure.com/openai/deployments/d/?api-version=1"

    assert endpoint_address(azure, "/chat/completions") == (
        "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1"
    )
    assert endpoint_address(ADDRESS, "/batches?limit=2") == f"{ADDRESS}/batches?limit=2"
    assert endpoint_address(azure, "/batches?limit=2").endswith("d/batches?api-version=1&limit=2")
    assert ModelClient(base_url=f"{ADDRESS}/").url("/embeddings") == f"{ADDRESS}/embeddings"


@each(
    "case",
    [
        ("http://a/x", "http://a/y", True),
        ("http://a/x", "https://a/x", True),
        ("https://a:443/x", "https://A/x", True),
        ("https://a/x", "http://a/x", False),
        ("http://a:8000/x", "https://a:8000/x", False),
        ("http://a/x", "http://b/x", False),
        ("http://a/x", "http://a:81/x", False),
        ("http://a/x", "http://a.evil.com/x", False),
    ],
)
def test_credentials_stay_with_their_server(case: tuple[str, str, bool]):
    one, other, same = case

    assert same_server(one, other) is same


@each("address", ["localhost:8000/v1", "", "ftp://x/v1", "http://a:port/v1", "/v1", "https:/a"])
def test_what_is_no_address_is_named(address: str):
    with pytest.raises(ConfigurationError, match="base_url"):
        _ = ModelClient(base_url=address or "x").server


def test_a_client_names_its_server(monkeypatch):
    monkeypatch.setenv("DATAOPS_LLM_BASE_URL", "http://Here/v1/")

    assert ModelClient().server.name == "http://here/v1"
    assert ModelClient(base_url=ADDRESS, api_key="k").server.name == ADDRESS
    assert ModelClient(base_url=ADDRESS, deployment="gpt").server.name == "deployment gpt"
    assert ModelClient(complete=str.upper).server.name == "object str.upper"
    assert "secret" not in str(ModelClient(base_url="http://u:secret@a/v1?key=secret").server)


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


def test_replies_of_client_libraries_and_of_coroutines_are_understood():
    async def answer(prompt: str) -> str:
        return prompt.upper()

    assert sent(lambda _: Dumped()) == {"mode": "json"}
    assert sent(answer)["choices"][0]["message"]["content"] == "GO."


@pytest.mark.parametrize(
    ("complete", "request_", "error", "said"),
    [
        (lambda _: 1 / 0, REQUEST, ZeroDivisionError, "division"),  # other errors are the user's
        (lambda _: 7, REQUEST, BadReplyError, "int"),
        (7, REQUEST, DefinitionError, "type int"),
        (str.upper, {"model": "m", "input": ["a"]}, DefinitionError, "function of a prompt"),
    ],
)
def test_what_cannot_make_a_call_is_refused(
    complete: Any, request_: Any, error: type[Exception], said: str
):
    with pytest.raises(error, match=said):
        sent(complete, request_)


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


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)

    with pytest.raises(MissingExtraError, match=r"dagster-dataops\[llm\]"):
        transport_of(ModelClient())

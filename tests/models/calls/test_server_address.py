"""Tests of dagster_dataops.models.calls.server_address."""

import pytest

from dagster_dataops import ModelClient
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.models.calls.server_address import (
    canonical_address,
    endpoint_address,
    same_server,
)
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

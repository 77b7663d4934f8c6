"""Tests of the shapes in which options hold secrets, and of options that hold none."""

import base64
import enum
import functools
import json
import os
import time
import urllib.parse
from collections import OrderedDict
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import dagster as dg
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops.operators.secrets.secret_names import is_secret
from dagster_dataops.operators.secrets.secret_options import redacted, secrets_of, shown
from dagster_dataops.operators.secrets.secret_texts import HIDDEN, Secrets, without_logins
from tests.each import each
from tests.examples import at_most

_KEY = "SECRETVAL-1234567890"


class Pair(NamedTuple):
    user: str
    password: str


@dataclass
class Inner:
    api_key: str


@dataclass
class Outer:
    inner: Inner


@dataclass(slots=True)
class Slotted:
    token: str


class Plain:
    __slots__ = ("password",)

    def __init__(self) -> None:
        self.password = _KEY

    def __repr__(self) -> str:
        return f"Plain({self.password!r})"


class Model(pydantic.BaseModel):
    api_key: str
    other: pydantic.SecretStr


class Name(enum.Enum):
    PASSWORD = "p"  # noqa: S105 - a name


_VARIABLES = [
    "PGPASSWORD",
    "SSHPASS",
    "MYSQL_PWD",
    "REDISCLI_AUTH",
    "DBPASSWORD",
    "HTTPPASSWORD",
    "APIKEY",
    "userpassword",
    "authtoken",
    "accesskey",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "OPENAI_API_KEY",
    "SECRETKEY",
    "clientsecret",
    "DB_PASS",
    "dbpass",
    "mysqlpass",
    "privatekey",
    "bearertoken",
    "githubtoken",
    "dbPwd",
    "password2",
    "API_KEY_2",
    "ConsumerSecret",
    "hfToken",
    "sessiontoken",
    "refreshtoken",
    "SNOWFLAKE_PRIVATE_KEY_PASSPHRASE",
    "PGPASS",
    "DATABASE_URL",
    "redisurl",
]
SHAPES: list[Any] = [
    Pair("u", _KEY),
    {"x": [Pair("u", _KEY)]},
    Outer(Inner(_KEY)),
    Slotted(_KEY),
    Plain(),
    Model(api_key=_KEY, other=_KEY),
    SimpleNamespace(db_password=_KEY),
    *(OrderedDict({name: _KEY}) for name in _VARIABLES),
    *(f"{name}={_KEY}" for name in _VARIABLES),
    [f"export OPENAI_API_KEY='{_KEY}'"],
    ["--password", _KEY],
    ("psql", "--token", _KEY, "-v"),
    [f"--password={_KEY}"],
    f"prog --password {_KEY} x",
    f"prog --api-key={_KEY}",
    {("db", "password"): _KEY},
    {b"password": _KEY},
    {Name.PASSWORD: _KEY},
    json.dumps({"api_key": _KEY, "x": 1}),
    json.dumps({"a": json.dumps({"api_key": _KEY})}),
    json.dumps({"api_key": _KEY}, indent=1),
    f"Server=h;Password={_KEY};Database=d",
    f"Server=h;Pwd={_KEY}",
    f"host=h password={_KEY} port=1",
    f"DefaultEndpointsProtocol=https;AccountKey={_KEY}==;EndpointSuffix=x",
    f"-----BEGIN RSA PRIVATE KEY-----\n{_KEY}\n-----END RSA PRIVATE KEY-----",
    f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc{_KEY}",
    f"https://u:{_KEY}@h/x",
    f"postgresql+psycopg://u:{_KEY}@h/x",
    f"redis://:{_KEY}@h",
    urllib.parse.urlparse(f"https://u:{_KEY}@h/x"),
    urllib.parse.urlsplit(f"https://u:{_KEY}@h/x"),
    f"https://h/x?access_token={_KEY}&b=1",
    f"https://h/x?sig={_KEY}",
    [f"Authorization: Bearer {_KEY}", "Accept: text/plain"],
    [f"X-Api-Key: {_KEY}"],
    f"Authorization: token {_KEY}",
    f"Cookie: a=b; sid={_KEY}",
    f"Set-Cookie: sid={_KEY}; Path=/",
    f"Proxy-Authorization: Basic {_KEY}",
    f"curl -H 'Authorization: Bearer {_KEY}' https://h",
    [("x-api-key", _KEY)],
    [["x-api-key", _KEY], ["a", "b"]],
    (("Authorization", _KEY),),
    [(b"authorization", _KEY.encode())],
    functools.partial(print, api_key=_KEY),
    {f"token={_KEY}"},
    f"password={_KEY}".encode(),
    [pydantic.SecretStr(_KEY)],
    f"user: x\npassword: {_KEY}\n",
    f'password = "{_KEY}"',
    {"credentials": {"user": "u", "x": [_KEY]}},
]


@each("value", SHAPES)
def test_a_secret_is_hidden_whatever_holds_it(value: Any) -> None:
    assert "SECRETVAL" not in shown("option", value)
    assert not isinstance(value, (str, list, dict)) or "SECRETVAL" not in str(
        redacted("option", value)
    )


_VISIBLE = [
    "input_key",
    "output_key",
    "key",
    "max_tokens",
    "num_tokens",
    "tokenizer",
    "keys",
    "tokens_per_chunk",
    "author",
    "token_count",
    "license_key",
    "eos_token",
    "first_pass",
    "url",
    "base_url",
    "text",
    "sort_key",
    "monkey",
    "donkey",
    "keyboard",
    "turkey",
    "passage",
    "compass",
    "bypass",
    "pass_rate",
    "passenger",
    "secretary",
    "tokenize",
    "token_ids",
    "image_token",
    "think_token",
    "hotkey",
    "group_key",
    "join_key",
    "primary_key",
    "foreign_key",
    "key_columns",
    "client",
    "user",
    "users",
    "admin",
    "database",
    "db",
    "redis",
    "connection",
    "proxy",
    "login",
    "host",
    "port",
    "path",
    "authority",
    "cookbook",
    "signature",
    "hash_key",
    "salt_rounds",
    "salt_length",
    "keyword",
    "keywords",
    "model",
    "temperature",
    "prompt",
    "system_prompt",
    "api_base",
    "api_version",
    "account",
    "storage",
    "max_new_tokens",
    "stop_tokens",
    "chunk_tokens",
    "overlap_tokens",
    "window_tokens",
    "separator_token",
    "context_tokens",
]


@each(
    "name",
    [
        *("salt", "hash_salt", "salts", "pepper", "hmac_key", "passphrase", "aesKey", "fernet_key"),
        *("decryption_key", "pseudonymization_key", "symmetric_key", "blinding_key"),
    ],
)
def test_salts_and_keys_of_ciphers_are_hidden(name: str) -> None:
    assert is_secret(name)
    assert shown(name, "value") == "'(hidden)'"


def test_a_salt_may_be_a_number_but_not_a_switch() -> None:
    assert shown("salt", 1234) == "'(hidden)'"
    assert shown("use_salt", True) == "True"


@each("name", _VISIBLE)
def test_ordinary_options_are_visible(name: str) -> None:
    assert not is_secret(name)
    assert shown(name, "value") == "'value'"


@each(
    "value",
    [
        "Summarize: keep key facts. Token budget = 100. Author: Jane",
        {"max_tokens": 5, "key": "text"},
        ["password", "email"],
        ["token", "text"],
        [("text", "body"), ("key", "x")],
        "https://h/x?key=1&page=2#a",
        "/data/key=1/date=2024",
        "Password: {password}",
        "token: {{ env.TOKEN }}",
        "password: $PASSWORD",
        "password=None",
        "max_tokens=512, tokenizer='gpt2'",
        r"(?P<key>\w+)=(?P<value>.*)",
        "someone@example.com",
        "git@github.com:a/b",
        "user: x, tokens: 512",
        {"auth": True, "tokens": 3},
    ],
)
def test_ordinary_values_are_shown_as_they_are(value: Any) -> None:
    assert shown("option", value) == repr(value)
    assert redacted("option", value) is value


def test_a_list_of_two_texts_is_no_pair() -> None:
    lines = ["Authorization: Bearer abcdefgh", "Accept: text/plain"]
    assert redacted("lines", lines) == [f"Authorization: {HIDDEN}", "Accept: text/plain"]


def test_a_named_tuple_stays_one() -> None:
    assert redacted("pair", Pair("u", _KEY)) == Pair("u", HIDDEN)


_ODD = "sk/VERY+SECRET=val&x'é\"-123456"


def _forms(text: str) -> list[str]:
    data = text.encode()
    basic = [base64.b64encode(user + data).decode() for user in (b"", b"u:", b"us:", b"usr:")]
    urls = [urllib.parse.quote(text), urllib.parse.quote(text, safe="")]
    urls += [urllib.parse.quote_plus(text), text.replace("/", "%2f").replace("+", "%2b")]
    escaped = [repr(text)[1:-1], ascii(text)[1:-1], repr(data)[2:-1], json.dumps(text)[1:-1]]
    return [text, *urls, *escaped, *basic, data.hex()]


@each("form", _forms(_ODD))
def test_a_secret_is_found_in_every_form_of_messages(form: str) -> None:
    said = Secrets([_ODD]).hide(f"failed with {form} there")
    assert form[8:-6] not in said
    assert said.startswith("failed with ")
    assert said.endswith(" there")


@settings(max_examples=at_most(100))
@given(st.text(min_size=4, max_size=30), st.text(max_size=10))
def test_no_secret_is_left_in_a_text(secret: str, around: str) -> None:
    stripped = secret.strip()
    hidden = Secrets([secret]).hide_values(f"{around}{secret}{around}{secret!r}")
    if len(stripped) >= 4 and stripped not in HIDDEN:
        assert stripped not in hidden.replace(HIDDEN, "\0").split("\0")


@pytest.mark.parametrize("short", ["", "abc", "  a  "])
def test_texts_of_fewer_than_four_characters_are_not_hidden(short: str) -> None:
    assert not Secrets([short])


def test_parts_of_options_are_found_in_messages() -> None:
    options = {
        "url": "https://user:pa%2Fss-word@h/x",
        "headers": [("x-api-key", "header-value")],
        "argv": ["--token", "flag-value"],
        "key": "text",
    }
    said = "refused pa/ss-word, pa%2Fss-word, header-value, flag-value; key text"
    assert secrets_of(options).hide(said) == (
        f"refused {HIDDEN}, {HIDDEN}, {HIDDEN}, {HIDDEN}; key text"
    )


def test_the_value_of_a_variable_of_the_environment_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("A_KEY", _KEY)
    options = {"api_key": dg.EnvVar("A_KEY")}
    assert secrets_of(options).hide(f"401 {_KEY}: A_KEY") == f"401 {HIDDEN}: A_KEY"
    assert os.environ["A_KEY"] == _KEY


@each(
    "text",
    ["A" * 65_536 + " :", "a:" * 32_768, 'a="' * 20_000, "http://" * 9_000, "?a" * 30_000 + "="],
)
def test_long_texts_take_linear_time(text: str) -> None:
    began = time.perf_counter()
    without_logins(text)
    assert time.perf_counter() - began < 5

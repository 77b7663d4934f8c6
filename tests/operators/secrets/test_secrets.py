"""Tests of secrets: which are hidden, in which forms, which do not count."""

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

from dagster_dataops.operators.secrets.endpoint_credentials import (
    is_endpoint_credential,
    is_inner_credential,
    is_operational_option,
)
from dagster_dataops.operators.secrets.secret_names import is_secret
from dagster_dataops.operators.secrets.secret_options import (
    redacted,
    secrets_of,
    shown,
    without_secrets,
)
from dagster_dataops.operators.secrets.secret_texts import (
    HIDDEN,
    Secrets,
    without_logins,
    without_named,
)
from tests.each import each
from tests.examples import at_most

_KEY = "sk-0123456789"


@dataclass
class Model:
    name: str
    api_key: str


@pytest.mark.parametrize(
    ("name", "value", "seen"),
    [
        ("tokens", 512, 512),
        ("auth", True, True),
        ("api_key", None, None),
        ("password", 1234, HIDDEN),
        ("tokens", ["a"], HIDDEN),
        ("headers", {"Authorization": _KEY, "x": "1"}, {"Authorization": HIDDEN, "x": "1"}),
        ("headers", [("x-api-key", _KEY), ("x", "1")], [("x-api-key", HIDDEN), ("x", "1")]),
        ("many", ({"a": [{"jwt": _KEY}]},), ({"a": [{"jwt": HIDDEN}]},)),
        ("header", f"Bearer {_KEY}", f"Bearer {HIDDEN}"),
        ("source", f"s3://u:{_KEY}@h/x", f"s3://{HIDDEN}@h/x"),
        ("url", f"https://h/x?a=1&api_key={_KEY}", f"https://h/x?a=1&api_key={HIDDEN}"),
        ("url", "https://h/x?key=1#part", "https://h/x?key=1#part"),
        ("text", "mail someone@example.com", "mail someone@example.com"),
        ("login", pydantic.SecretStr(_KEY), HIDDEN),
        ("set", {"a"}, {"a"}),
    ],
)
def test_a_value_is_shown_without_its_secrets(name: str, value: Any, seen: Any) -> None:
    assert redacted(name, value) == seen


def test_the_text_of_an_object_contains_no_secret() -> None:
    assert shown("model", Model("gpt", _KEY)) == f"Model(name='gpt', api_key='{HIDDEN}')"
    assert shown("models", [Model("gpt", _KEY)]) == f"[Model(name='gpt', api_key='{HIDDEN}')]"


def test_a_variable_of_the_environment_is_shown_by_its_name() -> None:
    value = dg.EnvVar("THE_KEY_OF_A_SERVICE")
    assert "THE_KEY" not in shown("api_key", value)
    assert isinstance(shown("model", value), str)


def test_secrets_of_options_are_removed_anywhere_in_a_text() -> None:
    options = {"model": {"api_key": _KEY, "name": "gpt"}}
    assert without_secrets(f"gpt refused {_KEY!r}", options) == f"gpt refused '{HIDDEN}'"


def test_objects_that_contain_themselves_are_supported() -> None:
    loop: dict[str, Any] = {"api_key": _KEY}
    loop["self"] = [loop]
    assert _KEY not in shown("loop", loop)


def test_an_excerpt_of_yaml_loses_the_values_of_secret_keys() -> None:
    text = (
        f'  2 | options: {{api_key: {_KEY}, "jwt": "{_KEY}", max_tokens: 5}}\n'
        f"  3 | password: {_KEY}\n  4 | key: text\n  5 | token: '{{{{ env.KEY }}}}'\n"
    )
    seen = without_named(text)
    assert _KEY not in seen
    assert "max_tokens: 5" in seen
    assert "key: text" in seen


_SHAPED_KEY = "SECRETVAL-1234567890"


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
        self.password = _SHAPED_KEY

    def __repr__(self) -> str:
        return f"Plain({self.password!r})"


class Served(pydantic.BaseModel):
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
    Pair("u", _SHAPED_KEY),
    {"x": [Pair("u", _SHAPED_KEY)]},
    Outer(Inner(_SHAPED_KEY)),
    Slotted(_SHAPED_KEY),
    Plain(),
    Served(api_key=_SHAPED_KEY, other=_SHAPED_KEY),
    SimpleNamespace(db_password=_SHAPED_KEY),
    *(OrderedDict({name: _SHAPED_KEY}) for name in _VARIABLES),
    *(f"{name}={_SHAPED_KEY}" for name in _VARIABLES),
    [f"export OPENAI_API_KEY='{_SHAPED_KEY}'"],
    ["--password", _SHAPED_KEY],
    ("psql", "--token", _SHAPED_KEY, "-v"),
    [f"--password={_SHAPED_KEY}"],
    f"prog --password {_SHAPED_KEY} x",
    f"prog --api-key={_SHAPED_KEY}",
    {("db", "password"): _SHAPED_KEY},
    {b"password": _SHAPED_KEY},
    {Name.PASSWORD: _SHAPED_KEY},
    json.dumps({"api_key": _SHAPED_KEY, "x": 1}),
    json.dumps({"a": json.dumps({"api_key": _SHAPED_KEY})}),
    json.dumps({"api_key": _SHAPED_KEY}, indent=1),
    f"Server=h;Password={_SHAPED_KEY};Database=d",
    f"Server=h;Pwd={_SHAPED_KEY}",
    f"host=h password={_SHAPED_KEY} port=1",
    f"DefaultEndpointsProtocol=https;AccountKey={_SHAPED_KEY}==;EndpointSuffix=x",
    f"-----BEGIN RSA PRIVATE KEY-----\n{_SHAPED_KEY}\n-----END RSA PRIVATE KEY-----",
    f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc{_SHAPED_KEY}",
    f"https://u:{_SHAPED_KEY}@h/x",
    f"postgresql+psycopg://u:{_SHAPED_KEY}@h/x",
    f"redis://:{_SHAPED_KEY}@h",
    urllib.parse.urlparse(f"https://u:{_SHAPED_KEY}@h/x"),
    urllib.parse.urlsplit(f"https://u:{_SHAPED_KEY}@h/x"),
    f"https://h/x?access_token={_SHAPED_KEY}&b=1",
    f"https://h/x?sig={_SHAPED_KEY}",
    [f"Authorization: Bearer {_SHAPED_KEY}", "Accept: text/plain"],
    [f"X-Api-Key: {_SHAPED_KEY}"],
    f"Authorization: token {_SHAPED_KEY}",
    f"Cookie: a=b; sid={_SHAPED_KEY}",
    f"Set-Cookie: sid={_SHAPED_KEY}; Path=/",
    f"Proxy-Authorization: Basic {_SHAPED_KEY}",
    f"curl -H 'Authorization: Bearer {_SHAPED_KEY}' https://h",
    [("x-api-key", _SHAPED_KEY)],
    [["x-api-key", _SHAPED_KEY], ["a", "b"]],
    (("Authorization", _SHAPED_KEY),),
    [(b"authorization", _SHAPED_KEY.encode())],
    functools.partial(print, api_key=_SHAPED_KEY),
    {f"token={_SHAPED_KEY}"},
    f"password={_SHAPED_KEY}".encode(),
    [pydantic.SecretStr(_SHAPED_KEY)],
    f"user: x\npassword: {_SHAPED_KEY}\n",
    f'password = "{_SHAPED_KEY}"',
    {"credentials": {"user": "u", "x": [_SHAPED_KEY]}},
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
    assert redacted("pair", Pair("u", _SHAPED_KEY)) == Pair("u", HIDDEN)


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
    monkeypatch.setenv("A_KEY", _SHAPED_KEY)
    options = {"api_key": dg.EnvVar("A_KEY")}
    assert secrets_of(options).hide(f"401 {_SHAPED_KEY}: A_KEY") == f"401 {HIDDEN}: A_KEY"
    assert os.environ["A_KEY"] == _SHAPED_KEY


@each(
    "text",
    ["A" * 65_536 + " :", "a:" * 32_768, 'a="' * 20_000, "http://" * 9_000, "?a" * 30_000 + "="],
)
def test_long_texts_take_linear_time(text: str) -> None:
    began = time.perf_counter()
    without_logins(text)
    assert time.perf_counter() - began < 5


@each(
    "name",
    [
        *("api_key", "apiKey", "API_KEY", "api_keys", "apikey", "X-Api-Key", "deepseek_api_key"),
        *("access_key", "aws_access_key_id", "aws_secret_access_key", "access_token", "auth_token"),
        *("Authorization", "Proxy-Authorization", "http_auth", "basic_auth", "bearer_token"),
        *("hf_token", "hfToken", "HUGGINGFACE_TOKEN", "github_token", "openai_key", "azure_key"),
        *("client_secret", "refresh_token", "session_token", "sas_token", "jwt", "credentials"),
        *("subscription_key", "Ocp-Apim-Subscription-Key", "google_credentials", "api_token"),
    ],
)
def test_a_name_of_a_credential_of_an_endpoint_is_known(name: str) -> None:
    assert is_endpoint_credential(name)


@each(
    "name",
    [
        *("", "_", "key", "keys", "token", "eos_token", "license_key", "mask_password", "cookie"),
        *("password", "passwords", "passphrase", "pwd", "zip_password", "user_password", "secret"),
        *("encryption_key", "signing_key", "private_key", "hmac_key", "secret_key", "cipher_key"),
        *("master_key", "kms_key", "aes_key", "ssh_key", "public_key", "key_id", "salt", "pepper"),
        *("seed", "nonce", "iv", "api_key_salt", "api_key_column", "signing_secret", "hash_key"),
        *("jwt_secret", "webhook_secret", "tokens", "max_tokens", "author", "apikeyboard"),
    ],
)
def test_other_names_count(name: str) -> None:
    assert not is_endpoint_credential(name)
    assert not is_operational_option(name, "a")


def test_one_word_alone_is_no_credential_inside_an_option() -> None:
    assert not any(map(is_inner_credential, ["credentials", "jwt", "password", "token"]))
    assert all(map(is_inner_credential, ["api_key", "Authorization", "x-api-key", "hf_token"]))


def test_limits_and_credentials_are_operational_but_no_switches_and_numbers() -> None:
    assert is_operational_option("request_timeout_seconds", 3)
    assert is_operational_option("api_key", None)
    assert not is_operational_option("api_key", True)
    assert not is_operational_option("api_key", 3)
    assert not is_operational_option("session_timeout", 3)

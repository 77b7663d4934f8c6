"""Tests of secret_options: values without secrets."""

from dataclasses import dataclass
from typing import Any

import dagster as dg
import pydantic
import pytest

from dagster_dataops.operators.secrets.secret_options import (
    redacted,
    shown,
    without_secrets,
)
from dagster_dataops.operators.secrets.secret_texts import HIDDEN, without_named

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

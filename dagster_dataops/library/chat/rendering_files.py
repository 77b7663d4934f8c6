"""The files of a tokenizer that hold its chat templates and the names of its special tokens."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from dagster_dataops.errors import DefinitionError

CONFIG: Final = "tokenizer_config.json"
_TEMPLATE: Final = "chat_template.jinja"
_FURTHER: Final = "additional_chat_templates"


class TemplateFiles(NamedTuple):
    """What the files of a tokenizer tell about its chats.

    Attributes:
        templates: Jinja texts by name; ``default`` is the usual one.
        special_tokens: Texts of special tokens by name, such as ``bos_token``.
    """

    templates: dict[str, str]
    special_tokens: dict[str, str]


def template_files(path: Path) -> TemplateFiles:
    """Read the chat templates at a path.

    Args:
        path: A Jinja file, a ``tokenizer_config.json``, or the folder of a tokenizer. In a folder,
            ``chat_template.jinja`` and ``additional_chat_templates`` go before the templates of
            ``tokenizer_config.json``, as in transformers.
    """
    if path.is_dir():
        config = _config(path / CONFIG) if (path / CONFIG).is_file() else {}
        templates = _of_folder(path) or _of_config(path, config)
        tokens = special_tokens_of(config) | _tokens_of_map(path, config)
    elif path.suffix == ".json":
        config = _config(path)
        templates, tokens = _of_config(path, config), special_tokens_of(config)
    else:
        templates, tokens = {"default": _text(path)}, {}
    if not templates:
        msg = f"{path} has no chat template; give a {_TEMPLATE}, or the Jinja text"
        raise DefinitionError(msg)
    return TemplateFiles(templates, tokens)


def special_tokens_of(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the special tokens of a tokenizer's config by name.

    They are the values of the keys that end with ``_token``, and of ``extra_special_tokens``.
    """
    named = {name: value for name, value in config.items() if name.endswith("_token")}
    further = config.get("extra_special_tokens")
    texts = token_texts(named | (further if isinstance(further, dict) else {}))
    return {name: text for name, text in texts.items() if isinstance(text, str)}


def token_texts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return texts by name of values that are texts, or dicts with the text ``content``."""
    return {
        name: value.get("content") if isinstance(value, dict) else value
        for name, value in values.items()
    }


def _tokens_of_map(folder: Path, config: Mapping[str, Any]) -> dict[str, str]:
    """Return the special tokens of the file that older tokenizers have besides their config."""
    path = folder / "special_tokens_map.json"
    if "added_tokens_decoder" in config or not path.is_file():
        return {}
    return special_tokens_of(_config(path))


def _of_folder(folder: Path) -> dict[str, str]:
    """Return the templates that are files of their own."""
    further = sorted((folder / _FURTHER).glob("*.jinja"))
    templates = {path.stem: _text(path) for path in further}
    if (folder / _TEMPLATE).is_file():
        templates["default"] = _text(folder / _TEMPLATE)
    return templates


def _of_config(path: Path, config: Mapping[str, Any]) -> dict[str, str]:
    """Return the templates in a config: a text, or a list of dicts with name and template."""
    value = config.get("chat_template")
    if value is None:
        return {}
    if isinstance(value, str):
        return {"default": value}
    try:
        templates = {entry["name"]: entry["template"] for entry in value}
    except (TypeError, KeyError):
        templates = {"": None}
    if any(not isinstance(part, str) for pair in templates.items() for part in pair):
        msg = f"{path}: chat_template is neither a text nor a list of texts with names"
        raise DefinitionError(msg)
    return templates


def _config(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_text(path))
    except ValueError as error:
        msg = f"{path} holds no JSON: {error}"
        raise DefinitionError(msg) from None
    if not isinstance(value, dict):
        msg = f"{path} holds a {type(value).__name__}, no JSON object"
        raise DefinitionError(msg)
    return value


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path} cannot be read as a text: {error}"
        raise DefinitionError(msg) from None

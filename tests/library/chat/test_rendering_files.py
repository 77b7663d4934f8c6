import json
from pathlib import Path

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError

END = {"eos_token": "<e>"}
BOS = {"bos_token": "<s>"}
RECORD = {"messages": [{"role": "user", "content": "Hi"}]}
TOOLS = [{"type": "function", "function": {"name": "a"}}]


def rendered(path: Path, record=RECORD, **options) -> str:
    return data.chat.Render(f"@{path}", **options).forward(dict(record))["text"]


def config(folder: Path, **values: object) -> Path:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(values), "utf-8")
    return path


def test_a_jinja_file(tmp_path: Path) -> None:
    path = tmp_path / "chat_template.jinja"
    path.write_bytes("{{ messages[0].content }}é\r\nb\n".encode())

    assert rendered(path) == "Hié\nb"


def test_the_special_tokens_are_those_of_the_config(tmp_path: Path) -> None:
    template = "{{ bos_token }}|{{ eos_token }}|{{ pad_token is defined }}|{{ image_token }}"
    tokens = {
        **BOS,
        "eos_token": {"content": "</s>", "special": True},
        "pad_token": None,
        "add_bos_token": True,
        "extra_special_tokens": {"image_token": "<image>"},
    }
    path = config(tmp_path, chat_template=template, **tokens)

    assert rendered(path) == rendered(tmp_path) == "<s>|</s>|False|<image>"
    assert rendered(path, **END) == "<s>|<e>|False|<image>"
    assert rendered(path, special_tokens={"pad_token": "<p>"}) == "<s>|</s>|True|<image>"
    assert rendered(path, template_kwargs={"bos_token": "B"}) == "B|</s>|False|<image>"


def test_a_file_of_its_own_goes_before_the_config(tmp_path: Path) -> None:
    config(tmp_path, chat_template="config", **BOS)
    (tmp_path / "chat_template.jinja").write_text("file {{ bos_token }}")

    assert rendered(tmp_path) == "file <s>"


def test_the_map_of_older_tokenizers_goes_before_their_config(tmp_path: Path) -> None:
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"bos_token": "<m>"}))
    template = "{{ bos_token }}"

    config(tmp_path, chat_template=template, **BOS)
    assert rendered(tmp_path) == "<m>"
    config(tmp_path, chat_template=template, added_tokens_decoder={}, **BOS)
    assert rendered(tmp_path) == "<s>"


@pytest.mark.parametrize("as_files", [True, False])
def test_one_of_several_templates(tmp_path: Path, as_files: bool) -> None:
    texts = {"default": "plain{{ '' }}", "tool_use": "tools{{ '' }}", "rag": "rag{{ '' }}"}
    listed = [{"name": name, "template": text} for name, text in texts.items()]
    config(tmp_path, chat_template=None if as_files else listed)
    if as_files:
        (tmp_path / "additional_chat_templates").mkdir()
        (tmp_path / "chat_template.jinja").write_text(texts.pop("default"))
        for name, text in texts.items():
            (tmp_path / f"additional_chat_templates/{name}.jinja").write_text(text)

    assert rendered(tmp_path) == "plain"
    assert rendered(tmp_path, {**RECORD, "tools": TOOLS}) == "tools"
    assert rendered(tmp_path, {**RECORD, "tools": []}) == "tools"
    assert rendered(tmp_path, template_name="rag") == "rag"
    with pytest.raises(DefinitionError, match="'default'"):
        rendered(tmp_path, template_name="other")
    assert data.chat.Render({"default": "a{{ 1 }}"}).forward(dict(RECORD))["text"] == "a1"
    with pytest.raises(DefinitionError, match="no template is the default"):
        data.chat.Render({"rag": "a"})


def test_the_text_counts_for_the_identity_and_not_the_path(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jinja").write_text("{{ messages[0].content }}")
    (tmp_path / "c.jinja").write_text("{{ messages[0].content }}!")
    a, b, c = (
        data.chat.Render(f"@{tmp_path}/{name}.jinja").__dataops__.options_digest for name in "abc"
    )

    assert a == b != c


def test_malformed_files_are_refused(tmp_path: Path) -> None:
    for path, found in ((tmp_path / "no.jinja", "cannot be read"), (tmp_path, "no chat template")):
        with pytest.raises(DefinitionError, match=found):
            rendered(path)
    for value in ([{"name": "a"}], 7):
        with pytest.raises(DefinitionError, match="neither a text nor a list"):
            rendered(config(tmp_path, chat_template=value))
    for text, found in (("{", "no JSON"), ("[]", "no JSON object")):
        (tmp_path / "tokenizer_config.json").write_text(text)
        with pytest.raises(DefinitionError, match=found):
            rendered(tmp_path)

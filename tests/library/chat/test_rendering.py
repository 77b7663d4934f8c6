import pickle

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, UnfitRecordError
from tests.library.adversarial import HOSTILE, SCRIPTS

MARKS = {"bos_token": "<s>", "eos_token": "</s>"}
RECORD = {
    "messages": [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": " Hi "},
        {"role": "assistant", "content": "Ho"},
    ]
}


def rendered(record=RECORD, **options) -> str:
    return data.chat.Render(**options).forward(dict(record))["text"]


def test_chatml() -> None:
    expected = (
        "<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n"
        "<|im_start|>assistant\nHo<|im_end|>\n"
    )
    assert rendered() == expected
    assert rendered(**MARKS, add_generation_prompt=True) == (
        f"<s>{expected}<|im_start|>assistant\n</s>"
    )


def test_llama_3() -> None:
    head = "<|start_header_id|>{}<|end_header_id|>\n\n"
    assert rendered(template="llama-3", add_generation_prompt=True) == (
        f"<|begin_of_text|>{head.format('system')}Be short.<|eot_id|>{head.format('user')}Hi"
        f"<|eot_id|>{head.format('assistant')}Ho<|eot_id|>{head.format('assistant')}"
    )
    assert rendered(template="llama-3", bos_token="").startswith("<|start")


def test_alpaca() -> None:
    record = {"instruction": "Add.", "input": "1 2", "output": "3"}
    assert rendered(record, template="alpaca") == (
        "Below is an instruction that describes a task, paired with an input that provides further "
        "context. Write a response that appropriately completes the request.\n\n"
        "### Instruction:\nAdd.\n\n### Input:\n1 2\n\n### Response:\n3"
    )
    assert rendered(template="alpaca", **MARKS) == (
        "<s>Be short.\n\n### Instruction:\n Hi \n\n### Response:\nHo</s>"
    )
    turns = {"instruction": "c", "history": [["a", "b"]]}
    assert rendered(turns, template="alpaca").endswith(
        "request.\n\n### Instruction:\na\n\n### Response:\nb\n\n### Instruction:\nc\n\n"
        "### Response:\n"
    )


def test_a_jinja_template() -> None:
    template = """
    {%- for message in messages %}
    {% if loop.first %}{{ bos_token }}{% continue %}{% endif %}
    [{{ message.role }}] {{ message['content'] | trim }}
    {% endfor %}
    {{- record.id | tojson }} {{ add_generation_prompt }}
    """
    assert rendered({**RECORD, "id": "<é>"}, template=template, **MARKS) == (
        '<s>    [user] Hi\n    [assistant] Ho\n"<é>" False\n    '
    )


def test_a_jinja_template_is_sandboxed_and_strict() -> None:
    for template, found in (
        ("{{ missing }}", "undefined"),
        ("{{ raise_exception('no tools') }}", "no tools"),
        ("{{ messages.__class__.__mro__ }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{% for a in range(10000000) %}{% endfor %}", "big"),
        ("{{ 1 / 0 }}", "division"),
    ):
        with pytest.raises(UnfitRecordError, match=found):
            rendered(template=template)
    with pytest.raises(DefinitionError, match="line 1"):
        data.chat.Render("{% if %}")
    with pytest.raises(DefinitionError, match="chatml"):
        data.chat.Render("chatlm")


def test_an_operator_with_a_template_runs_in_processes() -> None:
    operator = data.chat.Render("{{ messages | length }}", _max_workers=2)
    assert [record["text"] for record in operator([RECORD] * 3)] == ["3"] * 3
    render = pickle.loads(pickle.dumps(operator._render))
    assert render({"messages": []}, {"bos_token": None}) == "0"


def test_the_conversation_stays() -> None:
    assert data.chat.Render().forward(dict(RECORD))["messages"] == RECORD["messages"]
    for text in (*HOSTILE.values(), *SCRIPTS):
        for template in ("chatml", "llama-3", "alpaca", "{{ messages[0].content }}"):
            assert text.strip() in rendered({"prompt": text, "completion": ""}, template=template)


CALL = {"id": "c", "type": "function", "function": {"name": "tide", "arguments": {}}}
UNSHOWN = [
    ({"tool_calls": [CALL]}, r"messages\[1\] has tool_calls"),
    ({"content": "b", "reasoning_content": "r"}, r"messages\[1\] has reasoning_content"),
    (
        {"content": [{"type": "image", "url": "u"}]},
        r"messages\[1\] has a content of parts \(image\)",
    ),
]


@pytest.mark.parametrize("template", ["chatml", "llama-3", "alpaca"])
@pytest.mark.parametrize(("answer", "expected"), UNSHOWN)
def test_what_a_template_of_texts_cannot_show_is_an_error(template, answer, expected) -> None:
    record = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", **answer}]}
    with pytest.raises(UnfitRecordError, match=f"{expected}, which the template {template}"):
        rendered(record, template=template)


@pytest.mark.parametrize("template", ["chatml", "llama-3", "alpaca"])
def test_tools_are_shown_by_no_template_of_texts(template) -> None:
    with pytest.raises(UnfitRecordError, match="has tools, which the template"):
        rendered({**RECORD, "tools": [{"name": "f"}]}, template=template)
    assert rendered({**RECORD, "tools": []}, template=template)

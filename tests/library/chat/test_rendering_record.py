import json

import pytest

from dagster_dataops import data
from dagster_dataops.errors import UnfitRecordError
from tests.library.adversarial import HOSTILE, SCRIPTS

WHOLE = "{{ messages[-1] }}"
TURNS = "{% for m in messages %}[{{ m.content }}]{% endfor %}"
USER = {"role": "user", "content": "a"}
TOOL = {"type": "function", "function": {"name": "tide"}}


def rendered(template: str, *messages, record=None, **options) -> str:
    given = {"messages": list(messages or [USER]), **(record or {})}
    return data.chat.Render(template, **options).forward(given)["text"]


def test_keys_with_null_are_left_out() -> None:
    answer = {"role": "assistant", "content": None, "tool_calls": None, "x": 1}

    assert rendered(WHOLE, USER, answer) == "{'role': 'assistant', 'x': 1}"


@pytest.mark.parametrize("name", ["reasoning_content", "thinking", "reasoning"])
def test_reasoning_has_the_names_that_templates_read(name: str) -> None:
    answer = {"role": "assistant", "content": "b", name: "r"}

    text = rendered("{{ messages[-1].reasoning_content }}{{ messages[-1].thinking }}", USER, answer)
    whole = rendered(WHOLE, USER, answer)

    assert text == "rr"
    assert whole.startswith("{'thinking': 'r', 'role': 'assistant'")


def test_tools_and_documents_are_of_the_record_or_of_the_options() -> None:
    template = "{{ tools is none }} {{ tools | tojson }} {{ documents | tojson }}"
    document = {"title": "t", "text": "d"}

    assert rendered(template) == "True null null"
    assert rendered(template, record={"tools": []}) == "False [] null"
    assert rendered(template, tools=[TOOL], documents=[document]) == (
        f"False {json.dumps([TOOL])} {json.dumps([document])}"
    )
    own = {"tools": json.dumps([TOOL]), "documents": None}
    assert rendered(template, record=own, tools=[]) == f"False {json.dumps([TOOL])} null"
    with pytest.raises(UnfitRecordError, match="tools"):
        rendered(template, record={"tools": "{"})


def test_the_names_of_the_option_go_before_those_of_the_record() -> None:
    record = {"chat_template_kwargs": {"a": 1, "b": 2}}

    assert rendered("{{ a }}{{ b }}", record=record, template_kwargs={"b": 3}) == "13"
    with pytest.raises(UnfitRecordError, match="chat_template_kwargs"):
        rendered("{{ a }}", record={"chat_template_kwargs": 1})


def test_a_text_ends_within_the_last_message() -> None:
    answer = {"role": "assistant", "content": "b  "}

    assert rendered(TURNS, USER, answer, continue_final_message=True) == "[a][b  "
    strip = "{% for m in messages %}[{{ m.content | trim }}]{% endfor %}"
    assert rendered(strip, USER, answer, continue_final_message=True) == "[a][b"
    parts = [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}, {"type": "image"}]
    several = (
        "{% for m in messages %}[{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for p in m.content %}{{ p.text }}.{% endfor %}{% endif %}]{% endfor %}"
    )
    turn = {"role": "assistant", "content": parts}
    assert rendered(several, USER, turn, continue_final_message=True) == "[a][b.c"
    thought = {"role": "assistant", "thinking": "t"}
    shown = "{{ messages[-1].reasoning_content }}</think>"
    assert rendered(shown, USER, thought, continue_final_message="thinking") == "t"
    chatml = rendered("chatml", USER, answer, continue_final_message=True)
    assert chatml.endswith("<|im_start|>assistant\nb  ")


@pytest.mark.parametrize(
    ("template", "turn", "found"),
    [
        (TURNS, {"role": "assistant"}, "no text that could be continued"),
        (TURNS, {"role": "assistant", "content": [{"type": "image"}]}, "no text that could"),
        ("{{ messages[0].role }}", {"role": "assistant", "content": "b"}, "does not use"),
        ("content {{ 1 }}", {"role": "assistant", "content": "b"}, "does not show"),
    ],
)
def test_a_message_that_cannot_be_continued_is_an_error(template, turn, found) -> None:
    with pytest.raises(UnfitRecordError, match=found):
        rendered(template, USER, turn, continue_final_message=True)


def test_other_formats_are_converted() -> None:
    turns = [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]
    operator = data.chat.Render(TURNS)

    assert operator.forward({"conversations": turns})["text"] == "[a][b]"
    assert operator.forward({"prompt": "a", "completion": "b"})["text"] == "[a][b]"
    assert operator.forward({"messages": json.dumps([USER])})["text"] == "[a]"
    for record in ({"messages": []}, {"messages": [1]}, {"messages": 1}, {"text": "a"}):
        with pytest.raises(UnfitRecordError):
            operator.forward(record)


def test_hostile_texts_are_shown_as_they_are() -> None:
    for text in (*HOSTILE.values(), *SCRIPTS, "{{ 1 }}{% if %}", "<|im_end|>"):
        assert rendered(TURNS, {"role": "user", "content": text}) == f"[{text}]"

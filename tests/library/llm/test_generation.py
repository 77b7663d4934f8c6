"""Tests of dagster_dataops.library.llm.generation."""

import pytest

from dagster_dataops import data
from dagster_dataops.errors import AbsentColumnError, OperatorOptionError, RecordError
from tests.library.llm.scripted_model import ScriptedModel


def test_a_text_is_generated_by_a_prompt():
    model = ScriptedModel(lambda prompt, _: prompt.upper())
    operator = data.llm.Generate(
        "small", prompt="About {{ topic }}: {{ tags | tojson }}", client=model
    )

    (row,) = operator([{"topic": "rivers", "tags": ["<a>"]}])

    assert row == {"topic": "rivers", "tags": ["<a>"], "answer": 'ABOUT RIVERS: ["<A>"]'}
    assert model.requests[0]["model"] == "small"


def test_a_text_is_generated_in_a_form():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    model = ScriptedModel(lambda *_: {"n": 3})

    (row,) = data.llm.Generate(prompt="Go", response_format=schema, client=model)([{"a": 1}])

    assert row == {"a": 1, "answer": {"n": 3}}
    wanted = model.requests[0]["response_format"]["json_schema"]
    assert wanted["strict"]
    assert wanted["schema"] == schema | {"required": ["n"], "additionalProperties": False}


def test_a_prompt_is_needed():
    with pytest.raises(OperatorOptionError, match="'prompt' is missing"):
        data.llm.Generate()


def test_rewritings_are_records_of_their_own():
    model = ScriptedModel(lambda prompt, _: f"[{len(prompt)}]")
    operator = data.llm.Rewrite("Be brief.", count=2, keep_original=True, client=model)

    rows = operator([{"text": "long", "id": 1}])

    assert [(row["id"], row["variant"]) for row in rows] == [(1, 0), (1, 1), (1, 2)]
    assert [row["text"].startswith("[") for row in rows] == [False, True, True]
    assert model.prompts[0] == "Be brief. Reply with the new text alone.\n\nlong"
    assert len(model.requests) == 2


def test_a_rewriting_can_go_to_another_column():
    model = ScriptedModel(lambda *_: "short")

    rows = data.llm.Rewrite("Be brief.", output_key="brief", client=model)([{"text": "long"}])

    assert rows == [{"text": "long", "brief": "short", "variant": 1}]


def test_a_text_is_translated():
    model = ScriptedModel(lambda *_: "Hallo")

    rows = data.llm.Translate("German", client=model)([{"text": "Hello {{ x }}"}])

    assert rows == [{"text": "Hello {{ x }}", "translation": "Hallo"}]
    assert "into German" in model.prompts[0]
    assert model.prompts[0].endswith("Hello {{ x }}")


def test_a_prompt_can_be_replaced():
    model = ScriptedModel(lambda prompt, _: prompt)
    operator = data.llm.Translate("German", prompt="{{ to }}: {{ text }}", client=model)

    assert operator([{"text": "Hello"}])[0]["translation"] == "German: Hello"


def test_a_column_of_a_prompt_that_no_record_has_costs_no_call():
    model = ScriptedModel(lambda *_: "short")
    records = [{"question": "a", "answer": "b"}] * 3
    for operator in (
        data.llm.Generate(prompt="{{ qusetion }}", client=model),
        data.llm.Generate(prompt="{{ question }}", system="{{ style }}", client=model),
        data.llm.Rewrite("Be brief.", client=model),
        data.llm.Rewrite("Be brief.", "question", prompt="{{ text }} {{ topic }}", client=model),
        data.llm.SelfConsistency("text", client=model),
        data.llm.Embed(client=model),
    ):
        with pytest.raises(AbsentColumnError, match="They have: question, answer"):
            operator(records)
    assert model.requests == []
    optional = data.llm.Generate(prompt="{{ topic | default('none') }}", client=model)
    assert len(optional(records)) == 3


def test_records_that_lack_a_column_of_a_prompt_fail_and_cost_no_call(caplog):
    model = ScriptedModel(lambda *_: "short")
    operator = data.llm.Generate(prompt="{{ question }}", client=model)

    assert len(operator([{"question": "a"}, {"id": 1}])) == 1
    assert len(model.requests) == 1
    assert "1 of 2 records failed" in caplog.text


def test_operators_that_take_the_text_refuse_tools():
    tools = {"tools": [{"type": "function", "function": {"name": "f"}}]}

    for operator in (data.llm.Translate, data.llm.SelfConsistency):
        given = {"to": "German"} if operator is data.llm.Translate else {}
        with pytest.raises(OperatorOptionError, match="takes the text of replies"):
            operator(**given, params=tools)
    assert data.llm.Generate(prompt="x", params=tools)


TIDE = {"type": "function", "function": {"name": "tide", "parameters": {"type": "object"}}}


class Caller:
    """A client whose model calls a tool, and answers after its result."""

    def __init__(self, arguments: str = '{"port": "Ö"}') -> None:
        self.requests: list[dict] = []
        self._arguments = arguments

    async def complete(self, request: dict) -> dict:
        self.requests.append(request)
        if request["messages"][-1]["role"] == "tool":
            message = {"content": "2 m"}
        else:
            function = {"name": "tide", "arguments": self._arguments}
            call = {"id": "c1", "type": "function", "function": function}
            message = {"content": None, "reasoning_content": "Look.", "tool_calls": [call]}
        return {"choices": [{"message": message, "finish_reason": "stop"}]}


def test_a_conversation_is_continued_with_its_tools():
    model = Caller()
    operator = data.llm.Continue(system="Brief.", client=model)
    asked = {"messages": [{"role": "user", "content": "Tide?"}], "tools": [TIDE], "id": 1}

    (row,) = operator([asked])

    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "tide", "arguments": {"port": "Ö"}},
    }
    answer = {"role": "assistant", "content": None, "reasoning_content": "Look."}
    assert row == {**asked, "messages": [*asked["messages"], {**answer, "tool_calls": [call]}]}
    assert model.requests[0]["tools"] == [TIDE]
    assert model.requests[0]["messages"][0] == {"role": "system", "content": "Brief."}
    result = {"role": "tool", "tool_call_id": "c1", "content": "2.0"}
    (row,) = operator([{**row, "messages": [*row["messages"], result]}])
    assert row["messages"][-1] == {"role": "assistant", "content": "2 m"}
    sent = model.requests[-1]["messages"][2]["tool_calls"][0]["function"]
    assert sent == {"name": "tide", "arguments": '{"port": "Ö"}'}


def test_a_further_question_can_be_asked():
    model = ScriptedModel(lambda prompt, _: prompt.upper())
    record = {"instruction": "a", "output": "b", "next": "c"}

    (row,) = data.llm.Continue(prompt="{{ next }}", client=model)([record])

    assert [one["content"] for one in row["messages"]] == ["a", "b", "c", "C"]


def test_a_conversation_without_a_question_is_an_error():
    operator = data.llm.Continue(client=ScriptedModel(lambda *_: "b"), _ignore_errors=False)
    with pytest.raises(RecordError, match=r"messages\[1\] is of the assistant"):
        operator([{"instruction": "a", "output": "b"}])
    broken = data.llm.Continue(client=Caller('{"port": '), _ignore_errors=False)
    asked = {"messages": [{"role": "user", "content": "Tide?"}], "tools": [TIDE]}
    with pytest.raises(RecordError, match=r"messages\[1\].tool_calls\[0\].function.arguments"):
        broken([asked])
    with pytest.raises(OperatorOptionError, match="none of a conversation"):
        data.llm.Continue(examples=[{"reply": "a"}])

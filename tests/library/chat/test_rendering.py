import json
import pickle

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, UnfitRecordError
from tests.execution.helpers import node, run, write_input
from tests.library.adversarial import HOSTILE, SCRIPTS
from tests.nodes import ResumePolicy

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
            rendered(template=template, undefined="strict")
    assert rendered(template="a{{ missing }}") == "a"
    with pytest.raises(DefinitionError, match="line 1"):
        data.chat.Render("{% if %}")
    with pytest.raises(DefinitionError, match="chatml"):
        data.chat.Render("chatlm")


def test_an_operator_with_a_template_runs_in_processes() -> None:
    operator = data.chat.Render("{{ messages | length }}", _max_workers=2)
    assert [record["text"] for record in operator([RECORD] * 3)] == ["3"] * 3
    assert pickle.loads(pickle.dumps(operator)).forward(dict(RECORD))["text"] == "3"


def test_the_conversation_stays() -> None:
    assert data.chat.Render().forward(dict(RECORD))["messages"] == RECORD["messages"]
    for text in (*HOSTILE.values(), *SCRIPTS):
        for template in ("chatml", "llama-3", "alpaca", "{{ messages[0].content }}"):
            assert text.strip() in rendered({"prompt": text, "completion": ""}, template=template)


CALL = {"id": "c1", "type": "function", "function": {"name": "tide", "arguments": {"port": "X"}}}
CALLING = {
    "messages": [
        {"role": "user", "content": "Tide?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "2.5", "tool_call_id": "c1"},
        {"role": "assistant", "content": "2.5 metres."},
    ]
}
LOSSY = "{% for m in messages %}{{ m.content }};{% endfor %}"
SHOWING = (
    "{% for m in messages %}{{ m.content }};{% for call in m.tool_calls or [] %}"
    "{{ call.function.name }}{{ call.function.arguments SHOWN }};{% endfor %}{% endfor %}"
)


@pytest.mark.parametrize("template", ["chatml", "llama-3", "alpaca"])
def test_a_template_of_texts_refuses_what_it_cannot_show(template: str) -> None:
    user, called = CALLING["messages"][:2]
    answer = {"role": "assistant", "content": "a"}
    parts = {"role": "user", "content": [{"type": "image", "url": "a.png"}]}
    for record, found in (
        ({"messages": [user, called]}, r"messages\[1\] has tool_calls"),
        ({"messages": [parts, answer]}, r"messages\[0\] has a content of parts"),
        ({"messages": [user, {**answer, "reasoning_content": "b"}]}, r"\[1\] has reasoning"),
        ({"messages": [user, answer], "tools": [{"function": {"name": "a"}}]}, "has tools"),
        ({"messages": [user, answer], "documents": [{"title": "a"}]}, "has documents"),
    ):
        with pytest.raises(UnfitRecordError, match=f"{found}.* the template {template} cannot"):
            rendered(record, template=template)
    assert rendered({"messages": [user, answer], "tools": []}, template=template)


def test_a_call_that_a_template_leaves_out_is_an_error() -> None:
    with pytest.raises(UnfitRecordError, match=r"does not show messages\[1\]\.tool_calls\[0\]"):
        rendered(CALLING, template=LOSSY)
    assert rendered(CALLING, template=LOSSY, on_loss="drop") == "Tide?;;2.5;2.5 metres.;"
    old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    with pytest.raises(UnfitRecordError, match="function_call"):
        rendered({"messages": [RECORD["messages"][1], old]}, template=LOSSY)


def test_what_a_template_leaves_out_is_counted(tmp_path) -> None:
    template = "{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}"

    dataset = write_input(tmp_path / "input.jsonl", [RECORD] * 3)
    report = run(data.chat.Render(template), dataset, node(tmp_path))

    assert report.manifest.counts == {"lost/content": 3}
    assert rendered(template=template) == " Hi Ho"


@pytest.mark.parametrize(
    ("how", "form"),
    [
        ("| tojson", "object"),
        ("", "text"),  # an object would be written as Python does
    ],
)
def test_arguments_have_the_form_that_the_template_shows(how: str, form: str) -> None:
    template = SHOWING.replace("SHOWN", how)
    texts = CALLING["messages"][1] | {
        "tool_calls": [CALL | {"function": {"name": "tide", "arguments": '{"port": "X"}'}}]
    }
    as_text = {"messages": [CALLING["messages"][0], texts, *CALLING["messages"][2:]]}
    auto = {"template": template, "arguments": "auto"}
    assert data.chat.Render(**auto)._renderer.arguments == {"default": form}
    assert rendered(CALLING, **auto) == rendered(as_text, **auto)
    assert '{"port": "X"}' in rendered(as_text, **auto)
    for record, is_text in ((CALLING, False), (as_text, True)):
        text = rendered(record, template=SHOWING.replace("SHOWN", "is string"), on_loss="drop")
        assert f"tide{is_text};" in text


@pytest.mark.parametrize(
    ("how", "arguments", "form"),
    [(" + ''", {"port": "X"}, "text"), (".items()", '{"port": "X"}', "object")],
)
def test_a_template_that_fails_on_the_form_of_arguments_says_so(how, arguments, form) -> None:
    template = SHOWING.replace(" SHOWN", how)
    call = {"function": {"name": "tide", "arguments": arguments}}
    turn = {"role": "assistant", "content": "", "tool_calls": [call]}
    record = {"messages": [CALLING["messages"][0], turn]}
    found = f"the arguments of calls as {form}: set arguments='auto'"
    with pytest.raises(UnfitRecordError, match=found):
        rendered(record, template=template)
    assert "X" in rendered(record, template=template, arguments="auto")
    plain = {"messages": [CALLING["messages"][0]]}
    with pytest.raises(UnfitRecordError, match="refused the conversation at line 1: no$"):
        rendered(plain, template=template + "{{ raise_exception('no') }}")


@pytest.mark.parametrize("value", ["X", 'a "b" c', "Öé\n", "\\"])
def test_arguments_that_are_encoded_twice_are_shown_and_counted(tmp_path, value: str) -> None:
    arguments = json.dumps({"port": value})
    call = {"id": "c1", "function": {"name": "tide", "arguments": arguments}}
    turn = {"role": "assistant", "content": "", "tool_calls": [call]}
    record = {"messages": [CALLING["messages"][0], turn]}
    template = SHOWING.replace("SHOWN", "| tojson")

    dataset = write_input(tmp_path / "input.jsonl", [record] * 2)
    report = run(data.chat.Render(template), dataset, node(tmp_path))

    assert report.manifest.counts == {"lost/encoded_twice": 2}
    assert json.dumps(arguments, ensure_ascii=False) in next(iter(report.dataset))["text"]
    once = run(data.chat.Render(template, arguments="auto"), dataset, node(tmp_path / "auto"))
    assert not once.manifest.counts


def test_arguments_that_are_no_object_are_an_error() -> None:
    for arguments, found in (("{", "no JSON"), ("[1]", "must be an object"), (3, "an object")):
        call = {"function": {"name": "tide", "arguments": arguments}}
        turn = {"role": "assistant", "content": "", "tool_calls": [call]}
        record = {"messages": [CALLING["messages"][0], turn]}
        with pytest.raises(UnfitRecordError, match=rf"function\.arguments.*{found}"):
            rendered(record, template=SHOWING.replace("SHOWN", "| tojson"), arguments="auto")


def test_options_that_exclude_each_other() -> None:
    with pytest.raises(DefinitionError, match="give one of them"):
        data.chat.Render(continue_final_message=True, add_generation_prompt=True)
    with pytest.raises(DefinitionError, match="now='2026"):
        data.chat.Render("{{ strftime_now('%Y') }}")
    with pytest.raises(DefinitionError, match="date and time"):
        data.chat.Render("{{ strftime_now('%Y') }}", now="noon")
    for template, found in (
        ("{% include 'a' %}", "loads another"),
        ("{% import 'a' as b %}", "loads another"),
        ("{{ messages | random }}", "draws at random"),
        ("{{ lipsum() }}", "draws at random"),
        ("{{ a | no_such_filter }}", "line 1"),
    ):
        with pytest.raises(DefinitionError, match=found):
            data.chat.Render(template)


def test_the_time_is_fixed() -> None:
    template = "{{ strftime_now('%d %B %Y %H') }}"
    assert rendered(template=template, now="2026-01-02T03:04:05") == "02 January 2026 03"


@pytest.mark.parametrize("mode", ["single", "process"])
@pytest.mark.parametrize("encodes", [False, True])
def test_the_time_of_a_run_is_that_of_its_first_attempt(tmp_path, mode: str, encodes: bool) -> None:
    template = (
        "{{ strftime_now('%Y-%m-%d %H:%M:%S.%f%z') }}{% generation %}{{ messages[-1].content }}"
        "{% endgeneration %}{% if fails is defined %}{{ raise_exception('no') }}{% endif %}"
    )
    options = {"now": "run", "on_loss": "drop", "_concurrency_mode": mode}
    if encodes:
        operator = data.tokens.EncodeChat("bytes", template, text_key="text", **options)
    else:
        operator = data.chat.Render(template, **options)
    records = [{**RECORD, "chat_template_kwargs": {"fails": 1} if n % 2 else {}} for n in range(6)]
    assert len(operator.forward(records[0])["text"]) == len("2026-01-02 03:04:05.000000+0000Ho")

    first = run(operator, write_input(tmp_path / "a.jsonl", records), node(tmp_path), run="first")
    folder = node(tmp_path)
    again = run(
        operator, write_input(tmp_path / "a.jsonl", records), folder,
        run="second", resume=ResumePolicy.FAILED_RECORDS,
    )  # fmt: skip
    other = run(operator, write_input(tmp_path / "a.jsonl", records), node(tmp_path, "other"))

    texts = [{one["text"] for one in report.dataset} for report in (first, again, other)]
    assert [len(one) for one in texts] == [1, 1, 1]
    assert texts[0] == texts[1] != texts[2]

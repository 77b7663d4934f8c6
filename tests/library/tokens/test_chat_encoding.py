import pickle
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import Drop, data
from dagster_dataops.errors import DefinitionError, UnfitRecordError
from dagster_dataops.library.analysis.tokenizers.tokenization import tokenizer
from dagster_dataops.library.analysis.unicode_normalization import valid_text
from dagster_dataops.library.chat import tagged_templates
from tests.execution.helpers import node, run, write_input
from tests.library.adversarial import HOSTILE, SCRIPTS

USER, ANSWER = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hö"}
AGAIN, LAST = {"role": "user", "content": "So?"}, {"role": "assistant", "content": "No."}
CHAT = [USER, ANSWER, AGAIN, LAST]
SPECIAL = {"<|im_start|>": 256, "<|im_end|>": 257}
# Templates without a tag: one whose beginnings are those of the whole, and some that are not so.
PLAIN = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
DROPS_REASONING = (
    "{% for m in messages %}<{{ m.role }}>{% if loop.last and m.role == 'assistant' %}"
    "<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
OPENS_REASONING = PLAIN.replace("<assistant>{% endif", "<assistant><think>{% endif")
ENDS = PLAIN.replace("{% endif %}", "{% else %}{{ eos_token }}{% endif %}")
TAGGED = (
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}"
    "{{ m.reasoning_content or '' }}{{ m.content }}</>{% endgeneration %}{% else %}"
    "{{ m.content }}</>{% endif %}{% endfor %}"
)


def encoded(messages=CHAT, template="chatml", **options) -> Any:
    operator = data.tokens.EncodeChat("bytes", template, **options)
    written = operator.forward({"messages": messages})
    return written if isinstance(written, Drop) else shown(operator, written)


def shown(operator, written) -> Any:
    """Return the text with the trained parts in brackets, after a check of the two lists."""
    if isinstance(written, list):
        return [shown(operator, one) for one in written]
    pairs = zip(written["input_ids"], written["labels"], strict=True)
    assert all(label in {token, -100} for token, label in pairs)
    return operator.marked_text(written)


def test_the_turns_of_the_assistant_are_trained() -> None:
    assert encoded() == (
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n[[Hö<|im_end|>]]\n"
        "<|im_start|>user\nSo?<|im_end|>\n<|im_start|>assistant\n[[No.<|im_end|>]]\n"
    )
    assert encoded(template="llama-3").endswith("<|end_header_id|>\n\n[[No.<|eot_id|>]]")
    assert encoded(template="alpaca").endswith("### Response:\n[[No.]]")
    expected = "<user>Hi</><assistant>[[Hö</>]]<user>So?</><assistant>[[No.</>]]"
    assert encoded(template=TAGGED) == encoded(template=PLAIN) == expected


def test_the_columns_have_the_names_of_the_options() -> None:
    operator = data.tokens.EncodeChat(
        "bytes", PLAIN, ids_key="a", labels_key="b", text_key="c", spans_key="d"
    )
    written = operator.forward({"messages": [USER, ANSWER], "id": 7})

    text = "<user>Hi</><assistant>Hö</>"
    assert list(written) == ["messages", "id", "a", "b", "c", "d"]
    assert (written["a"], written["c"]) == (list(text.encode()), text)
    assert written["d"] == [[22, 28]]
    assert written["b"] == [-100] * 22 + written["a"][22:]


def test_special_tokens_have_their_ids() -> None:
    operator = data.tokens.EncodeChat("bytes", "chatml", special_ids=SPECIAL)
    written = operator.forward({"messages": [USER, ANSWER]})

    assert written["input_ids"][0] == 256
    assert written["labels"][-2:] == [257, -100]
    assert operator.marked_text(written).endswith("assistant\n[[Hö<|im_end|>]]\n")


def test_a_vocabulary_needs_the_ids_of_special_tokens() -> None:
    pytest.importorskip("bpe_openai", reason="needs the extra tokens")
    ids = {"<|im_start|>": 200264, "<|im_end|>": 200265}
    operator = data.tokens.EncodeChat("o200k_base", "chatml", special_ids=ids)
    written = operator.forward({"messages": [USER, {"role": "assistant", "content": "日本語 é"}]})

    assert written["input_ids"][0] == 200264
    assert operator.marked_text(written).endswith("[[日本語 é<|im_end|>]]\n")
    data.tokens.EncodeChat("o200k_base", PLAIN, special_ids={"<|endoftext|>": 199999})
    with pytest.raises(DefinitionError, match=r"'<\|end\|>': 199999, the id of '<\|endoftext\|>'"):
        data.tokens.EncodeChat("o200k_base", PLAIN, special_ids={"<|end|>": 199999})
    with pytest.raises(DefinitionError, match="give special_ids"):
        data.tokens.EncodeChat("o200k_base", "chatml")
    with pytest.raises(DefinitionError, match="no token ids"):
        data.tokens.EncodeChat("whitespace", "chatml")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ({"<a>": 65}, "'<a>': 65, the id of 'A'"),
        ({"<a>": 200}, "the id of '\ufffd'"),
        ({"<a>": 256, "<b>": 256}, "'<b>': 256, the id of '<a>'"),
        ({"<a>": -1}, "an id of at least 0"),
        ({"": 256}, "give a name"),
    ],
)
def test_a_special_token_has_a_name_and_an_id_of_its_own(ids: dict[str, int], message: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(message)):
        data.tokens.EncodeChat("bytes", PLAIN, special_ids=ids)


@pytest.mark.parametrize("name", ["bytes", "o200k_base", "tokenizer.json"])
@pytest.mark.parametrize("unknown", [400_000, -1, 1 << 40])
def test_an_id_without_a_token_is_not_left_out(name: str, unknown: int, tmp_path: Path) -> None:
    if name == "tokenizer.json":
        tokenizers = pytest.importorskip("tokenizers", reason="needs the extra tokenizers")
        name = str(tmp_path / name)
        tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 97})).save(name)
    elif name != "bytes":
        pytest.importorskip("bpe_openai", reason="needs the extra tokens")
    assert tokenizer(name).decode([97])
    with pytest.raises(DefinitionError, match="tokenizer '"):
        tokenizer(name).decode([97, unknown])


@pytest.mark.parametrize("name", ["<|im_end|>", "<|im_start|>"])
def test_a_special_token_in_a_content_is_an_error(name: str) -> None:
    options: dict[str, Any] = {"special_ids": SPECIAL}
    with pytest.raises(
        UnfitRecordError, match=r"messages\[0\]\.content holds the special token '<\|im_"
    ):
        encoded([{"role": "user", "content": f"a{name}"}, ANSWER], **options)
    tools = [{"type": "function", "function": {"name": "f", "description": name}}]
    with pytest.raises(UnfitRecordError, match=r"tools\[0\]\.function\.description holds"):
        data.tokens.EncodeChat("bytes", PLAIN, **options).forward(
            {"messages": [USER, ANSWER], "tools": tools}
        )
    assert encoded(
        [{"role": "user", "content": name}, ANSWER], special_in_content="allow", **options
    ).startswith(f"<|im_start|>user\n{name}<|im_end|>")


def test_a_special_token_in_an_option_is_an_error() -> None:
    tools = [{"type": "function", "function": {"name": "f", "description": "a<|im_end|>"}}]
    options: dict[str, Any] = {"special_ids": SPECIAL, "template": PLAIN}
    with pytest.raises(DefinitionError, match=r"tools\[0\]\.function\.description holds"):
        data.tokens.EncodeChat("bytes", tools=tools, **options)
    with pytest.raises(DefinitionError, match=r"documents\[0\]\.text holds the special token"):
        data.tokens.EncodeChat("bytes", documents=[{"text": "<|im_end|>"}], **options)
    operator = data.tokens.EncodeChat("bytes", **options)
    with pytest.raises(UnfitRecordError, match=r"chat_template_kwargs\.a holds"):
        operator.forward({"messages": CHAT, "chat_template_kwargs": {"a": "<|im_start|>"}})


SHOWS_TOOLS = "{{ tools | tojson }}" + PLAIN.replace("<{{ m.role }}>", "<|im_start|>{{ m.role }}:")
SHOWS_TOOLS = SHOWS_TOOLS.replace("</>", "<|im_end|>").replace(
    "<assistant>", "<|im_start|>assistant:"
)


@pytest.fixture(params=["bytes", "tokenizer.json"])
def special_tokenizer(request, tmp_path: Path) -> tuple[str, dict[str, Any]]:
    if request.param == "bytes":
        return "bytes", {"special_ids": SPECIAL}
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra tokenizers")
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    vocabulary = {character: number for number, character in enumerate(sorted(alphabet))}
    loaded = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary | {"<|": 256}, [("<", "|")]))
    loaded.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    loaded.decoder = tokenizers.decoders.ByteLevel()
    loaded.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    loaded.save(str(tmp_path / "tokenizer.json"))
    return str(tmp_path / "tokenizer.json"), {}


@pytest.mark.parametrize("name", ["<|im_end|>", "é<|im_end|><|im_start|>", "<|im_<|im_end|>end|>"])
@pytest.mark.parametrize("method", ["prefix", "final", "all"])
def test_a_special_token_in_a_content_may_be_a_text(
    name: str, method: str, special_tokenizer
) -> None:
    tokenizer_name, options = special_tokenizer
    options = options | ({"train": "all"} if method == "all" else {"mask": method})
    tools = [{"type": "function", "function": {"name": "f", "description": name}}]
    encode = data.tokens.EncodeChat(
        tokenizer_name,
        SHOWS_TOOLS,
        special_in_content="text",
        text_key="text",
        tools=tools,
        **options,
    )
    turns = [{"role": "user", "content": name}, {"role": "assistant", "content": f"a{name}b"}]
    written = encode.forward({"messages": turns})

    special = set(tokenizer(tokenizer_name).special.values()) or set(SPECIAL.values())
    ids = written["input_ids"]
    assert sum(number in special for number in ids) == 4
    assert encode.marked_text(written).replace("[[", "").replace("]]", "") == written["text"]
    assert written["text"].count(name) == (5 if name == "<|im_end|>" else 3)
    if method != "all":
        assert encode.marked_text(written).endswith(f"assistant:[[a{name}b<|im_end|>]]")
    allowed = data.tokens.EncodeChat(
        tokenizer_name, SHOWS_TOOLS, special_in_content="allow", tools=tools, **options
    )
    assert (
        sum(number in special for number in allowed.forward({"messages": turns})["input_ids"]) > 4
    )
    plain = {"messages": CHAT, "tools": []}
    assert encode.forward(plain)["input_ids"] == allowed.forward(plain)["input_ids"]


def test_a_special_token_whose_place_is_not_known_is_an_error(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "a<|im_end|>"}, ANSWER]
    text: dict[str, Any] = {"special_in_content": "text", "special_ids": SPECIAL}
    template = PLAIN.replace("m.content }}", "m.content | replace('<|im_end|>', '<|im_end|>!') }}")
    with pytest.raises(UnfitRecordError, match="changes contents with special tokens"):
        encoded(turns, template, **text)
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra tokenizers")
    words = {"<user>a": 0, "\u2581<user>a": 1, "[UNK]": 2}
    loaded = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))  # noqa: S106
    loaded.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="first")
    loaded.add_special_tokens(["<|im_end|>", "</>"])
    loaded.save(str(tmp_path / "tokenizer.json"))
    operator = data.tokens.EncodeChat(
        str(tmp_path / "tokenizer.json"), PLAIN, special_in_content="text"
    )
    with pytest.raises(UnfitRecordError, match="parts of a text otherwise than the whole"):
        operator.forward({"messages": [USER, ANSWER, *turns]})


def test_weights_choose_turns() -> None:
    silent = {**ANSWER, "weight": 0}
    for template in (TAGGED, PLAIN):
        text = encoded([USER, silent, AGAIN, LAST], template)
        assert text == "<user>Hi</><assistant>Hö</><user>So?</><assistant>[[No.</>]]"
        last = encoded([USER, ANSWER, AGAIN, {**LAST, "weight": 0}], template, train="last")
        assert last == "<user>Hi</><assistant>[[Hö</>]]<user>So?</><assistant>No.</>"
    assert encoded(train="all", template=PLAIN).startswith("[[<user>Hi")
    with pytest.raises(UnfitRecordError, match="no token is trained"):
        encoded([USER, silent])
    with pytest.raises(UnfitRecordError, match="no token is trained"):
        encoded([USER])


def test_every_token_is_trained_with_any_template() -> None:
    text = encoded(template=DROPS_REASONING, train="all")
    assert text.startswith("[[<user>Hi")
    assert text.endswith("No.</>]]")
    for option in ("train_reasoning", "train_calls"):
        with pytest.raises(DefinitionError, match="so also reasoning and calls"):
            encoded(template=PLAIN, train="all", **{option: False})


def test_weights_need_turns_that_can_be_told_apart() -> None:
    copies = TAGGED.replace(
        "{% for m in messages %}",
        "{% for n in range(messages | length) %}{% set m = dict(messages[n]) %}",
    )
    doubled = copies.replace(
        "{% endgeneration %}", "{% endgeneration %}.{% generation %}!{% endgeneration %}"
    )
    weighted = [USER, {**ANSWER, "weight": 0}, AGAIN, LAST]

    assert encoded(template=doubled).count("[[") == 4
    assert encoded(weighted, copies).count("[[") == 1
    with pytest.raises(UnfitRecordError, match="which turn of the assistant is which"):
        encoded(weighted, doubled)


def test_reasoning_may_be_left_out() -> None:
    thinking = {"role": "assistant", "content": "b", "reasoning_content": "because"}
    text = encoded([USER, thinking], TAGGED, train_reasoning=False)

    assert text == "<user>Hi</><assistant>because[[b</>]]"
    assert encoded([USER, thinking], TAGGED) == "<user>Hi</><assistant>[[becauseb</>]]"


# Reasoning, content, calls, content again: the last to show that places and not texts count.
SHOWS_ALL = (
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content | trim }}</think>{% endif %}"
    "{{ m.content }}{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>"
    "{% endfor %}</>{% endgeneration %}{% else %}{{ m.content }}</>{% endif %}{% endfor %}"
)
CALL = {"type": "function", "function": {"name": "f", "arguments": {"a": "b"}}}


@pytest.mark.parametrize("key", ["reasoning_content", "thinking", "reasoning"])
@pytest.mark.parametrize(
    ("reasoning", "content", "text"),
    [
        ("b", "b", "[[<think>]]b[[</think>b</>]]"),
        ("ab", "a ab b", "[[<think>]]ab[[</think>a ab b</>]]"),
        ("think", "think", "[[<think>]]think[[</think>think</>]]"),
        ("</think>", "b", "[[<think>]]</think>[[</think>b</>]]"),
        (" \nb\n", "b", "[[<think>]]b[[</think>b</>]]"),
        ("\n", "b", "[[<think></think>b</>]]"),
        ("Hi</><assistant>", "Hi", "[[<think>]]Hi</><assistant>[[</think>Hi</>]]"),
    ],
)
def test_reasoning_is_found_by_its_place(key: str, reasoning: str, content: str, text: str) -> None:
    turn = {"role": "assistant", "content": content, key: reasoning}
    assert encoded([USER, turn, AGAIN, turn], SHOWS_ALL, train_reasoning=False) == (
        f"<user>Hi</><assistant>{text}<user>So?</><assistant>{text}"
    )


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<think>\nr\n</think>\n\na", "[[<think>\n]]r[[\n</think>\n\na</>]]"),
        ("r</think>r", "r[[</think>r</>]]"),
        ("<think>r</think>a</think>b", "[[<think>]]r[[</think>a</think>b</>]]"),
        ("a <think> b", "[[a <think> b</>]]"),
    ],
)
def test_reasoning_in_a_content_is_left_out(content: str, text: str) -> None:
    turn = {"role": "assistant", "content": content}
    assert encoded([USER, turn], SHOWS_ALL, train_reasoning=False).endswith(f"<assistant>{text}")


def test_calls_may_be_left_out() -> None:
    call = '<call>{"name": "f", "arguments": {"a": "b"}}</call>'
    turn = {"role": "assistant", "content": "f", "reasoning_content": "f", "tool_calls": [CALL] * 2}
    silent = {**turn, "content": ""}
    head = "<user>Hi</><assistant>"
    off: dict[str, Any] = {"train_calls": False}

    text = encoded([USER, turn, AGAIN, LAST], SHOWS_ALL, **off)
    last = "<user>So?</><assistant>[[No.</>]]"
    assert text == f"{head}[[<think>f</think>f]]{call}{call}</>{last}"
    text = encoded([USER, silent, AGAIN, LAST], SHOWS_ALL, **off)
    assert text == f"{head}[[<think>f]]</think>{call}{call}</>{last}"
    text = encoded([USER, turn, AGAIN, LAST], SHOWS_ALL, train_reasoning=False, **off)
    assert text == f"{head}[[<think>]]f[[</think>f]]{call}{call}</>{last}"
    before = SHOWS_ALL.replace("{{ m.content }}{% for c", "{% for c")
    before = before.replace("{% endfor %}</>{% end", "{% endfor %}{{ m.content }}</>{% end")
    text = encoded([USER, {**turn, "reasoning_content": ""}], before, **off)
    assert text == f"{head}{call}{call}[[f</>]]"
    with pytest.raises(UnfitRecordError, match="no token is trained"):
        encoded([USER, {**silent, "reasoning_content": ""}], SHOWS_ALL, **off)


@pytest.mark.parametrize(
    "template",
    [
        SHOWS_ALL.replace("{{ m.content }}{% for", "{{ m.content | upper | length }}{% for"),
        SHOWS_ALL.replace("{{ m.content }}{% for", "{{ m.content[:-1] }}{% for"),
        SHOWS_ALL.replace("{{ m.content }}{% for", "{{ m.content[1:] }}{% for"),
    ],
)
def test_a_text_that_the_template_changes_has_no_place(template: str) -> None:
    turn = {"role": "assistant", "content": "abc", "reasoning_content": "r"}
    dropped: dict[str, Any] = {"on_loss": "drop"}
    assert encoded([USER, turn], template, **dropped)
    for option in ("train_reasoning", "train_calls"):
        with pytest.raises(UnfitRecordError, match="their place is not known"):
            encoded([USER, turn], template, **dropped, **{option: False})
    with pytest.raises(UnfitRecordError, match="their place is not known"):
        encoded([USER, {**turn, "content": "a\ufdd5b"}], SHOWS_ALL, train_reasoning=False)


def test_a_template_whose_beginnings_change_is_refused() -> None:
    thinking = [{**one, "reasoning_content": "r"} if one is ANSWER else one for one in CHAT]
    with pytest.raises(DefinitionError, match=r"another text once later turns.*split_turns"):
        encoded(template=DROPS_REASONING)
    with pytest.raises(UnfitRecordError, match=r"messages\[1\] has another text once later turns"):
        encoded(thinking, DROPS_REASONING, mask="prefix")
    with pytest.raises(UnfitRecordError, match=r"messages\[1\]"):  # also of equal texts
        encoded([USER, thinking[1]] * 2, DROPS_REASONING, mask="prefix")
    with pytest.raises(DefinitionError, match=r"has no \{% generation %\}"):
        encoded(template=PLAIN, mask="generation")
    counts = "{{ messages | length }}" + PLAIN
    with pytest.raises(DefinitionError, match="another text once later turns follow"):
        encoded(template=counts)


def test_a_template_that_takes_parts_alone_is_probed_with_parts() -> None:
    parts = PLAIN.replace("m.content", "m.content[0]['text'] + ''")
    chat = [{**one, "content": [{"type": "text", "text": one["content"]}]} for one in CHAT]

    assert encoded(chat, parts).endswith("<assistant>[[No.</>]]")
    with pytest.raises(DefinitionError, match="does not tell what the assistant writes"):
        encoded(chat, parts.replace("'text'", "'texts'"))


def test_a_turn_begins_where_it_differs_from_its_prompt() -> None:
    assert encoded(template=OPENS_REASONING).endswith("<assistant>[[No.</>]]")
    ended = encoded(template=ENDS, eos_token="E")  # noqa: S106 - no password
    assert ended == "<user>Hi</><assistant>[[Hö</>]]<user>So?</><assistant>[[No.</>E]]"


def test_a_first_turn_of_the_assistant_has_no_prompt() -> None:
    with pytest.raises(UnfitRecordError, match=r"messages\[0\] is of the assistant"):
        encoded([ANSWER, USER, LAST], PLAIN)
    assert encoded([ANSWER, USER, LAST], TAGGED).startswith("<assistant>[[Hö")


def test_the_last_turn_alone() -> None:
    assert encoded(template=DROPS_REASONING, mask="final").endswith(
        "<assistant>Hö</><user>So?</><assistant>[[<think></think>No.</>]]"
    )
    with pytest.raises(UnfitRecordError, match=r"messages\[2\] is not of the assistant"):
        encoded(CHAT[:3], PLAIN, mask="final")


def test_a_last_turn_that_changes_earlier_ones_is_refused() -> None:
    counts = "{{ messages | length }}" + PLAIN
    for options in ({"mask": "final"}, {"split_turns": True}):
        with pytest.raises(UnfitRecordError, match="changes the text of the turns before it"):
            encoded(template=counts, **options)


def test_a_record_for_each_turn() -> None:
    thinking = [{**one, "reasoning_content": "r"} if one is ANSWER else one for one in CHAT]
    assert encoded(thinking, DROPS_REASONING, split_turns=True) == [
        "<user>Hi</><assistant>[[<think>r</think>Hö</>]]",
        "<user>Hi</><assistant>Hö</><user>So?</><assistant>[[<think></think>No.</>]]",
    ]
    weighted = [USER, {**ANSWER, "weight": 0}, AGAIN, LAST]
    assert len(encoded(weighted, PLAIN, split_turns=True)) == 1
    with pytest.raises(DefinitionError, match="not 'final'"):
        encoded(template=PLAIN, split_turns=True, mask="prefix")


def test_a_long_record_of_a_turn_is_dropped_alone(tmp_path: Path) -> None:
    options: dict[str, Any] = {"split_turns": True, "max_tokens": 40, "on_overflow": "drop"}
    assert encoded(template=PLAIN, **options) == ["<user>Hi</><assistant>[[Hö</>]]"]
    assert isinstance(encoded(template=PLAIN, **options | {"max_tokens": 5}), Drop)
    dataset = write_input(tmp_path / "input.jsonl", [{"messages": CHAT}, {"messages": CHAT[:2]}])
    operator = data.tokens.EncodeChat("bytes", PLAIN, _concurrency_mode="single", **options)

    counts = run(operator, dataset, node(tmp_path)).manifest.counts

    assert counts == {"tokens": 56, "trained_tokens": 12, "dropped_turns": 1}
    with pytest.raises(DefinitionError, match="would write a turn again"):
        encoded(template=PLAIN, **options | {"on_overflow": "turns"})


def test_markers() -> None:
    marks = {"start_marker": "<assistant>", "end_marker": "</>"}
    text = encoded(template=DROPS_REASONING, mask="markers", **marks)
    assert text.count("[[") == 2
    assert text.endswith("<assistant>[[<think></think>No.</>]]")
    with pytest.raises(UnfitRecordError, match=r"messages\[0\] holds a marker"):
        encoded([{"role": "user", "content": "</>"}, ANSWER], PLAIN, mask="markers", **marks)
    lines = {"start_marker": "assistant\n", "end_marker": "</>"}
    for key, value in (("content", "assistant\nNo."), ("name", "'assistant\n'"), ("</>", 1)):
        chat = [{"role": "user", "content": "a", key: value}, ANSWER]
        with pytest.raises(UnfitRecordError, match=r"messages\[0\] holds a marker"):
            encoded(chat, PLAIN, mask="markers", **lines)
    operator = data.tokens.EncodeChat("bytes", PLAIN, mask="markers", **lines)
    with pytest.raises(UnfitRecordError, match="tools holds a marker"):
        operator.forward({"messages": CHAT, "tools": [{"function": {"name": "</>"}}]})
    for options in ({"mask": "markers"}, {"mask": "prefix", **marks}):
        with pytest.raises(DefinitionError, match="needs start_marker and end_marker"):
            encoded(template=PLAIN, **options)


def test_long_records() -> None:
    whole = len("<user>Hi</><assistant>H\u00f6</><user>So?</><assistant>No.</>".encode())
    assert encoded(template=PLAIN, max_tokens=whole).endswith("[[No.</>]]")
    with pytest.raises(UnfitRecordError, match=f"has {whole} tokens, more than max_tokens=40"):
        encoded(template=PLAIN, max_tokens=40)
    dropped = encoded(template=PLAIN, max_tokens=40, on_overflow="drop")
    assert dropped.reason == "high_num_token"
    turns = encoded(template=PLAIN, max_tokens=40, on_overflow="turns")
    assert turns == "<user>Hi</><assistant>[[Hö</>]]"
    cut = encoded(template=PLAIN, max_tokens=whole - 4, on_overflow="cut")
    assert cut.endswith("<assistant>[[No]]")
    for how in ("turns", "cut"):
        with pytest.raises(UnfitRecordError):
            encoded(template=PLAIN, max_tokens=5, on_overflow=how)


def test_a_token_that_crosses_a_border_is_trained(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra tokenizers")
    words = {"<user>": 0, "a": 1, "<assistant>": 2, "b": 3, "</>": 4, "</><user>": 5, ">b": 6}
    words |= {"<assistant": 7, "[UNK]": 8, "c": 9}
    model = tokenizers.models.WordPiece(words, unk_token="[UNK]")  # noqa: S106 - no password
    loaded = tokenizers.Tokenizer(model)
    pattern = tokenizers.Regex("<assistant|>b|</><user>|<user>|</>|[a-z]")
    loaded.pre_tokenizer = tokenizers.pre_tokenizers.Split(pattern, "isolated")
    loaded.save(str(tmp_path / "tokenizer.json"))
    chat = [
        {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"}, {"role": "assistant", "content": "b"},
    ]  # fmt: skip
    operator = data.tokens.EncodeChat(str(tmp_path / "tokenizer.json"), PLAIN)
    written = operator.forward({"messages": chat})

    # The tokens ">b" and "</><user>" hold a character of the assistant, and one of others.
    trained = [number for number, label in enumerate(written["labels"]) if label != -100]
    assert [written["input_ids"][number] for number in trained] == [6, 5, 6, 4]
    with pytest.raises(DefinitionError, match="has special tokens of its own"):
        data.tokens.EncodeChat(str(tmp_path / "tokenizer.json"), PLAIN, special_ids={"a": 1})


def test_what_a_template_leaves_out_is_an_error() -> None:
    skips = PLAIN.replace("in messages %}", "in messages if m.role != 'system' %}")
    system = {"role": "system", "content": "Be short."}
    with pytest.raises(UnfitRecordError, match=r"does not show messages\[0\]\.content"):
        encoded([system, *CHAT], skips)
    assert encoded([system, *CHAT], skips, on_loss="drop").startswith("<user>Hi")


def test_rules_of_chat_records_hold() -> None:
    for turn in ({"role": "assistant", "content": None}, {"role": "robot", "content": "a"}):
        with pytest.raises(UnfitRecordError, match=r"messages\[1\]"):
            encoded([USER, turn, AGAIN, LAST], PLAIN)


@pytest.mark.slow
def test_hostile_texts_are_encoded() -> None:
    for text in (*HOSTILE.values(), *SCRIPTS):
        operator = data.tokens.EncodeChat("bytes", "chatml", special_ids=SPECIAL)
        turns = [{"role": "user", "content": text}, {"role": "assistant", "content": f"a{text}b"}]
        written = operator.forward({"messages": turns})
        trained = [label for label in written["labels"] if label != -100]
        assert trained == [*valid_text(f"a{text}b").encode(), 257]


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_all_modes_agree(tmp_path: Path, mode: str) -> None:
    records = [
        {"messages": [USER, {"role": "assistant", "content": "ab" * number}], "id": number}
        for number in range(40)
    ]
    dataset = write_input(tmp_path / "input.jsonl", records)
    operator = data.tokens.EncodeChat(
        "bytes", PLAIN, split_turns=True, _concurrency_mode=mode, _max_workers=2
    )

    report = run(operator, dataset, node(tmp_path))

    again = pickle.loads(pickle.dumps(operator))
    expected = [one for record in records for one in again.forward(record)]
    assert list(report.dataset) == expected
    tokens = sum(len(one["input_ids"]) for one in expected)
    trained = sum(label != -100 for one in expected for label in one["labels"])
    assert report.manifest.counts == {"tokens": tokens, "trained_tokens": trained}


def test_a_known_template_gets_tags(monkeypatch) -> None:
    start = PLAIN.index("{{ m.content }}")
    tag = "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}</>"
    tag += "{% endgeneration %}{% else %}"
    edits = ((start, start, tag), (PLAIN.index("</>") + 3, PLAIN.index("</>") + 3, "{% endif %}"))
    known = {sha256(PLAIN.encode()).hexdigest(): edits}
    with pytest.raises(DefinitionError, match="has no tags for the template 'default'"):
        encoded(template=PLAIN, mask="patched")
    monkeypatch.setattr(tagged_templates, "_EDITS", known)
    for text in (PLAIN, PLAIN + "\n", TAGGED):
        shown = encoded(template=text, mask="patched")
        assert shown == "<user>Hi</><assistant>[[Hö</>]]<user>So?</><assistant>[[No.</>]]"

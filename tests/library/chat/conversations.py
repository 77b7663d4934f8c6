"""Conversations in every format, as hypothesis strategies."""

from typing import Any

from hypothesis import strategies as st

TEXTS = st.text("ab \n:é", max_size=6)
PROMPTS = TEXTS.filter(bool)
OTHERS = st.dictionaries(st.sampled_from(["id", "source"]), st.integers(), max_size=2)


@st.composite
def messages(draw: Any, tools: bool = True) -> list[dict[str, Any]]:
    found = []
    if draw(st.booleans()):
        found.append({"role": "system", "content": draw(PROMPTS)})
    for _ in range(draw(st.integers(1, 3))):
        found.append({"role": "user", "content": draw(TEXTS)})
        found.append({"role": "assistant", "content": draw(TEXTS)})
        if tools and draw(st.booleans()):
            contents = draw(st.lists(TEXTS, min_size=1, max_size=2))
            found += [{"role": "tool", "content": text, "name": "t"} for text in contents]
            found.append({"role": "assistant", "content": draw(TEXTS), "weight": 1})
    return found[:-1] if draw(st.booleans()) and found[-2]["role"] == "user" else found


@st.composite
def sharegpt(draw: Any) -> dict[str, Any]:
    names = {
        "system": ["system"],
        "user": ["human", "user"],
        "assistant": ["gpt", "assistant", "function_call"],
        "tool": ["observation", "tool"],
    }
    turns = [
        {
            "from": draw(st.sampled_from(names[one["role"]])),
            "value": one["content"],
            **{key: value for key, value in one.items() if key not in {"role", "content"}},
        }
        for one in draw(messages())
    ]
    record = {**draw(OTHERS), "conversations": turns}
    if turns[0]["from"] != "system" and draw(st.booleans()):
        record["system"] = draw(TEXTS | st.none())
    return record


@st.composite
def alpaca(draw: Any) -> dict[str, Any]:
    record = {**draw(OTHERS), "instruction": draw(TEXTS)}
    optional = {
        "input": TEXTS | st.none(),
        "output": TEXTS | st.none(),
        "system": TEXTS | st.none(),
        "history": st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=2),
    }
    for key, values in optional.items():
        if draw(st.booleans()):
            record[key] = draw(values)
    return record

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError
from tests.library.adversarial import HOSTILE, SCRIPTS

ALPACA = {"instruction": "a", "output": "b", "id": 1}
SHAREGPT = {
    "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}],
    "id": 1,
}
MESSAGES = {
    "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
    "id": 1,
}


def test_each_format_becomes_each_other() -> None:
    records = [ALPACA, SHAREGPT, MESSAGES]
    assert data.chat.ToMessages()(records) == [MESSAGES] * 3
    assert data.chat.ToShareGPT()(records) == [SHAREGPT] * 3
    assert data.chat.ToAlpaca()(records) == [ALPACA] * 3


def test_the_format_is_detected() -> None:
    found = data.chat.Detect()([ALPACA, SHAREGPT, MESSAGES, {"prompt": "a", "response": "b"}, {}])
    names = [record["format"] for record in found]
    assert names == ["alpaca", "sharegpt", "messages", "prompt_response", None]


def test_a_format_may_be_demanded() -> None:
    assert data.chat.ToMessages("alpaca")([ALPACA, SHAREGPT]) == [MESSAGES]
    with pytest.raises(DefinitionError, match="sharegpt"):
        data.chat.ToMessages("chatml")


def test_no_record_depends_on_another() -> None:
    operator = data.chat.ToMessages()
    first = operator.forward({**ALPACA, "system": "s"})
    assert first["messages"][0]["role"] == "system"
    assert operator.forward(dict(ALPACA)) == MESSAGES


@pytest.mark.parametrize("name", ["ToMessages", "ToShareGPT", "ToAlpaca"])
def test_hostile_texts_stay_as_they_are(name: str) -> None:
    for text in (*HOSTILE.values(), *SCRIPTS):
        record = {"instruction": text, "input": text, "output": text}
        converted = getattr(data.chat, name)().forward(dict(record))
        assert data.chat.ToAlpaca().forward(converted) == record

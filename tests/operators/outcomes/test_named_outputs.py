import asyncio
import pickle
from typing import Any

import pytest

from dagster_dataops import Drop, To
from dagster_dataops.errors import (
    ConfigurationError,
    OperatorDefinitionError,
    OperatorOptionError,
)
from dagster_dataops.operators.bound_methods import record_function
from dagster_dataops.operators.definition.operator import reconfigured
from dagster_dataops.operators.options.settings import ExecutionSettings
from dagster_dataops.operators.outcomes.dispositions import sending
from dagster_dataops.operators.outcomes.return_contract import ContractError, encode_outcome
from tests.registries import OperatorRegistry

OUTPUTS = ("train", "test")


def _outcome(registry: OperatorRegistry, returned: Any, given: dict[str, Any]) -> Any:
    @registry("data.sending", outputs=OUTPUTS)
    def send(record: dict) -> Any:
        return returned

    return encode_outcome(record_function(send())(given), given)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (To("test"), (b'{"n":1}\n', sending(1))),
        (To("train", {"m": 2}), (b'{"m":2}\n', sending(0))),
        ([To("test"), To("train", {"m": 2})], (b'{"n":1}\n{"m":2}\n', sending(1, 0))),
        ([], (b"", b'{"dropped":[""],"emitted":0}')),
        (Drop("bad"), (b"", b'{"dropped":["bad"],"emitted":0}')),
    ],
)
def test_a_record_is_sent_to_named_outputs(
    registry: OperatorRegistry, returned: Any, expected: Any
) -> None:
    assert _outcome(registry, returned, {"n": 1}) == expected


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (None, "returned None; the operator has the outputs train, test: return To"),
        ({"n": 1}, "returned a dict"),
        ([{"n": 1}], "returned a list with a dict"),
        ([To("test"), None], "returned a list with a NoneType"),
        (To("tset"), "did you mean 'test'"),
        (To("test", [1]), "sent a list to 'test'; send a dict"),  # type: ignore[arg-type]
    ],
)
def test_anything_else_is_refused(registry: OperatorRegistry, returned: Any, text: str) -> None:
    with pytest.raises(ContractError, match=text):
        _outcome(registry, returned, {"n": 1})


def test_a_coroutine_sends_records_as_well(registry: OperatorRegistry) -> None:
    @registry("data.sending", outputs=OUTPUTS)
    async def send(record: dict) -> Any:
        return To("test")

    returned = asyncio.run(record_function(send())({"n": 1}))
    assert encode_outcome(returned, {"n": 1}) == (b'{"n":1}\n', sending(1))


def test_forward_of_a_function_returns_what_the_function_does(registry: OperatorRegistry) -> None:
    @registry("data.sending", outputs=OUTPUTS)
    def send(record: dict, output: str = "test") -> Any:
        return To(output)

    assert send(output="train").forward({"n": 1}) == To("train")  # type: ignore[attr-defined]


def test_a_class_inherits_the_outputs_and_may_have_others(registry: OperatorRegistry) -> None:
    group = registry.new_group("sending")

    class First(group, outputs=OUTPUTS):  # type: ignore[misc, valid-type]
        def forward(self, record: dict) -> Any:
            return To("test")

    class Second(First):
        pass

    class Third(First, outputs=["good", "bad"]):
        pass

    found = [one.__dataops_spec__.outputs for one in (First, Second, Third)]
    assert found == [OUTPUTS, OUTPUTS, ("good", "bad")]


def test_a_plain_class_is_registered_with_outputs(registry: OperatorRegistry) -> None:
    @registry("data.sending", outputs=OUTPUTS)
    class Send:
        def forward(self, record: dict) -> Any:
            return To("test")

    assert Send.__dataops_spec__.outputs == OUTPUTS  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ("train", "use a tuple of names"),
        (("train",), "2 to 64 different names"),
        (("train", "train"), "2 to 64 different names"),
        (("train", "to test"), "no plain identifier"),
        (("train", "_test"), "reserved"),
        (("train", "index"), "reserved"),
        (("train", "checkpoints"), "reserved"),
        (("train", 1), "no plain identifier"),
    ],
)
def test_invalid_names_are_refused(registry: OperatorRegistry, outputs: Any, text: str) -> None:
    with pytest.raises(OperatorDefinitionError, match=text):

        @registry("data.sending", outputs=outputs)
        def send(record: dict) -> Any:
            return To("train")


def test_an_operator_over_all_records_has_one_result(registry: OperatorRegistry) -> None:
    with pytest.raises(OperatorDefinitionError, match="it is a dataset operator and has one"):

        @registry.forward_batch_input("data.sending", outputs=OUTPUTS)
        def send(records: list) -> Any:
            return records


def test_several_results_are_not_exported_to_one_file(registry: OperatorRegistry) -> None:
    @registry("data.sending", outputs=OUTPUTS)
    def send(record: dict) -> Any:
        return To("train")

    with pytest.raises(ConfigurationError, match="a folder, for the results train, test"):
        send().set_output("all.jsonl")


def test_a_record_on_its_way_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(To("train", {"n": 1}))) == To("train", {"n": 1})


def test_options_may_decide_the_names(registry: OperatorRegistry) -> None:
    class Parts(registry.new_group("parts"), outputs=lambda names, **_: tuple(names)):
        def __init__(self, names: Any = ("a", "b"), **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.names = names

        def forward(self, record: dict[str, Any]) -> To:
            return To(self.names[record["n"]])

    assert Parts().__dataops__.spec.outputs == ("a", "b")
    other = Parts(names=["x", "y", "z"])
    assert other.__dataops__.spec.outputs == ("x", "y", "z")
    assert other.__dataops__.spec.outputs_of is None
    assert record_function(other)({"n": 2}).records == [{"n": 2}]
    assert Parts.__dataops_spec__.outputs == ()
    with pytest.raises(OperatorOptionError, match="outputs.*different names"):
        Parts(names=["x"])
    with pytest.raises(OperatorOptionError, match="would be x, y; the names of the results"):
        reconfigured(other, {"names": ["x", "y"]}, ExecutionSettings())
    assert reconfigured(other, {}, ExecutionSettings()).__dataops__.spec.outputs[2:] == ("z",)

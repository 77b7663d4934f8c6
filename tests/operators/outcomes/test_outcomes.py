"""Tests of return values: records, named outputs, contexts, columns that lack."""

import asyncio
import datetime
import json
import pickle
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import Drop, OperatorContext, StopRun, To, config, data, data_register
from dagster_dataops.errors import (
    ConfigurationError,
    MissingColumnError,
    OperatorDefinitionError,
    OperatorOpenError,
    OperatorOptionError,
    RunStoppedError,
    UnencodableError,
)
from dagster_dataops.operators.bound_methods import record_function
from dagster_dataops.operators.options.read_columns import keys_of
from dagster_dataops.operators.outcomes.column_watch import (
    ColumnWatch,
    Patience,
    WatchedPart,
    columns_seen,
    missing_counts,
    never_found,
)
from dagster_dataops.operators.outcomes.dispositions import dropped_for, sending
from dagster_dataops.operators.outcomes.record_context import Clients
from dagster_dataops.operators.outcomes.return_contract import ContractError, encode_outcome
from tests.nodes import ExecutionSettings, Manifest, reconfigured
from tests.registries import OperatorRegistry

GIVEN = {"given": True}
OUTCOMES = st.dictionaries(st.text(max_size=2), st.integers(-5, 5), max_size=2)


def outcome(returned: object) -> list[dict]:
    return [orjson.loads(line) for line in encode_outcome(returned, GIVEN)[0].splitlines()]


@given(st.lists(OUTCOMES))
def test_a_dict_or_a_list_of_dicts_replaces_the_record(records):
    assert outcome(records) == records
    for record in (*records, {}):
        assert outcome(record) == [record]


def test_none_keeps_the_record_as_it_is_now_and_an_empty_list_drops_it():
    assert outcome(None) == [GIVEN]
    assert encode_outcome([], GIVEN) == (b"", dropped_for(""))


@pytest.mark.parametrize("returned", ["text", 1, True, 1.5, ({},), {1}, b"", iter([]), object()])
def test_other_return_values_are_contract_errors_with_a_remedy(returned):
    kind = type(returned).__name__

    with pytest.raises(ContractError, match=rf"returned a {kind}; return a dict, a list of dicts"):
        encode_outcome(returned, GIVEN)


@pytest.mark.parametrize("intruder", [None, "a", [], [{}], 1])
def test_a_list_with_an_invalid_element_is_a_contract_error_that_names_it(intruder):
    kind = type(intruder).__name__

    with pytest.raises(ContractError, match=f"element 1 is a {kind}, not a dict"):
        encode_outcome([{}, intruder], GIVEN)


@pytest.mark.parametrize("wrap", [lambda r: r, lambda r: [{}, r]], ids=["dict", "list"])
def test_a_value_that_json_cannot_hold_is_refused(wrap):
    with pytest.raises(UnencodableError, match="key 'when' holds a date"):
        encode_outcome(wrap({"when": datetime.date(2024, 1, 1)}), GIVEN)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("hide", [lambda x: x, lambda x: [x], lambda x: {"deep": [x]}])
@pytest.mark.parametrize("wrap", [lambda r: r, lambda r: [{}, r]], ids=["dict", "list"])
def test_a_number_that_json_cannot_hold_is_refused_at_any_depth(wrap, hide, number):
    with pytest.raises(UnencodableError, match="score"):
        encode_outcome(wrap({"score": hide(number), "text": "x", "nothing": None}), GIVEN)


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

    @registry("data.sending", outputs=OUTPUTS)
    class Plain:
        forward = First.forward

    found = [one.__dataops_spec__.outputs for one in (First, Second, Third, Plain)]
    assert found == [OUTPUTS, OUTPUTS, ("good", "bad"), OUTPUTS]


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


MODES = ["single", "thread", "process"]


data_register.new_group("contexts")


@data_register("data.contexts")
def count_words(record: dict[str, Any], context: OperatorContext) -> Any:
    words = len(record["text"].split())
    context.count(words=words, cost=0.5)
    if words < 2:
        return context.drop("too_short")
    if words > 3:
        return [record, record]
    return record


@data_register("data.contexts")
async def count_slowly(record: dict[str, Any], context: OperatorContext) -> Any:
    await asyncio.sleep(0)
    return count_words.function(record, context)  # type: ignore[attr-defined]


@data_register("data.contexts")
def count_if_possible(record: dict[str, Any], context: OperatorContext | None = None) -> Any:
    if context is not None:
        context.count(words=1)
    return record


RECORDS = [{"text": " ".join("x" * (n % 5 + 1)), "n": n} for n in range(200)]


def manifest_of(folder: Path) -> Manifest:
    (path,) = folder.rglob("*_results.jsonl.json")
    found = Manifest.load(path)
    assert found is not None
    return found


@pytest.fixture
def root(tmp_path: Path) -> Any:
    with config.temporary(data_process_path=tmp_path):
        yield tmp_path


@pytest.mark.parametrize("mode", [*MODES, "async"])
def test_counts_and_drops_are_exact_in_every_mode(root: Path, mode: str) -> None:
    made = data.contexts.count_slowly if mode == "async" else data.contexts.count_words
    results = made(_concurrency_mode=mode, _max_workers=2)([{**record} for record in RECORDS])
    manifest = manifest_of(root)
    words = [n % 5 + 1 for n in range(200)]
    assert manifest.counts == {"words": sum(words), "cost": 100.0}
    assert manifest.drops == {"too_short": 40}
    examples = manifest.drop_examples["too_short"]
    assert [example["line"] for example in examples] == [1, 6, 11]
    assert json.loads(examples[0]["input"]) == RECORDS[0]
    assert manifest.dropped == 40
    wanted = Counter({record["n"]: 2 if n % 5 + 1 > 3 else 1 for n, record in enumerate(RECORDS)})
    assert Counter(record["n"] for record in results) == {
        n: number for n, number in wanted.items() if n % 5
    }


class Opened(data.contexts):
    def __init__(self, log: str, fails: str = "", **given: Any) -> None:
        super().__init__(**given)
        self.log = log
        self.fails = fails

    def open(self, context: OperatorContext) -> None:
        self.context = context
        self._note("open")
        if self.fails == "open":
            raise ValueError("no model there")

    def close(self) -> None:
        self._note("close")

    def forward(self, record: dict[str, Any]) -> Any:
        if record["n"] == 150 and self.fails == "stop":
            raise StopRun("the key is invalid")
        return {"n": record["n"], "index": self.context.index, "thread": threading.get_ident()}

    def _note(self, text: str) -> None:
        with Path(self.log).open("a") as file:
            file.write(text + "\n")


@pytest.mark.parametrize("mode", MODES)
def test_every_open_is_followed_by_a_close(root: Path, mode: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    operator = data.contexts.Opened(log=str(log), _concurrency_mode=mode, _max_workers=2)
    results = operator([{**record} for record in RECORDS])
    assert [record["index"] for record in results] == list(range(200))
    counts = Counter(log.read_text().split())
    assert counts["open"] == counts["close"] >= 1


@pytest.mark.parametrize("mode", MODES)
def test_a_failure_in_open_fails_the_run_and_blames_no_record(
    root: Path, mode: str, tmp_path: Path
) -> None:
    operator = data.contexts.Opened(
        log=str(tmp_path / "log"), fails="open", _concurrency_mode=mode, _max_workers=2
    )
    with pytest.raises(OperatorOpenError, match="contexts.Opened: its open.. failed: ValueError"):
        operator([{**record} for record in RECORDS])
    assert not list(root.rglob("*_error.jsonl"))


@pytest.mark.parametrize("mode", MODES)
def test_an_operator_stops_the_run_and_the_next_run_resumes(
    root: Path, mode: str, tmp_path: Path
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    log = str(tmp_path / "log")
    settings = {"_concurrency_mode": mode, "_max_workers": 1}
    with pytest.raises(RunStoppedError, match="the key is invalid"):
        data.contexts.Opened(log=log, fails="stop", **settings)(str(source))
    assert not list(root.rglob("*_error.jsonl"))
    with config.temporary(data_process_path=root, data_process_resume=True):
        results = data.contexts.Opened(log=log, **settings)(str(source))
    assert len(results) == 200


@data_register("data.contexts", _timeout=1.0, _concurrency_mode="thread")
def waits_long(record: dict[str, Any], context: OperatorContext) -> Any:
    with context.waiting():
        time.sleep(record["waits"])
    time.sleep(record["works"])
    return record


@data_register("data.contexts", _timeout=1.0)
async def waits_long_async(record: dict[str, Any], context: OperatorContext) -> Any:
    with context.waiting():
        await asyncio.sleep(record["waits"])
    await asyncio.sleep(record["works"])
    return record


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["thread", "process", "async"])
def test_waiting_does_not_count_towards_the_time_limit(root: Path, mode: str) -> None:
    make = data.contexts.waits_long_async if mode == "async" else data.contexts.waits_long
    records = [{"waits": 1.2, "works": 0}, {"waits": 0.4, "works": 5}]
    results = make(_concurrency_mode=mode, _max_workers=1)(records)
    assert results == records[:1]
    (errors,) = root.rglob("*_error.jsonl")
    assert json.loads(errors.read_text())["exception"] == "RecordTimeout"


class BusyError(Exception):
    retry_after = 0.5


@data_register("data.contexts", _retries=1, _backoff=0)
def busy_once(record: dict[str, Any], path: str) -> Any:
    if not Path(path).exists():
        Path(path).write_text(str(time.monotonic()))
        raise BusyError
    return {"after": time.monotonic() - float(Path(path).read_text())}


@pytest.mark.parametrize("mode", MODES)
def test_a_retry_waits_as_long_as_the_error_asks(root: Path, mode: str, tmp_path: Path) -> None:
    operator = data.contexts.busy_once(path=str(tmp_path / "seen"), _concurrency_mode=mode)
    (record,) = operator([{}])
    assert record["after"] >= 0.5


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["thread", "async"])
def test_calls_in_flight_are_waited_for_when_the_run_stops(
    root: Path, mode: str, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps({"n": n}) + "\n" for n in range(60)))
    make = data.contexts.pays_async if mode == "async" else data.contexts.pays
    settings = {"log": str(log), "_concurrency_mode": mode, "_max_workers": 20}
    broke = tmp_path / "calls.broke"
    broke.touch()
    with pytest.raises(RunStoppedError, match="no money left"):
        make(**settings)(str(source))
    broke.unlink()
    with config.temporary(data_process_path=root, data_process_resume=True):
        assert len(make(**settings)(str(source))) == 60
    called = [int(line) for line in log.read_text().split()]
    assert sorted(called) == sorted([*range(60), 19])


@data_register("data.contexts")
def pays(record: dict[str, Any], log: str) -> Any:
    _pay(log, record["n"])
    time.sleep(0.4)
    return record


@data_register("data.contexts")
async def pays_async(record: dict[str, Any], log: str) -> Any:
    _pay(log, record["n"])
    await asyncio.sleep(0.4)
    return record


def _pay(log: str, number: int) -> None:
    with Path(log).open("a") as file:
        file.write(f"{number}\n")
    if number == 19 and Path(f"{log}.broke").exists():
        raise StopRun("no money left")


def test_a_missing_client_can_be_asked_for():
    clients = Clients("a node", {"judge": 1})

    assert "judge" in clients
    assert "default" not in clients


async def note_positions(record: dict[str, Any], context: OperatorContext) -> Any:
    return {"position": context.position}


def test_the_position_of_a_record_is_that_of_its_line(root: Path):
    operator: Any = data_register("data.contexts")(note_positions)

    rows = operator()([{"text": "a"}, {"text": "bc"}, {"text": "d"}])

    assert [row["position"] for row in rows] == [0, 13, 27]


@pytest.mark.parametrize("mode", MODES)
def test_a_parameter_annotated_as_the_context_may_have_a_default(root: Path, mode: str) -> None:
    operator = data.contexts.count_if_possible(_concurrency_mode=mode)
    assert operator([{"text": "a"}]) == [{"text": "a"}]

    assert manifest_of(root).counts == {"words": 1}
    assert count_if_possible.function({"text": "a"}) == {"text": "a"}  # type: ignore[attr-defined]


def same(given: Any) -> Any:
    return given


def failing(given: Any) -> Any:
    raise ZeroDivisionError


def watch(*keys: str, strict: bool = False, **kind: bool) -> ColumnWatch:
    return ColumnWatch([WatchedPart(keys_of(keys), **kind)], chained=False, strict=strict)


def test_calls_that_succeed_count_what_their_record_lacks() -> None:
    watched = watch("a", "m.x")
    call = watched.around(same)
    for record in ({"a": 1, "m": {"x": 1}}, {"a": 1}, {}, {"m": {}}):
        assert call(record) is record
    with pytest.raises(ZeroDivisionError):
        watched.around(failing)({})
    counts = watched.take()
    assert missing_counts(counts) == {"missing_columns/a": 2, "missing_columns/m.x": 3}
    assert watched.take() == {}
    watched.around(lambda record: record.update(a=1))({})  # what it writes was not there before
    assert missing_counts(watched.take())["missing_columns/a"] == 1
    awaited = watch("a", asynchronous=True)

    async def call_async(given: Any) -> Any:
        return given

    asyncio.run(awaited.around_async(call_async)({}))
    assert missing_counts(awaited.take()) == {"missing_columns/a": 1}


def test_a_batch_counts_its_records_but_for_those_that_failed() -> None:
    watched = watch("a", batch=True)
    call = watched.around(lambda given: [ValueError() if "bad" in one else one for one in given])
    call([{"a": 1}, {}, {"bad": 1}, {}])
    call([{"a": 1}])
    assert missing_counts(watched.take()) == {"missing_columns/a": 2}


def test_strict_watches_let_the_record_fail() -> None:
    watched = watch("a", strict=True)
    with pytest.raises(MissingColumnError):
        watched.around(same)({"b": 1})
    assert watched.take() == {}


def chained(watched: ColumnWatch, last: Any = same) -> Any:
    first, second = watched.part(0, same), watched.part(1, last)
    return watched.around(lambda record: second(first(record)))


def parts(**kind: bool) -> list[WatchedPart]:
    return [WatchedPart(keys_of(["a"])), WatchedPart(keys_of(["b"]), **kind)]


def test_parts_of_a_chain_count_together_or_not_at_all() -> None:
    watched = ColumnWatch(parts(), chained=True, strict=False)
    chained(watched)({})
    with pytest.raises(ZeroDivisionError):
        chained(watched, failing)({})
    counts = watched.take()
    rows = {"missing_columns/one: a": 1, "missing_columns/two: b": 1}
    assert missing_counts(counts, ["one", "two"]) == rows
    assert never_found(counts) == [(1, "b", 1)]
    assert columns_seen(counts, 1) == []  # the record had none


def test_the_columns_of_a_record_that_lacked_one_are_told() -> None:
    watched = ColumnWatch(parts(), chained=True, strict=False)
    call = chained(watched)
    for record in ({"a": 1, "c": 2}, {"d": 1}):
        call(record)
    counts = watched.take()
    assert columns_seen(counts, 1) == ["a", "c"]
    assert columns_seen(counts, 0) == []


def test_a_later_part_has_found_a_key_also_if_its_record_fails() -> None:
    watched = ColumnWatch(parts(), chained=True, strict=False)
    with pytest.raises(ZeroDivisionError):
        chained(watched, failing)({"b": 1})
    chained(watched)({"a": 1})
    counts = watched.take()
    assert never_found(counts) == []
    call = chained(watched)
    call({"a": 1, "b": 1})
    assert watched.take() == {".finds 1 b": 1}
    call({"a": 1, "b": 1})
    assert watched.take() == {}  # said once


def test_many_records_without_a_column_end_the_patience_of_all_tasks() -> None:
    patience = Patience()
    calls = 0

    async def ask(given: Any) -> Any:
        nonlocal calls
        calls += 1
        return given

    async def run(record: dict, number: int) -> None:
        for _ in range(number):
            watched = ColumnWatch(
                parts(asynchronous=True), chained=True, strict=False, patience=patience
            )
            await watched.around_async(watched.part(1, ask))(dict(record))

    asyncio.run(run({"a": 1}, 999))
    with pytest.raises(StopRun, match="first 1,000 records .* part 2 .* 'b'"):
        asyncio.run(run({"a": 1}, 2))
    assert calls == 999
    patience.find(".finds 1 b")
    asyncio.run(run({"a": 1}, 5))

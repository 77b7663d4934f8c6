"""Tests of fairseq2's pipelines and selectors, case by case, with the intended differences.

The streams of this package differ in three kinds of cases, listed below. Random draws come from
other seeds, so orders differ. A resumed stream never drops an item; fairseq2 has an option that
does. A shard drops no item by default either.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from dagster_dataops import DataPipeline, Selector, errors, read_sequence
from tests.each import each

CASES = [
    json.loads(line)
    for line in Path(__file__).with_name("fairseq2_cases.jsonl").read_text().splitlines()
]
FUNCTIONS = {
    "mul10": lambda x: x * 10,
    "add10": lambda x: x + 10,
    "add1": lambda x: x + 1,
    "mul2": lambda x: x * 2,
    "identity": lambda x: x,
    "upper": lambda x: x.upper(),
    "to_none": lambda x: None,
    "is_none": lambda x: x is None,
    "boom": lambda x: 1 // 0,
    "sum": sum,
    "is_odd": lambda x: x % 2 == 1,
    "mod3": lambda x: x % 3 == 0,
}

# Resumed without its read-ahead, fairseq2 loses items; this package has no such mode.
NEVER_LOSSY = {
    "parallel map non-strict drops the in-flight batch": [20, 30, 40, 50, 60, 70],
    "round_robin non-strict loses the look-ahead": [6, 3, 5],
}


# A shard keeps the last, incomplete group of items by default.
KEEPS_ALL = {"shard even drops the ragged tail": [2, 7, 12, 17, 22]}


def cases(*areas):
    return each("case", [case for case in CASES if case["area"] in areas])


def item_of(value):
    if isinstance(value, dict):
        if set(value) == {"__tuple__"}:
            return tuple(map(item_of, value["__tuple__"]))
        return {key: item_of(one) for key, one in value.items()}
    return [item_of(one) for one in value] if isinstance(value, list) else value


def functions(names):
    return [FUNCTIONS[name] for name in names] if isinstance(names, list) else FUNCTIONS[names]


def built(steps):
    first, *then = steps
    stream = source(first)
    for step in then:
        stream = applied(stream, step["op"], dict(step["with"]))
    return stream


def source(step):
    options = {key: item_of(value) for key, value in step["with"].items()}
    if step["op"] == "read_sequence":
        return read_sequence(options["seq"])
    if "of" not in step:
        return getattr(DataPipeline, step["op"])(**options)
    streams = [built(steps).and_return() for steps in step["of"]]
    return getattr(DataPipeline, step["op"])(streams, **options)


def applied(stream, name, options):
    if name == "yield_take_count":
        return stream.yield_from(lambda n: DataPipeline.count().take(n).and_return())
    if name == "yield_count":
        return stream.yield_from(lambda n: DataPipeline.count().and_return())
    if "fn" in options:
        options["fn"] = functions(options["fn"])
    return getattr(stream, name)(**options)


def classes(error):
    return {cls.__name__ for cls in type(error).__mro__}


def test_a_shard_drops_the_incomplete_group_on_request():
    (case,) = (case for case in CASES if case["name"] in KEEPS_ALL)
    case["stream"][1]["with"]["allow_uneven"] = False
    try:
        assert list(built(case["stream"])) == case["gives"]
    finally:
        del case["stream"][1]["with"]["allow_uneven"]


def test_all_areas_exist():
    areas = Counter(case["area"] for case in CASES)
    assert areas == {"selector": 58, "finitude": 34, "combine": 24, "seeded": 10, "checkpoint": 10}


@cases("selector")
@each("how", ["stream", "selector"])
def test_selectors(case, how):
    item, refused, calls = item_of(case["item"]), case.get("refused"), []

    def evaluate():
        if how == "stream":
            stream = read_sequence([item]).map(functions(case["fn"]), selector=case["selector"])
            calls.append("built")
            return next(iter(stream))
        if case["selector"] is None:
            return functions(case["fn"])(item)
        selector = Selector(case["selector"])
        calls.append("built")
        chain = functions(case["fn"])
        found = item
        for fn in chain if isinstance(chain, list) else [chain]:
            found = selector.map(fn, found)
        return found

    if refused is None:
        found, expected = evaluate(), item_of(case["gives"])
        assert found == expected
        assert repr(found) == repr(expected)
        assert item == item_of(case["item"])
        return
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the type is checked below
        evaluate()
    assert refused["type"] in classes(caught.value)
    assert isinstance(caught.value, errors.DataOpsError)
    assert ("built" in calls) == (refused["when"] == "iterate")
    if "path" in refused:
        assert caught.value.path == refused["path"]
    if "cause" in refused:
        assert type(caught.value.__cause__).__name__ == refused["cause"]


def read(stream, most):
    items, iterator = [], iter(stream)
    try:
        for item in iterator:
            items.append(item)
            if len(items) == most:
                return items, False
    except Exception as error:  # noqa: BLE001 - the type is checked by the caller
        return items, error
    return items, True


@cases("finitude", "combine")
def test_streams(case):
    refused = case.get("refused")
    if refused is not None and refused["when"] == "build":
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the type is checked below
            built(case["stream"]).and_return()
        assert refused["type"] in classes(caught.value)
        return
    items, end = read(built(case["stream"]).and_return(), case["most"])

    assert items == item_of(KEEPS_ALL.get(case["name"], case["gives"]))
    if refused is None:
        assert end is case["ends"]
    else:
        assert refused["type"] in classes(end)


@cases("seeded")
def test_seeded_streams_have_a_different_order(case):
    """The number of items, the items and the stop rule are equal; only the order differs."""
    stream = built(case["stream"]).and_return()
    items, ended = read(stream, 1000)

    assert ended is True
    assert items == read(built(case["stream"]).and_return(), 1000)[0]
    first = case["stream"][0]
    if "of" not in first:
        assert sorted(items) == sorted(case["gives"])
        window = case["stream"][1]["with"]["shuffle_window"]
        for start in range(0, len(items), window):
            part = slice(start, start + window)
            assert sorted(items[part]) == sorted(case["gives"][part])
        return
    parts = [steps[0]["with"]["seq"] for steps in first["of"]]
    if not first["with"].get("allow_repeats", True):
        assert sorted(items) == sorted(case["gives"])
    assert set(items) == set(case["gives"]) == {one for part in parts for one in part}
    if len(parts) == 1:
        assert items == case["gives"]


@cases("checkpoint")
def test_streams_resume_from_a_state(case):
    stream = built(case["stream"]).and_return()
    before, _ = read(stream, len(case["read"]))
    state = json.loads(json.dumps(stream.state_dict()))
    again = built(case["stream"]).and_return()
    again.load_state_dict(state)

    assert before == item_of(case["read"])
    rest = case["rest"] if case["strict"] else NEVER_LOSSY[case["name"]]
    assert list(again) == item_of(rest)

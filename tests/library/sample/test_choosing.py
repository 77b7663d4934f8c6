from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops import JsonlDataset, data
from dagster_dataops.errors import DatasetOperatorError, DefinitionError
from tests.examples import at_most
from tests.execution.helpers import MODES, error_rows, node, run, write_input

VALUES = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([1.5, "a", "b", ""]))


def order(value: Any, reverse: bool) -> Any:
    """Return a key that sorts values as documented."""
    sign = -1 if reverse else 1
    if isinstance(value, str):  # one letter at most
        return (False, not reverse, sign * len(value), sign * ord(value or "\0"))
    return (value is None, reverse, sign * (value or 0), 0)


@given(
    records=st.lists(st.tuples(VALUES, st.integers(0, 2)), max_size=20),
    k=st.integers(0, 6),
    reverse=st.booleans(),
    per=st.booleans(),
    max_bytes=st.sampled_from([300, 1 << 20]),
)
@settings(max_examples=at_most(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_largest_or_smallest_values_are_kept(
    tmp_path: Path, records: Any, k: int, reverse: bool, per: bool, max_bytes: int
) -> None:
    rows = [{"n": n, "v": value, "g": group} for n, (value, group) in enumerate(records)]
    ranked = sorted(rows, key=lambda row: order(row["v"], reverse))
    kept: Any = []
    counts: Counter[int] = Counter()
    for row in ranked:
        counts[row["g"] if per else 0] += 1
        kept += [row] * (counts[row["g"] if per else 0] <= k)
    operator = data.sample.TopK(
        "v", k, group_key="g" if per else None, reverse=reverse, _concurrency_mode="single"
    )
    operator._max_bytes = max_bytes
    dataset = write_input(tmp_path / "input.jsonl", rows)
    found = run(operator, dataset, node(tmp_path)).dataset.read()
    assert found == sorted(kept, key=lambda row: row["n"])


ROWS = [{"n": n, "g": "abc"[n % 3] if n % 7 else "a", "v": n * n % 101} for n in range(300)]


def sizes(records: Any) -> dict[str, int]:
    return dict(Counter(record["g"] for record in records))


def test_a_share_of_the_records_is_rounded_up(root: Path) -> None:
    assert len(data.sample.TopK("v", ratio=0.1)(ROWS)) == 30
    assert len(data.sample.TopK("v", ratio=0.001)(ROWS)) == 1
    per = sizes(data.sample.TopK("v", ratio=0.5, group_key="g")(ROWS))
    assert per == {group: -(-size // 2) for group, size in sizes(ROWS).items()}


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "async"])
def test_a_random_choice_is_the_same_everywhere(tmp_path: Path, mode: str) -> None:
    dataset = write_input(tmp_path / "input.jsonl", ROWS)
    operator = data.sample.Reservoir(40, seed=3, _concurrency_mode=mode, _max_workers=2)
    operator._max_bytes = 2000
    kept = run(operator, dataset, node(tmp_path)).dataset.read()
    assert len(kept) == 40
    assert kept == data.sample.Reservoir(40, seed=3)(ROWS[::-1])[::-1]
    more = data.sample.Reservoir(60, seed=3)(ROWS)
    assert all(row in more for row in kept)
    assert data.sample.Reservoir(40, seed=4)(ROWS) != kept
    assert sizes(data.sample.Reservoir(5, group_key="g")(ROWS)) == {"a": 5, "b": 5, "c": 5}


def test_groups_are_capped(root: Path) -> None:
    least = min(sizes(ROWS).values())
    assert sizes(data.sample.Balance("g")(ROWS)) == dict.fromkeys("abc", least)
    first = data.sample.Balance("g", 2)(ROWS)
    assert [row["n"] for row in first] == [0, 1, 2, 3, 4, 5]
    chosen = data.sample.Balance("g", 2, seed=1)(ROWS)
    assert sizes(chosen) == sizes(first)
    assert chosen != first
    assert data.sample.Balance("g")([]) == []


def test_groups_are_mixed_by_weight(root: Path) -> None:
    mixed = data.sample.Mix({"a": 3, "b": 1}, group_key="g")(ROWS)
    assert sizes(mixed) == {"a": sizes(ROWS)["a"], "b": sizes(ROWS)["a"] // 3}
    assert sizes(data.sample.Mix({"a": 3, "b": 1}, group_key="g", count=40)(ROWS)) == {
        "a": 30,
        "b": 10,
    }
    assert data.sample.Mix({"a": 3, "b": 1}, group_key="g")([]) == []


def test_a_mix_with_a_group_without_records_fails_with_the_name_of_the_group(root: Path) -> None:
    with pytest.raises(DatasetOperatorError, match="no record has 'g' = 'x', so"):
        data.sample.Mix({"a": 1, "x": 1}, group_key="g")(ROWS)


@pytest.mark.parametrize(
    "make",
    [
        lambda: data.sample.TopK("v"),
        lambda: data.sample.TopK("v", 1, ratio=0.1),
        lambda: data.sample.TopK("v", ratio=1.1),
        lambda: data.sample.Reservoir(-1),
        lambda: data.sample.Balance("g", -1),
        lambda: data.sample.Mix({}),
        lambda: data.sample.Mix({"a": 0}),
        lambda: data.sample.Mix({"a": 1}, count=-1),
    ],
)
def test_wrong_options_are_refused(make: Any) -> None:
    with pytest.raises(DefinitionError, match="got"):
        make()


def test_a_value_without_an_order_fails_its_record(root: Path) -> None:
    rows = [{"v": 1}, {"v": [1]}, {"v": {"a": 1}}]
    assert data.sample.TopK("v", 3)(rows) == rows[:1]


USUAL = [
    *[b'{"v":%d,"x":0.25}' % number for number in range(8)],
    *[b'{"x":"a","v":0.5}', b'{"v":-1e300}', b'{"v":"text"}', b'{ "v" : "\\n", "x": null }'],
]
ODD = [
    *[b"", b"   ", b"{", b"[]", b"[1]", b'"v"', b"7", b"{}", b'{"v":1}{"v":2}', b'{"v":1},{"v":2}'],
    *[b'{"v":null}', b'{"v":true}', b'{"v":[1]}', b'{"v":{}}', b'{"v":1,"v":9}', b'{"\\u0076":5}'],
    *[b'{"v":1,"x":[36893488147419103232]}', b'{"v":36893488147419103232}', b'{"v":1e19}'],
    *[b'{"v":1,"x":-36893488147419103232}', b'{"v":9223372036854775808}', b'{"v":-0.0}'],
    *[b'{"v":"\xc3\xa9"}', b'{"v":"\\ud800"}', b'{"v":"\\u00e9,"}', b'{"v":"\xff"}', b'{"v":NaN}'],
]


@pytest.mark.parametrize(
    ("seed", "missing"), [(0, "count"), (1, "allow"), (2, "error"), (3, "count")]
)
def test_values_that_are_read_some_at_a_time_give_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, missing: str
) -> None:
    chosen = Random(seed)
    lines = [line for _ in range(40) for line in [*chosen.choices(USUAL[:10], k=40), ODD[0]]]
    lines = [chosen.choice(ODD) if chosen.random() < seed / 100 else line for line in lines]
    lines += chosen.choices([*USUAL, *ODD], k=100)
    path = tmp_path / "input.jsonl"
    path.write_bytes(b"\n".join(lines))

    def ran(mode: str, name: str) -> tuple[bytes, list[Any], Any]:
        folder = node(tmp_path / name)
        operator = data.sample.TopK("v", 500, _concurrency_mode=mode, _missing=missing)
        report = run(operator, JsonlDataset.of_file(path), folder)
        told = ("index", "exception", "message", "attempts", "input")
        rows = [{name: row[name] for name in told} for row in error_rows(folder)]
        return folder.result.read_bytes(), rows, report.manifest.counts

    with monkeypatch.context() as patch:
        column = "__dataops_sketched_column__"
        patch.setattr(type(data.sample.TopK("v", 1)), column, lambda _: None)
        expected = ran("single", "called")
    assert expected[0]
    assert seed == 0 or expected[1]
    assert ran("single", "single") == expected
    assert ran("process", "process") == expected

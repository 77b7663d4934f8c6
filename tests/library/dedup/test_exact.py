from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, StorageError
from tests.examples import at_most
from tests.execution.helpers import MODES, error_rows, lines, node, run, write_input

VALUES = st.one_of(
    st.sampled_from(["a", "A", "a ", " a", "1", "", "ß", "SS", '{"a":1}']),
    st.sampled_from([1, 1.0, True, None, [], ["a"], {"a": 1}, {"a": 2}]),
)
RECORDS = st.lists(st.dictionaries(st.sampled_from(["text", "other"]), VALUES), max_size=30)


def brute_force(records: list[dict[str, Any]], keys: list[str], ignore_case: bool) -> list[Any]:
    """Keep records that equal no kept record, by comparing the values themselves."""

    def of(record: dict[str, Any]) -> list[str]:
        found = {key: record[key] for key in keys if key in record}
        for key, value in found.items():
            if ignore_case and isinstance(value, str):
                found[key] = " ".join(value.split()).casefold()
        return [repr(item) for item in sorted(found.items())]

    kept: list[Any] = []
    for record in records:
        if all(of(record) != of(other) for other in kept):
            kept.append(record)
    return kept


@given(
    records=RECORDS,
    keys=st.sampled_from([["text"], ["text", "other"]]),
    ignore_case=st.booleans(),
    max_bytes=st.sampled_from([0, 1000, 1 << 20]),
)
@settings(max_examples=at_most(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_first_of_equals_stays(
    tmp_path: Path, records, keys, ignore_case: bool, max_bytes: int
) -> None:
    settings = {"_concurrency_mode": "single", "_missing": "allow"}
    operator = data.dedup.Exact(input_key=keys, ignore_case=ignore_case, **settings)
    operator._max_bytes = max_bytes
    run(operator, write_input(tmp_path / "input.jsonl", records), node(tmp_path))
    assert node(tmp_path).result.read_bytes() == lines(brute_force(records, keys, ignore_case))


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "async"])
@pytest.mark.parametrize("max_bytes", [1000, 1 << 20])
def test_modes_agree_in_memory_and_on_disk(tmp_path: Path, mode: str, max_bytes: int) -> None:
    records = [{"text": f"text {n * n % 151}", "n": n} for n in range(500)]
    operator = data.dedup.Exact(_concurrency_mode=mode, _max_workers=3)
    operator._max_bytes = max_bytes
    report = run(operator, write_input(tmp_path / "input.jsonl", records), node(tmp_path))
    assert report.dataset.read() == brute_force(records, ["text"], ignore_case=False)
    assert report.manifest.dropped == 500 - (report.dataset.rows or 0)


def verdicts(values: list[int], max_bytes: int, scratch: Path) -> Iterator[bool]:
    operator = data.dedup.Exact()
    operator._max_bytes = max_bytes
    return operator.keep((operator.sketch({"text": str(one)}) for one in values), scratch)


def test_a_part_larger_than_memory_is_searched_in_several_passes(tmp_path: Path) -> None:
    values = [number * number % 3001 for number in range(6000)]
    expected = [at == values.index(value) for at, value in enumerate(values)]
    for max_bytes in (200, 2000, 1 << 20):
        assert list(verdicts(values, max_bytes, tmp_path)) == expected


def test_data_that_fits_into_memory_is_decided_at_once(tmp_path: Path) -> None:
    read = []
    sketches = (read.append(at) or f"{at % 3:032x}" for at in range(10))
    decided = data.dedup.Exact().keep(sketches, tmp_path)
    assert [next(decided) for _ in range(4)] == [True, True, True, False]
    assert read == [0, 1, 2, 3]
    assert not list(tmp_path.iterdir())


def test_entries_beyond_the_memory_limit_are_in_files_and_deleted(tmp_path: Path) -> None:
    decided = verdicts(list(range(200)), 2000, tmp_path)
    for _ in range(7):
        next(decided)
    assert not list(tmp_path.iterdir())
    assert list(decided) == [True] * 193
    assert not list(tmp_path.iterdir())
    with pytest.raises(StorageError, match="missing/000.*: cannot write"):
        list(verdicts(list(range(200)), 2000, tmp_path / "missing"))


def test_one_of_many_duplicates_is_kept(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", [{"text": "a", "n": n} for n in range(100)])
    assert run(data.dedup.Exact(), dataset, node(tmp_path)).dataset.read() == [
        {"text": "a", "n": 0}
    ]


def test_bad_lines_go_to_the_error_file_and_decide_nothing(tmp_path: Path) -> None:
    path = tmp_path / "input.jsonl"
    dataset = write_input(path, [{"text": "a"}, {"text": "a"}])
    path.write_bytes(b"bad\nbad\n" + path.read_bytes() + b"bad")
    report = run(data.dedup.Exact(), type(dataset).of_file(path), node(tmp_path))
    assert report.dataset.read() == [{"text": "a"}]
    assert [row["index"] for row in error_rows(node(tmp_path))] == [0, 1, 4]


def test_an_empty_input_gives_an_empty_result(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", [])
    assert run(data.dedup.Exact(), dataset, node(tmp_path)).dataset.read() == []


def test_memory_is_given_in_megabytes() -> None:
    assert data.dedup.Exact(max_memory_mb=2)._max_bytes == 2 << 20
    with pytest.raises(DefinitionError, match="'max_memory_mb' must be at least 1; got 0"):
        data.dedup.Exact(max_memory_mb=0)


def test_normalized_texts_are_compared_without_case_space_digits_and_punctuation(root) -> None:
    records = [{"text": "A b-1!"}, {"text": "ab"}, {"text": "a\u3000B 22"}, {"text": "abc"}]
    assert data.dedup.Exact(normalize="datajuicer")(records) == [records[0], records[3]]
    assert data.dedup.Exact(normalize="none")(records) == records
    with pytest.raises(DefinitionError, match="normalize is 'x'; use one of 'none', 'datajuicer'"):
        data.dedup.Exact(normalize="x")
    with pytest.raises(DefinitionError, match="leave ignore_case out"):
        data.dedup.Exact(normalize="datajuicer", ignore_case=True)

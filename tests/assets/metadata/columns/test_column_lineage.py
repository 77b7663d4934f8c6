"""Lineage of columns, and the options that name columns."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import JsonlDataset
from dagster_dataops.assets.metadata.columns.column_lineage import (
    UNKNOWN_ORIGIN,
    ColumnTracer,
    KeyedDatasets,
    as_dagster,
)
from dagster_dataops.assets.metadata.key_options import column_of, written_keys
from dagster_dataops.operators.kinds.kind import RecordOrigin
from tests.assets.metadata.upstream import dataset

UPSTREAM = dg.AssetKey(["docs", "before"])
OTHER = dg.AssetKey(["docs", "other"])


def column_lineage(
    options: dict,
    upstream: KeyedDatasets,
    result: JsonlDataset,
    records: RecordOrigin = RecordOrigin.EACH,
) -> dg.TableColumnLineage:
    return as_dagster(ColumnTracer(options, upstream, result, records).trace())


def deps_of(lineage: dg.TableColumnLineage) -> dict[str, list[str]]:
    found = lineage.deps_by_column
    return {column: [dep.column_name for dep in deps] for column, deps in found.items()}


def traced(
    folder: Path,
    options: dict,
    before: list[Any],
    after: list[Any],
    records: RecordOrigin = RecordOrigin.EACH,
) -> dict[str, tuple[list[str], str]]:
    """Return the origin keys and the note of each column."""
    upstream = [(UPSTREAM, dataset(folder, "before", *before))]
    tracer = ColumnTracer(options, upstream, dataset(folder, "after", *after), records)
    return {o.column: ([key for _, key in o.origins], o.note) for o in tracer.trace()}


def test_a_written_column_depends_on_the_read_columns(tmp_path: Path) -> None:
    before = dataset(tmp_path, "before", {"id": 1, "text": "a"})
    after = dataset(tmp_path, "after", {"id": 1, "text": "a", "upper": "A"})

    lineage = column_lineage(
        {"input_key": "text", "output_key": "upper"}, [(UPSTREAM, before)], after
    )

    assert deps_of(lineage) == {"id": ["id"], "text": ["text"], "upper": ["text"]}


def test_lines_that_are_no_records_do_not_disturb_the_lineage(tmp_path: Path) -> None:
    path = tmp_path / "before.jsonl"
    path.write_bytes(b'not json\n{"text": "a"}\n')
    after = dataset(tmp_path, "after", {"text": "A"})

    lineage = column_lineage({"input_key": "text"}, [(UPSTREAM, JsonlDataset.of_file(path))], after)

    assert deps_of(lineage) == {"text": ["text"]}


def test_a_key_with_a_path_is_shown_whole_and_linked_by_its_column(tmp_path: Path) -> None:
    options = {"input_key": ["meta.lang", "texts[*].body"], "output_key": "found"}
    before = {"meta": {"lang": "en"}, "texts": [{"body": "a"}]}
    upstream = [(UPSTREAM, dataset(tmp_path, "before", before))]
    after = dataset(tmp_path, "after", before | {"found": "en a"})
    origins = {o.column: o for o in ColumnTracer(options, upstream, after).trace()}
    assert [key for _, key in origins["found"].origins] == ["meta.lang", "texts[*].body"]
    assert [dep.column_name for dep in origins["found"].deps] == ["meta", "texts"]


def test_a_write_into_a_column_keeps_its_other_elements(tmp_path: Path) -> None:
    found = traced(
        tmp_path,
        {"input_key": "text", "output_key": "meta.length"},
        [{"text": "a", "meta": {"lang": "en"}}],
        [{"text": "a", "meta": {"lang": "en", "length": 1}}],
    )
    assert found["meta"] == (["meta", "text"], "changed")


def test_columns_are_passed_through_changed_renamed_new_and_dropped(tmp_path: Path) -> None:
    before = [{"id": n, "text": f"t{n}", "old": f"o{n}", "gone": 1} for n in range(5)]
    after = [{"id": n, "text": f"T{n}", "fresh": f"o{n}", "more": n * n} for n in range(5)]
    assert traced(tmp_path, {}, before, after) == {
        "id": (["id"], "passed through"),
        "text": (["text"], f"changed; {UNKNOWN_ORIGIN}"),
        "fresh": (["old"], "renamed"),
        "more": ([], f"new; {UNKNOWN_ORIGIN}"),
        "gone": (["gone"], "dropped"),
    }


def test_a_column_of_one_value_is_not_mistaken_for_another_column(tmp_path: Path) -> None:
    found = traced(tmp_path, {}, [{"old": 1}] * 3, [{"fresh": 1}] * 3)
    assert found == {"fresh": ([], f"new; {UNKNOWN_ORIGIN}"), "old": (["old"], "dropped")}


def test_an_operator_that_only_filters_passes_all_through(tmp_path: Path) -> None:
    before = [{"id": n, "text": f"t{n}"} for n in range(3000)]
    found = traced(tmp_path, {"input_key": "text"}, before, before[::100])
    assert found == {"id": (["id"], "passed through"), "text": (["text"], "passed through")}


def test_a_selection_passes_all_columns_through_for_any_sample(tmp_path: Path) -> None:
    before = [{"id": n} for n in range(5000)]
    found = traced(tmp_path, {"input_key": "id"}, before, before[-2:], RecordOrigin.SAME)
    assert found == {"id": (["id"], "passed through")}


def test_moved_records_of_a_large_input_are_not_reported_as_changed(
    tmp_path: Path,
) -> None:
    before = [{"id": n} for n in range(5000)]
    found = traced(tmp_path, {}, before, before[::-1], "dataset")
    assert found["id"][1].startswith("changed or reordered")
    small = traced(tmp_path, {}, before[:100], before[99::-1], "dataset")
    assert small["id"][1] == "passed through"


def test_a_join_takes_columns_from_the_inputs_whose_values_it_holds(tmp_path: Path) -> None:
    left = dataset(tmp_path, "left", *({"id": n, "text": f"t{n}", "size": 0} for n in range(5)))
    right = dataset(tmp_path, "right", *({"id": n, "size": n + 1} for n in range(5)))
    both = dataset(tmp_path, "both", *({"id": n, "text": f"t{n}", "size": n + 1} for n in range(5)))
    lineage = column_lineage({"on": "id"}, [(UPSTREAM, left), (OTHER, right)], both, "dataset")
    assert lineage.deps_by_column == {
        "id": [dg.TableColumnDep(UPSTREAM, "id"), dg.TableColumnDep(OTHER, "id")],
        "text": [dg.TableColumnDep(UPSTREAM, "text")],
        "size": [dg.TableColumnDep(OTHER, "size")],
    }


def test_partitions_of_one_input_count_as_one(tmp_path: Path) -> None:
    parts = [dataset(tmp_path, f"part{n}", {"id": n}) for n in range(5)]
    after = dataset(tmp_path, "after", *({"id": n} for n in range(5)))
    lineage = column_lineage({}, [(UPSTREAM, part) for part in parts], after)
    assert lineage.deps_by_column == {"id": [dg.TableColumnDep(UPSTREAM, "id")]}


def test_every_path_of_a_selector_counts() -> None:
    assert written_keys({"input_key": "meta.lang, texts[*].body"}) == {
        "meta.lang": ["meta.lang"],
        "texts[*].body": ["texts[*].body"],
    }
    assert written_keys({"input_key": "a,b", "output_key": "c"}) == {"c": ["a", "b"]}
    assert written_keys({"input_key": "no selector."}) == {"no selector.": ["no selector."]}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"input_key": "a"}, {"a": ["a"]}, id="no output key writes in place"),
        pytest.param({"input_key": "a", "output_key": "b"}, {"b": ["a"]}, id="one to one"),
        pytest.param(
            {"input_key": ["a", "b"], "output_key": "c"}, {"c": ["a", "b"]}, id="many to one"
        ),
        pytest.param(
            {"input_key": ["a", "b"], "output_key": ["c", "d"]},
            {"c": ["a"], "d": ["b"]},
            id="pair by pair",
        ),
        pytest.param({"input_key": None, "output_key": "b"}, {}, id="unknown input"),
        pytest.param({}, {}, id="no convention"),
    ],
)
def test_written_keys_follow_the_convention(options: dict, expected: dict) -> None:
    assert written_keys(options) == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [("meta.lang", "meta"), ("texts[*].body", "texts"), ("a.b", "a.b"), (".x", ".x"), ("c", "c")],
)
def test_a_key_leads_into_a_column(key: str, expected: str) -> None:
    assert column_of(key, {"meta", "texts", "a.b"}) == expected

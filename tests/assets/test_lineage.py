"""Column lineage of the input_key/output_key convention."""

from pathlib import Path

import dagster as dg
import pytest

from dagster_dataops.assets.lineage import column_lineage, written_keys
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.writing import write_records

UPSTREAM = dg.AssetKey(["docs", "before"])


def dataset(folder: Path, name: str, *records: object) -> JsonlDataset:
    return write_records(folder / f"{name}.jsonl", records, name)


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


def test_a_written_column_comes_from_what_was_read(tmp_path: Path) -> None:
    before = dataset(tmp_path, "before", {"id": 1, "text": "a"})
    after = dataset(tmp_path, "after", {"id": 1, "text": "a", "upper": "A"})

    lineage = column_lineage(
        {"input_key": "text", "output_key": "upper"}, [(UPSTREAM, before)], after
    )

    assert lineage is not None
    found = {
        column: [dep.column_name for dep in deps] for column, deps in lineage.deps_by_column.items()
    }
    assert found == {"id": ["id"], "text": ["text"], "upper": ["text"]}


def test_lines_that_are_no_records_do_not_disturb_the_lineage(tmp_path: Path) -> None:
    path = tmp_path / "before.jsonl"
    path.write_bytes(b'not json\n{"text": "a"}\n')
    after = dataset(tmp_path, "after", {"text": "A"})

    lineage = column_lineage({"input_key": "text"}, [(UPSTREAM, JsonlDataset.of_file(path))], after)

    assert lineage is not None
    assert set(lineage.deps_by_column) == {"text"}


def test_operators_outside_the_convention_have_no_lineage(tmp_path: Path) -> None:
    before = dataset(tmp_path, "before", {"text": "a"})

    assert column_lineage({"threshold": 3}, [(UPSTREAM, before)], before) is None


def test_partitions_of_one_asset_are_one_origin_with_the_columns_of_all(tmp_path: Path) -> None:
    first = dataset(tmp_path, "first", {"text": "a"})
    second = dataset(tmp_path, "second", {"text": "b", "extra": 1})
    after = dataset(tmp_path, "after", {"text": "a"}, {"text": "b", "extra": 1})

    lineage = column_lineage({"input_key": "text"}, [(UPSTREAM, first), (UPSTREAM, second)], after)

    assert lineage is not None
    found = {
        column: [dep.column_name for dep in deps] for column, deps in lineage.deps_by_column.items()
    }
    assert found == {"text": ["text"], "extra": ["extra"]}

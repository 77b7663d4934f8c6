from pathlib import Path

import pytest

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.given_records import given_records


def test_records_are_given_as_a_list_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "given.jsonl"
    path.write_text('{"a": 1}\n\n{"a": 2}\n')
    for given in (path, str(path), [{"a": 1}, {"a": 2}]):
        assert list(given_records("table", given)) == [{"a": 1}, {"a": 2}]


def test_others_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="table is a list whose element 1 is a str"):
        list(given_records("table", [{}, "x"]))
    with pytest.raises(DefinitionError, match="table is .*missing.jsonl', which cannot be read"):
        list(given_records("table", tmp_path / "missing.jsonl"))

from pathlib import Path

import pytest

from dagster_dataops.library.sorting import external_sort
from dagster_dataops.library.sorting.external_sort import ExternalSort


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("max_bytes", [1, 3000, 1 << 20])
def test_entries_are_sorted_with_any_memory_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_bytes: int, reverse: bool
) -> None:
    monkeypatch.setattr(external_sort, "_MOST_RUNS", 5)
    keys = [(n * n % 17, str(n % 3)) for n in range(200)]
    sort = ExternalSort(tmp_path, max_bytes, reverse=reverse)
    for number, key in enumerate(keys):
        sort.add(key, b"%d" % number)
    numbers = sorted(range(200), key=lambda number: keys[number], reverse=reverse)
    for _ in range(2):
        assert [int(data) for _, _, data in sort] == numbers
    assert len(list(tmp_path.iterdir())) < 6
    assert bool(list(tmp_path.iterdir())) == (max_bytes < 1 << 20)


def test_keys_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    sort = ExternalSort(tmp_path, 1 << 20)
    sort.add((1,), b"")
    sort.add(("a",), b"")
    with pytest.raises(TypeError, match="not supported"):
        list(sort)

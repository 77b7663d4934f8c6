import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops.errors import StorageError
from dagster_dataops.library.sorting.external_sort import Entry, ExternalSort

KEYS = st.binary(max_size=3).map(lambda key: key + bytes(3 - len(key)))


@given(
    entries=st.lists(st.tuples(KEYS, st.binary(max_size=200))),
    max_bytes=st.sampled_from([0, 300, 2000, 1 << 20]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_entries_are_sorted_and_equal_keys_stay_in_order(
    tmp_path: Path, entries: list[tuple[bytes, bytes]], max_bytes: int
) -> None:
    sorted_entries = ExternalSort(tmp_path, max_bytes)
    for key, data in entries:
        sorted_entries.add(key, data)
    numbered = [Entry(key, number, data) for number, (key, data) in enumerate(entries, 1)]
    expected = sorted(numbered, key=lambda entry: (entry.key, entry.number))
    assert list(sorted_entries) == expected
    assert list(sorted_entries) == expected
    assert list(sorted_entries.data()) == [entry.data for entry in expected]


def test_many_files_are_merged_in_several_steps(tmp_path: Path) -> None:
    entries = ExternalSort(tmp_path, 1)
    numbers = [number * 7919 % 5000 for number in range(5000)]
    for number in numbers:
        entries.add(number.to_bytes(8), b"")
    assert [int.from_bytes(entry.key) for entry in entries] == list(range(5000))
    assert len(list(tmp_path.iterdir())) <= 64


def test_a_disk_that_refuses_is_named(tmp_path: Path) -> None:
    entries = ExternalSort(tmp_path / "missing", 1, name="left")
    with pytest.raises(StorageError, match="missing/left-000000: cannot write"):
        entries.add(b"a", b"")


_PEAK = """
import resource, sys, tempfile
from pathlib import Path
import orjson
from dagster_dataops.library.sorting.external_sort import ExternalSort

count, size, entries = int(sys.argv[1]), int(sys.argv[2]), ExternalSort(
    Path(tempfile.mkdtemp(dir=sys.argv[3])), 32 << 20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for number in range(count):
    line = orjson.dumps({"id": number, "text": "x" * size})
    entries.add((number * 7919 % count).to_bytes(8), line)
assert sum(1 for _ in entries) == count
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize(("count", "size"), [(400_000, 10), (200_000, 180), (30_000, 3000)])
def test_memory_stays_below_the_limit(tmp_path: Path, count: int, size: int) -> None:
    run = [sys.executable, "-c", _PEAK, str(count), str(size), str(tmp_path)]
    found = subprocess.run(run, check=True, capture_output=True, text=True)
    assert int(found.stdout) <= 32 << 10  # KB

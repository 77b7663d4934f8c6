from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops.library.dedup.algorithms.repeated_parts import pack_parts, repeated_parts
from tests.examples import at_most


@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "c", "", " "]), max_size=5), max_size=20),
    st.sampled_from([0, 600, 1 << 20]),
)
@settings(max_examples=at_most(60))
def test_parts_that_occurred_before_are_numbered(records, max_bytes) -> None:
    seen: set[str] = set()
    expected = []
    for record in records:
        repeats = []
        for number, part in enumerate(record):
            if part.strip() and part in seen:
                repeats.append(number)
            seen.add(part)
        expected.append(repeats)
    with TemporaryDirectory() as folder:
        packed = map(pack_parts, records)
        assert list(repeated_parts(packed, Path(folder), max_bytes)) == expected

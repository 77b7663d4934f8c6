from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.library.sorting.keyed_lines import KeyedLines

# Also digests whose end and the position after them look like the digest of another line.
DIGESTS = st.binary(min_size=16, max_size=16) | st.sampled_from(
    [bytes(16), bytes(15) + b"\1", bytes(8) + b"\1" + bytes(7), b"\xff" * 16]
)


@given(st.lists(st.tuples(st.none() | DIGESTS, st.binary(max_size=9))), DIGESTS)
def test_lines_are_found_by_their_digests(
    rows: list[tuple[bytes | None, bytes]], other: bytes
) -> None:
    lines, expected = KeyedLines(), defaultdict(list)
    written = []
    for digest, content in rows:
        line = content.replace(b"\n", b"") + b"\n"
        lines.add(digest, line)
        written.append(line)
        if digest is not None:
            expected[digest].append(line)
    lines.sort()
    for digest in [*expected, other]:
        assert [lines.line(place) for place in lines.places(digest)] == expected.get(digest, [])
    assert [line for _, line in lines] == written
    assert lines.size == sum(map(len, written)) + 24 * sum(map(len, expected.values()))
    lines.clear()
    assert (list(lines), lines.size) == ([], 0)

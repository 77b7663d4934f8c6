import xxhash

from dagster_dataops.checkpoints.journal.finished_span import FinishedSpan
from tests.journals import checksum


def _settled(output: bytes, errors: bytes, source: memoryview | None = None) -> FinishedSpan:
    return FinishedSpan.of(
        70,
        9,
        records=3,
        emitted=1,
        dropped=1,
        failed=1,
        output=output,
        errors=errors,
        source=source,
    )


def test_a_span_holds_its_input_position_and_output_size() -> None:
    span = _settled(b'{"n":1}\n', b'{"e":"rror"}\n').span
    assert (span.start, span.length) == (70, 9)
    assert (span.records, span.emitted, span.dropped, span.failed) == (3, 1, 1, 1)
    assert (span.output_bytes, span.error_bytes) == (8, 13)


def test_the_checksum_is_that_of_output_and_errors_as_they_lie_in_a_row() -> None:
    settled = _settled(b'{"n":1}\n', b'{"e":"rror"}\n')
    assert settled.span.output_check == checksum(b'{"n":1}\n{"e":"rror"}\n')
    assert settled.span.output_check != checksum(b'{"e":"rror"}\n{"n":1}\n')
    assert _settled(b'{"n":1}\n', b"").span.output_check == checksum(b'{"n":1}\n')


def test_the_input_has_a_checksum_only_on_request() -> None:
    digest = xxhash.xxh3_64_intdigest(b"{}\n{}\n{}\n") & 0xFFFFFFFF
    source = memoryview(b"xx{}\n{}\n{}\n")[2:]
    assert _settled(b"", b"", source).span.input_check == digest
    assert _settled(b"", b"").span.input_check == 0


def test_output_is_handed_over_and_not_copied() -> None:
    output = bytearray(b'{"n":1}\n')
    assert _settled(output, b"").output is output  # type: ignore[arg-type]

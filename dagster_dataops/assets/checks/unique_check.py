"""RepeatsWatch: whether no two records agree in their key, among more than memory holds."""

import tempfile
import weakref
from collections.abc import Iterator, Sequence
from itertools import compress, count, islice
from operator import not_
from pathlib import Path
from typing import IO, Final

import orjson
import xxhash
from typing_extensions import override

from dagster_dataops.assets.checks.findings import EXAMPLES, Finding, Offences
from dagster_dataops.assets.checks.inspectors import Inspected, RecordsWatch, offending
from dagster_dataops.datasets.lines import content_interval, iterate_lines
from dagster_dataops.records import Record, decode

_DIGEST_BYTES: Final = 16
_IN_MEMORY: Final = 32 << 20  # bytes of digests, two million of them; beyond that in a file
_MOST_BYTES: Final = 64 << 20  # for finding repeats among them
_READ_BYTES: Final = _DIGEST_BYTES << 12


class RepeatsWatch(RecordsWatch):
    """Whether no two records agree in ``keys``.

    Those that lack one of them, or have null there, agree with none.

    Compared are digests of 128 bits. They take 16 bytes a record, beyond two million records on
    disk, and at most about 100 MB of memory altogether.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys
        self._digests: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        weakref.finalize(self, self._digests.close)  # where a bad file keeps it from being read
        self._write = self._digests.write

    @override
    def see(self, start: int, record: Record) -> None:
        values = [record.get(key) for key in self._keys]
        if None in values:
            self.see_bad_line(start, "")
        else:
            self._write(xxhash.xxh3_128_digest(orjson.dumps(values)))

    @override
    def see_bad_line(self, start: int, problem: str) -> None:
        self._write(xxhash.xxh3_128_digest(b"at %d" % start))  # like no other

    @override
    def finding(self, inspected: Inspected) -> Finding:
        from dagster_dataops.library.algorithms.first_seen import (
            first_of_equals,  # registers its operators
        )

        with self._digests, tempfile.TemporaryDirectory(prefix="dataops-") as scratch:
            self._digests.seek(0)
            from dagster_dataops.library.algorithms.first_seen import (
                first_of_equals,  # all operators come with it
            )

            firsts = first_of_equals(_read(self._digests), Path(scratch), _MOST_BYTES)
            repeats = compress(count(), map(not_, firsts))
            shown = list(islice(repeats, EXAMPLES))
            further = sum(1 for _ in repeats)
        offences = Offences()
        for start, record in _records_at(inspected.dataset.path, shown):
            values = {key: record[key] for key in self._keys}
            value = values if len(values) > 1 else next(iter(values.values()))
            offences.add(start, "an earlier record has the same", value)
        offences.count += further
        return offending(offences, inspected, "repeat an earlier one")


def _read(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(_READ_BYTES):
        for start in range(0, len(block), _DIGEST_BYTES):
            yield block[start : start + _DIGEST_BYTES]


def _records_at(path: Path, positions: Sequence[int]) -> Iterator[tuple[int, Record]]:
    """Yield the records at ``positions``, which rise from 0, each with where its line starts."""
    with path.open("rb") as file:
        lines = iterate_lines(file.fileno(), [content_interval(path)])
        done = 0
        for position in positions:
            line = next(islice(lines, position - done, None))
            done = position + 1
            yield line.start, decode(line.text)

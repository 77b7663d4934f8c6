"""`ResultSide`: a result of a node, read record by record of its input."""

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from dagster_dataops.checkpoints.versions.version import ResultVersion
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.lines import BLOCK_BYTES, line_blocks, opened_content, split_lines
from dagster_dataops.errors import TraceError
from dagster_dataops.operators.kinds.kind import Tracing
from dagster_dataops.operators.kinds.kind_table import kind_named
from dagster_dataops.pipelines.tracing.record_map import KeptMap, LineMap, lines_emitted


class Outcome(NamedTuple):
    """The outcome of an input record.

    ``disposition`` is ``None`` if it failed.
    """

    record: int
    disposition: bytes | None
    lines: list[bytes]


class OutcomeBlock(NamedTuple):
    """The outcomes of consecutive input records."""

    first: int
    dispositions: list[bytes | None]
    lines: list[bytes]
    counts: list[int]

    def each(self) -> Iterator[Outcome]:
        """Yield the outcome of each record."""
        start = 0
        for number, (disposition, count) in enumerate(
            zip(self.dispositions, self.counts, strict=True)
        ):
            yield Outcome(self.first + number, disposition, self.lines[start : start + count])
            start += count


class ResultSide:
    """A result, read once from its start to its end.

    Raises:
        TraceError: The map from its input to its lines was switched off, is missing or damaged.
    """

    def __init__(self, version: ResultVersion, output: str) -> None:
        self._version = version
        self._place = version.results[output]
        names = list(version.manifest.outputs)
        self._number = names.index(output) if names else None
        self._lines = lines_of_result(self._place)
        self._dispositions = _map_of(version).outcomes()
        self._record = 0
        self._count = cache(self._count_of)

    def take(self, most: int) -> OutcomeBlock:
        """Return the outcomes of the next records, in the order of the input.

        Raises:
            TraceError: The result has fewer lines than its map tells.
        """
        dispositions = list(islice(self._dispositions, most))
        counts = list(map(self._count, dispositions))
        expected = sum(counts)
        lines = list(islice(self._lines, expected))
        if len(lines) < expected or len(dispositions) < most:
            reason = "it has fewer lines than the map from its input to them; run the node again"
            raise TraceError(str(self._place.location), reason)
        self._record += most
        return OutcomeBlock(self._record - most, dispositions, lines, counts)

    def _count_of(self, disposition: bytes | None) -> int:
        return 0 if disposition is None else lines_emitted(disposition, self._number)


def why_not_by_record(version: ResultVersion) -> str:
    """Return why the lines of a result cannot be matched by input records; empty if they can."""
    manifest = version.manifest
    kind = kind_named(manifest.kind)
    if not manifest.operator:
        return "it is a source, without an input"
    if kind.trace is Tracing.POSITION:
        return "a stream is read as a whole"
    if kind.trace is Tracing.NONE:
        return kind.as_a_whole
    if not (manifest.traced or manifest.mapped):
        return "_trace=False switched off the map from its input to its lines"
    return ""


def lines_of_result(dataset: JsonlDataset) -> Iterator[bytes]:
    """Yield the lines of a result, without white space around them."""
    with opened_content(dataset.location) as (source, content):
        for _, block in line_blocks(source, content, BLOCK_BYTES):
            yield from filter(None, map(bytes.strip, split_lines(block)))


def _map_of(version: ResultVersion) -> KeptMap | LineMap:
    if version.manifest.mapped:
        return KeptMap(version.folder, version.manifest)
    return LineMap()

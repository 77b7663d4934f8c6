"""TracedNode: a published node with its inputs, and the map between their records."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from dagster_dataops.checkpoints.folder.manifest import (
    Manifest,
    NodeFolder,
    unreadable,
)
from dagster_dataops.checkpoints.journal.frames import FORMAT
from dagster_dataops.checkpoints.journal.journal_reader import is_read, noted_format
from dagster_dataops.checkpoints.places.placement import place_of_file
from dagster_dataops.datasets.published_files import MANIFEST, manifest_of
from dagster_dataops.datasets.remote_input import input_location
from dagster_dataops.errors import InputError, TraceError, TraceOutdatedError
from dagster_dataops.foundation.hashing.file_digests import cached_digest
from dagster_dataops.foundation.places.bucket import Location, StoreBucket
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.opening import exists, state_at
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.kinds.kind import Tracing
from dagster_dataops.operators.kinds.kind_table import kind_named
from dagster_dataops.pipelines.tracing.record_file import FoundLine, RecordFile
from dagster_dataops.pipelines.tracing.record_map import (
    KeptMap,
    LineMap,
    MapEntry,
    failed_indices,
    find_error_row,
)
from dagster_dataops.streams.item_origins import ItemOrigins


class Ref(NamedTuple):
    """A record of a file; records are counted from 0."""

    path: Location
    record: int


class NodeEntry(NamedTuple):
    """Output of a node for a record, or for the records of a batch or a row.

    Attributes:
        given: The records.
        made: The lines, the first thousand, each with the name of its output.
        fields: The disposition.
        error: The row of the error file, if the record failed.
        left_out: Number of the other lines.
    """

    given: Sequence[Ref]
    made: Sequence[tuple[Ref, str]]
    fields: dict[str, Any]
    error: dict[str, Any] | None = None
    left_out: int = 0


@dataclass(frozen=True)
class TracedInput:
    """A file that a node reads."""

    path: Location
    facts: dict[str, Any]

    @property
    def is_ours(self) -> bool:
        """Whether this package wrote the file; then no line is blank."""
        return _is_ours(self.path)

    @property
    def rows(self) -> int:
        """The number of its records.

        Raises:
            TraceError: It is not known, as the file is gone.
        """
        rows = self.facts.get("rows")
        if rows is not None:
            return int(rows)
        if not exists(self.path):
            raise TraceError(str(self.path), "the file is gone, so its records cannot be counted")
        return records_in(self.path).count()

    def check(self, reader: str) -> None:
        """Check that the file is the one that a node has read.

        Raises:
            TraceOutdatedError: It was changed since.
        """
        try:
            state = state_at(self.path)
        except (OSError, InputError):
            return  # a temporary file, such as the records of a call in Python
        if not self._is_in(state):
            reason = (
                f"node {reader} read another version of {self.path}: the file has changed since; "
                "run the node again, then trace its new result"
            )
            raise TraceOutdatedError(str(self.path), reason)

    def _is_in(self, state: FileState) -> bool:
        """Return whether the file has the content that was read."""
        facts = self.facts
        known: str = facts["fingerprint"]
        if not known:
            return [state.size, state.modified_ns] == [facts["size_bytes"], facts["modified_ns"]]
        if isinstance(self.path, Path):
            manifest = Manifest.load(manifest_of(self.path))
            if manifest is not None and manifest.tells_of(self.path):
                return manifest.fingerprint == known
        return cached_digest(self.path, state) == known


def records_in(path: Location) -> RecordFile:
    """Return the records of a file."""
    return RecordFile(path, ours=_is_ours(path))


def _is_ours(path: Location) -> bool:
    return isinstance(path, Path) and Manifest.load(manifest_of(path)) is not None


def lines_of(refs: Iterable[Ref], longest: int | None = None) -> dict[Ref, FoundLine]:
    """Return the lines of records, cut to ``longest`` bytes, without those of missing files."""
    wanted: dict[Location, set[int]] = {}
    for ref in refs:
        wanted.setdefault(ref.path, set()).add(ref.record)
    by_ref: dict[Ref, FoundLine] = {}
    for path, indices in wanted.items():
        if exists(path):
            lines = records_in(path).find(indices, longest)
            by_ref |= {Ref(path, index): line for index, line in lines.items()}
    return by_ref


def _at_hand(location: Location, node: NodeFolder) -> Location:
    """Return where an input is; the copy of a result in the bucket of the node is refreshed."""
    if isinstance(location, Path):
        place_of_file(node.located(location)).refresh()
    return location


def _loaded(path: Path, bucket: StoreBucket | None) -> Manifest | None:
    """Return the manifest at a path, if it is there and whole; refuse other formats.

    Args:
        path: The path, which may be in the working copy of a bucket.
        bucket: The bucket.
    """
    manifest = Manifest.load(Root(path.parent, bucket).located(path))
    if manifest is not None and is_read(noted_format(manifest.made_from)):
        return manifest
    if other := unreadable(path):
        reason = f"the manifest has format {other}; this version reads {FORMAT}; run the node again"
        raise TraceError(str(path), reason)
    return manifest


class TracedNode:
    """A published node.

    Attributes:
        name: Its name.
        operator: Qualified name of its operator.
        inputs: Its inputs, in order.
        results: The path of each of its results, by the name of the output; one without a name if
            there are no named outputs.
    """

    def __init__(self, folder: NodeFolder, manifest: Manifest) -> None:
        self.folder = folder
        self.name = folder.name
        self.operator = manifest.operator
        self.inputs = [
            TracedInput(_at_hand(input_location(source), folder), source)
            for source in manifest.inputs
        ]
        self._manifest = manifest
        self._parts = manifest.parts(folder)
        self.results = {name: place.result for name, (place, _) in self._parts.items()}

    @classmethod
    def of_result(cls, result: Location, bucket: StoreBucket | None) -> "TracedNode | None":
        """Return the node that published a result; ``None`` if its file has no inputs to trace.

        That is so for a file that this package did not write, and for a source: a function, or a
        stream without inputs.
        """
        if not isinstance(result, Path):
            return None
        path = manifest_of(result)
        manifest = _loaded(path, bucket)
        if manifest is None or not (manifest.operator and manifest.inputs):
            return None
        if manifest.part_of:
            path = Path(os.path.normpath(result.parent / manifest.part_of))
            return cls.of_manifest(path, bucket)
        return cls._of(path, manifest, bucket)

    @classmethod
    def of_manifest(cls, path: Path, bucket: StoreBucket | None) -> "TracedNode":
        """Return the node with this manifest, which may be in the working copy of a bucket.

        Raises:
            TraceError: It is missing or malformed.
        """
        manifest = _loaded(path, bucket)
        if manifest is None:
            raise TraceError(str(path), "the manifest is missing or damaged; run the node again")
        return cls._of(path, manifest, bucket)

    @classmethod
    def _of(cls, path: Path, manifest: Manifest, bucket: StoreBucket | None) -> "TracedNode":
        folder = Root(path.parent, bucket).at(path.parent)
        return cls(NodeFolder.of(folder, path.name.removesuffix(MANIFEST)), manifest)

    @property
    def files(self) -> set[Path]:
        """The files of the node that a trace may read."""
        folder, results = self.folder, self.results.values()
        return {folder.manifest, folder.kept, folder.errors, *results, *map(manifest_of, results)}

    def check_input(self, path: Location) -> None:
        """Check that an input is the one that the node has read.

        Raises:
            TraceOutdatedError: It was changed since.
        """
        for source in self.inputs:
            if source.path == path:
                source.check(self.name)

    def check_result(self, result: Location) -> None:
        """Check that a result is the published one.

        Raises:
            TraceOutdatedError: It was edited, replaced or deleted.
        """
        for place, part in self._parts.values():
            if place.result == result and not part.tells_of(place.result):
                change = "edited or replaced" if place.result.exists() else "deleted"
                reason = f"it was {change} after run {part.run} published it; run the node again"
                raise TraceOutdatedError(str(result), reason)

    @property
    def _trace(self) -> Tracing:
        return kind_named(self._manifest.kind).trace

    @property
    def end(self) -> str:
        """Why the node ends a trail; empty if it does not.

        Raises:
            TraceError: The description of its stream is damaged.
        """
        manifest = self._manifest
        kind = kind_named(manifest.kind)
        if kind.trace is Tracing.RECORD:
            return ""
        if kind.trace is Tracing.NONE:
            return kind.as_a_whole
        if not manifest.combined:
            return "stages of this stream do more than choose records by position"
        if manifest.failed:
            return f"{counted(manifest.failed, 'items')} of the stream failed"
        left_out = len(self._origins) - manifest.rows_out
        return f"a function left out {counted(left_out, 'items')} of the stream" if left_out else ""

    def _check_traced(self) -> None:
        """Check that the map was not switched off."""
        manifest = self._manifest
        if manifest.traced or manifest.mapped or self._trace is Tracing.NONE:
            return
        reason = (
            f"node {self.name} ({self.operator}) has _trace=False: its map from input records to "
            "result lines was switched off. Leave the setting out and run the node again, in plain "
            "Python with config.data_process_resume = False"
        )
        raise TraceError(str(self.folder.path), reason)

    def entry_of_line(self, result: Location, line: int) -> NodeEntry | None:
        """Return the entry of the records that a line was made of; ``None`` if the trail ends.

        Raises:
            TraceError: The map was switched off, or cannot be read.
        """
        self._check_traced()
        if self.end:
            return None
        if self._trace is Tracing.POSITION:
            return self._combined(line)
        output = [path == result for path in self.results.values()].index(True)
        return self._entry(self._map.of_line(output, line))

    def entries_of_record(self, ref: Ref) -> list[NodeEntry] | None:
        """Return the entries that hold a record of an input; ``None`` if the trail ends.

        Raises:
            TraceError: The map was switched off, or cannot be read.
        """
        self._check_traced()
        if self.end:
            row = self._refused(ref)
            return None if row is None else [NodeEntry([ref], (), {"failed": True}, row)]
        numbers = [at for at, source in enumerate(self.inputs) if source.path == ref.path]
        if self._trace is Tracing.POSITION:
            # A stream knows a file that it reads twice only once.
            lines = dict.fromkeys(self._origins.items_of(numbers[0], ref.record))
            entries = [self._combined(line) for line in lines]
            return entries or [NodeEntry([ref], (), {"emitted": 0})]
        records = [self._starts[number] + ref.record for number in numbers]
        return [self._entry(self._map.of_record(record)) for record in records]

    def dropped(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield each dropped record, in order: its index in the joined inputs, its disposition.

        Raises:
            TraceError: The map was switched off, or cannot be read.
        """
        self._check_traced()
        if self._trace is Tracing.RECORD and isinstance(self._map, KeptMap):
            yield from self._map.dropped()

    def _refused(self, ref: Ref) -> dict[str, Any] | None:
        """Return the row of a line that is no record, for an operator that takes all at once."""
        if self._trace is not Tracing.NONE or not self.folder.errors.exists():
            return None
        row = find_error_row(self.folder, ref.record, ref.path)
        if row is None and len(self.inputs) > 1:  # they were joined
            number = [source.path for source in self.inputs].index(ref.path)
            row = find_error_row(self.folder, self._starts[number] + ref.record, self.folder.input)
        return row

    def parts_entered(self, fields: dict[str, Any]) -> tuple[tuple[str, int], ...]:
        """Return the parts of a chain that records entered, each with their number."""
        names = [str(row["name"]) for row in self._manifest.funnel]
        return tuple(zip(names, fields.get("entered", ()), strict=False))

    def _entry(self, entry: MapEntry) -> NodeEntry:
        names = list(self.results.items())
        results = [(Ref(names[output][1], line), names[output][0]) for output, line in entry.lines]
        records = [self.ref_of(record) for record in entry.records]
        error = find_error_row(self.folder, entry.records[0]) if "failed" in entry.fields else None
        return NodeEntry(records, results, entry.fields, error, entry.left_out)

    def _combined(self, line: int) -> NodeEntry:
        (result,) = self.results.values()
        origins = self._origins.of_item(line)
        records = [Ref(self.inputs[number].path, record) for number, record in origins]
        return NodeEntry(records, [(Ref(result, line), "")], {})

    def ref_of(self, record: int) -> Ref:
        """Return a record of the joined inputs as a record of its input."""
        number = max(at for at, start in enumerate(self._starts) if start <= record)
        return Ref(self.inputs[number].path, record - self._starts[number])

    @cached_property
    def _origins(self) -> ItemOrigins:
        try:
            return ItemOrigins(self._manifest.combined, [source.rows for source in self.inputs])
        except ValueError as error:
            reason = f"the description of its stream is damaged ({error}); run the node again"
            raise TraceError(str(self.folder.path), reason) from None

    @cached_property
    def _starts(self) -> list[int]:
        """The number of records before those of each input."""
        if len(self.inputs) == 1:
            return [0]
        return list(accumulate((source.rows for source in self.inputs[:-1]), initial=0))

    @cached_property
    def _map(self) -> KeptMap | LineMap:
        if self._manifest.mapped:
            return KeptMap(self.folder, self._manifest)
        failed_indices(self.folder, self._manifest)
        return LineMap()

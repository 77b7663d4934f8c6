"""trace: follow a record back to its source line, or a source line to its records.

Both directions collect the results of each record in each node as `NodeEntry`, without reading a
record. At the end the texts of all lines are read, file by file.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath
from typing import Final

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.configuration import folder_at
from dagster_dataops.datasets.published_files import MANIFEST
from dagster_dataops.errors import ResultMissingError, TraceError
from dagster_dataops.foundation.places.bucket import BucketFile, Location, StoreBucket
from dagster_dataops.foundation.places.opening import exists
from dagster_dataops.pipelines.tracing.crude_origins import crude_files, packed_keys, restore_key_of
from dagster_dataops.pipelines.tracing.record_file import FoundLine
from dagster_dataops.pipelines.tracing.record_map import MOST_LINES
from dagster_dataops.pipelines.tracing.traced_node import (
    NodeEntry,
    Ref,
    TracedNode,
    lines_of,
    records_in,
)
from dagster_dataops.pipelines.tracing.trail import (
    Place,
    Step,
    Trace,
    TrailEnd,
    outcome_of,
    reasons_of,
)
from dagster_dataops.pipelines.tracing.unchanged_files import unchanged

_GONE: Final = (
    "the file is not there: it was deleted or moved, another machine has it, or it was temporary, "
    "as are the records that a call in Python was given, the result of a node with "
    "_save_data=False, and partitions that were joined to one of several inputs"
)


def trace(
    folder: str | os.PathLike[str],
    line: int | None = None,
    *,
    source_line: int | None = None,
    source: str | os.PathLike[str] | None = None,
) -> Trace:
    """Return the source line of a record, or the records that a source line became.

    The answer is read from the manifests, maps and results below the root; no operator is run.

    Args:
        folder: The folder of a node, of one of its partitions or of one of its named outputs, or
            the path of a result; or its URL.
        line: The line of its result to trace back, counted from 1.
        source_line: The line of a source to follow to that result, counted from 1.
        source: The source of this line, if there are several: its path or file name. The result
            of another node before ``folder`` also counts as a source: its path, or the name of
            the node.

    Raises:
        TraceError: Not exactly one of ``line`` and ``source_line`` is given, there is no such line,
            the source is not unique, or a map was switched off or is damaged.
        TraceOutdatedError: A file has changed since a node read or published it.
        ResultMissingError: Nothing is published in ``folder``.
    """
    if (line is None) == (source_line is None):
        reason = "give either a line of the result, or source_line, a line of a source"
        raise TraceError(str(folder), reason)
    results, bucket = _results_in(folder)
    if line is not None and len(results) > 1:
        names = ", ".join(str(result.parent) for result in results)
        reason = f"the node has several results; give the folder of one of them: {names}"
        raise TraceError(str(folder), reason)
    with unchanged(results, bucket):
        if line is not None:
            return _Backward(results[0], bucket).trace(line)
        return _Forward(results, bucket).trace(source_line or 0, source)


def _results_in(folder: str | os.PathLike[str]) -> tuple[list[Path], StoreBucket | None]:
    """Return the result in a folder, or the results of a node with several, and their bucket.

    Links to the folder are followed, since named outputs know their node by a relative path.
    """
    absolute = folder_at(folder).path
    place = absolute.parent.resolve() / absolute.name if absolute.is_file() else absolute.resolve()
    root = folder_at(place)
    try:
        return [NodeFolder.at(root).result], root.bucket
    except ResultMissingError:
        for path in sorted(place.glob(f"*{MANIFEST}")):
            manifest = Manifest.load(root.located(path))
            if manifest is not None and manifest.outputs:
                node = TracedNode.of_manifest(path, root.bucket)
                return list(node.results.values()), root.bucket
        raise


@dataclass
class _Walk:
    """The entries of a trace, and the lines that they mention."""

    entries: list[tuple[TracedNode, NodeEntry]] = field(default_factory=list)
    ends: list[tuple[TracedNode | None, Ref, str]] = field(default_factory=list)
    sources: list[Ref] = field(default_factory=list)
    results: list[Ref] = field(default_factory=list)

    def written(self) -> Trace:
        """Return the trace, with the text of every line that it mentions."""
        refs = [*self.sources, *self.results, *(ref for _, ref, _ in self.ends)]
        for _, entry in self.entries:
            refs += [*entry.given, *(ref for ref, _ in entry.made)]
        lines = lines_of(refs)
        alone = [ref for _, entry in self.entries if len(entry.given) == 1 for ref, _ in entry.made]
        return Trace(
            tuple(_place(ref, lines) for ref in self.sources),
            tuple(_step(node, entry, lines) for node, entry in self.entries),
            tuple(_place(ref, lines) for ref in self.results),
            tuple(
                TrailEnd(
                    node.name if node else ref.path.name,
                    node.operator if node else "source",
                    _place(ref, lines),
                    reason,
                )
                for node, ref, reason in self.ends
            ),
            crude_files(_place(ref, lines).text for ref in [*self.sources, *alone]),
        )


def _place(ref: Ref, lines: Mapping[Ref, FoundLine], output: str = "") -> Place:
    line = lines.get(ref)
    if line is None:
        return Place(str(ref.path), ref.record + 1, None, output)
    return Place(str(ref.path), line.number, line.text.decode(errors="replace"), output)


def _step(node: TracedNode, entry: NodeEntry, lines: Mapping[Ref, FoundLine]) -> Step:
    return Step(
        node=node.name,
        operator=node.operator,
        given=tuple(_place(ref, lines) for ref in entry.given),
        made=tuple(_place(ref, lines, output) for ref, output in entry.made),
        outcome=outcome_of(entry.fields, len(entry.given), len(entry.made)),
        reasons=reasons_of(entry.fields),
        part=str((entry.error or {}).get("part", "")),
        entered=node.parts_entered(entry.fields),
        error=entry.error,
        left_out=entry.left_out,
    )


class _Backward:
    """Follows a line of a result back to the sources."""

    def __init__(self, result: Path, bucket: StoreBucket | None) -> None:
        self._result = result
        self._bucket = bucket
        self._nodes: dict[Location, TracedNode | None] = {}
        self._seen: set[Ref] = set()
        self._walk = _Walk()

    def trace(self, line: int) -> Trace:
        """Return the trace of a line, counted from 1.

        Raises:
            TraceError: There is no such line.
        """
        ref = _ref_of(self._result, line)
        self._walk.results.append(ref)
        waiting = [ref]
        while waiting:
            waiting = list(self._before(waiting))
        self._walk.entries = _in_order(self._walk.entries)
        return self._walk.written()

    def _before(self, refs: Iterable[Ref]) -> Iterator[Ref]:
        """Yield the records that lines were made of."""
        for ref in refs:
            if ref in self._seen:
                continue
            self._seen.add(ref)
            node = self._node(ref.path)
            if node is None:
                self._walk.sources.append(ref)
                if not exists(ref.path):
                    self._walk.ends.append((None, ref, _GONE))
                continue
            node.check_result(ref.path)
            entry = node.entry_of_line(ref.path, ref.record)
            if entry is None:
                self._walk.ends.append((node, ref, node.end))
            elif len(self._walk.entries) >= MOST_LINES:
                reason = f"it was made of more records than the {MOST_LINES:,} that are followed"
                self._walk.ends.append((node, ref, reason))
                return
            else:
                yield from self._take(node, _of_pack(ref, entry))

    def _take(self, node: TracedNode, entry: NodeEntry) -> Sequence[Ref]:
        """Add an entry; return the records that it was made of."""
        for path in {ref.path for ref in entry.given}:
            node.check_input(path)
        self._walk.entries.append((node, entry))
        self._seen.update(ref for ref, _ in entry.made)
        return entry.given

    def _node(self, result: Location) -> TracedNode | None:
        if result not in self._nodes:
            node = TracedNode.of_result(result, self._bucket)
            self._nodes[result] = node
            for path in () if node is None else node.results.values():
                self._nodes[path] = node
        return self._nodes[result]


def _of_pack(ref: Ref, entry: NodeEntry) -> NodeEntry:
    """Return the entry of a pack with the records alone that its restore key names, if any."""
    line = lines_of([ref]).get(ref) if len(entry.given) > 1 else None
    keys = packed_keys(_place(ref, {ref: line}).text) if line is not None else set()
    if not keys:
        return entry
    lines = lines_of(entry.given)
    refs = [
        input_ref
        for input_ref in entry.given
        if restore_key_of(_place(input_ref, lines).text) in keys
    ]
    results = [result for result in entry.made if result[0] == ref]
    return entry._replace(given=refs, made=results, left_out=0) if refs and results else entry


def _into_packs(ref: Ref, entry: NodeEntry) -> NodeEntry:
    """Return the entry of a window with the packs alone that a record is in, if they are packs."""
    if len(entry.given) == 1 or entry.left_out:
        return entry
    refs = [ref for ref, _ in entry.made]
    lines = lines_of([ref, *refs])
    keys = {ref: packed_keys(_place(ref, lines).text) for ref in refs}
    if not any(keys.values()):
        return entry
    key = restore_key_of(_place(ref, lines).text)
    return entry._replace(
        given=[ref], made=[result for result in entry.made if key in keys[result[0]]]
    )


def _in_order(
    entries: Sequence[tuple[TracedNode, NodeEntry]],
) -> list[tuple[TracedNode, NodeEntry]]:
    """Return entries with those of each node after those of the nodes before it."""
    nodes = {id(node): node for node, _ in entries}
    makers: dict[Location, int] = {
        path: number for number, node in nodes.items() for path in node.results.values()
    }
    ranks: dict[int, int] = {}

    def rank(number: int) -> int:
        if number not in ranks:
            before = [
                makers[source.path] for source in nodes[number].inputs if source.path in makers
            ]
            ranks[number] = 1 + max(map(rank, before), default=0)
        return ranks[number]

    return sorted(entries, key=lambda pair: rank(id(pair[0])))


def _ref_of(path: Location, line: int) -> Ref:
    """Return the record in a line, counted from 1."""
    index = records_in(path).index_of(line) if line > 0 else None
    if index is None:
        reason = f"there is no record in line {line:,}; lines are counted from 1"
        raise TraceError(str(path), reason)
    return Ref(path, index)


def _is_named(location: Location, name: str) -> bool:
    """Return whether a user means a file by its path or URL, by its folder, or by its name."""
    path: PurePath = (
        PurePosixPath(location.key) if isinstance(location, BucketFile) else Path(location)
    )
    if name in {path.name, path.parent.name, str(location)}:
        return True
    return Path(name).expanduser().absolute() in {path, path.parent}


class _Forward:
    """Follows a line of a source to the results of a node."""

    def __init__(self, results: Sequence[Path], bucket: StoreBucket | None) -> None:
        self._results = results
        self._bucket = bucket
        self._nodes: list[TracedNode] = []  # each after those before it
        self._sources: dict[Location, None] = {}
        self._known: set[Location] = set()
        for result in results:
            self._discover(result)

    def _discover(self, result: Location) -> None:
        """Find the nodes and sources before a result."""
        if result in self._known:
            return
        node = TracedNode.of_result(result, self._bucket)
        if node is None:
            self._known.add(result)
            self._sources[result] = None
            return
        self._known.update(node.results.values())
        for source in node.inputs:
            self._discover(source.path)
        self._nodes.append(node)

    def trace(self, line: int, source: str | os.PathLike[str] | None) -> Trace:
        """Return the trace of a line of a source, counted from 1.

        Raises:
            TraceError: There is no such line, or the source is not unique.
        """
        path = self._source(source)
        gone = line > 0 and not exists(path)  # such as the records of a call in Python
        start = Ref(path, line - 1) if gone else _ref_of(path, line)
        walk = _Walk(sources=[start])
        refs: dict[Location, dict[Ref, None]] = {start.path: {start: None}}
        for node in self._nodes:
            for wanted_path in dict.fromkeys(source.path for source in node.inputs):
                for ref in refs.get(wanted_path, {}):
                    self._pass(walk, node, ref, refs)
        walk.results = [ref for result in self._results for ref in refs.get(result, {})]
        return walk.written()

    @staticmethod
    def _pass(
        walk: _Walk, node: TracedNode, ref: Ref, refs: dict[Location, dict[Ref, None]]
    ) -> None:
        """Take a record through a node; add the lines that came out to ``refs``."""
        node.check_input(ref.path)
        for result in node.results.values():
            node.check_result(result)
        entries = node.entries_of_record(ref)
        if entries is None:
            walk.ends.append((node, ref, node.end))
            return
        for entry in (_into_packs(ref, packed) for packed in entries):
            if (node, entry) in walk.entries:  # of another record of the batch or row
                continue
            if len(walk.entries) >= MOST_LINES:
                reason = f"it became more lines than the {MOST_LINES:,} that are followed"
                walk.ends.append((node, ref, reason))
                return
            walk.entries.append((node, entry))
            for output_ref, _ in entry.made:
                refs.setdefault(output_ref.path, {})[output_ref] = None

    def _source(self, wanted: str | os.PathLike[str] | None) -> Location:
        """Return the source to trace from, which must be unique."""
        if wanted is None:
            matches = list(self._sources)
        else:
            paths = [
                *self._sources,
                *(result for node in self._nodes for result in node.results.values()),
            ]
            matches = [path for path in paths if _is_named(path, os.fspath(wanted))]
        if len(matches) == 1:
            return matches[0]
        known = ", ".join(map(str, self._sources))
        prefix = "" if wanted is None else f"{os.fspath(wanted)!r} is not one of them; "
        reason = f"{prefix}give one of the sources as `source`: {known}"
        raise TraceError(str(self._results[0]), reason)

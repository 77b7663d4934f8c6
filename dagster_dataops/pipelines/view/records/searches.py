"""Searches for records in the background: those that match conditions, and dropped ones."""

from array import array
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.errors import InputError
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.pipelines.tracing.traced_node import TracedNode
from dagster_dataops.pipelines.tracing.trail import reasons_of
from dagster_dataops.pipelines.view.records.background_work import BackgroundWork, BackgroundWorks
from dagster_dataops.pipelines.view.records.conditions import Conditions
from dagster_dataops.pipelines.view.records.viewed_file import ViewedFile, indexed

MOST: Final = 1_000_000  # records that a search finds


@dataclass
class FoundRecords:
    """The records that a search has found until now.

    It has read ``searched`` records, and is ``limited`` if it ended at the limit of matches.
    """

    records: "array[int]" = field(default_factory=lambda: array("Q"))
    searched: int = 0
    limited: bool = False


def search(file: ViewedFile, conditions: Conditions, works: BackgroundWorks) -> BackgroundWork:
    """Return the search for records of a file; its result is a `FoundRecords` from the beginning.

    The index of the file must be ready.
    """
    location, state, ours = file.location, file.state, file.ours

    def find(work: BackgroundWork) -> None:
        matches = work.result = FoundRecords()
        choose = conditions.chooser(ours=ours)
        with indexed(location, works, ours=ours) as again:
            for block in again.blocks():
                matches.records.extend(block.first + at for at in choose(block))
                matches.searched = block.end
                matches.limited = len(matches.records) >= MOST
                if matches.limited:
                    return
                work.advance(block.start, again.interval.end)

    return works.begun(("search", str(location), state, conditions), find)


@dataclass
class DroppedRecords:
    """The dropped records of a node.

    Attributes:
        records: Their indices in the joined inputs, in order.
        reasons: Of each the index of its reason in ``names``.
        names: The reasons; of several parts of a chain they are joined.
        parts: The reasons that each of these names joins.
    """

    records: "array[int]" = field(default_factory=lambda: array("Q"))
    reasons: "array[int]" = field(default_factory=lambda: array("L"))
    names: dict[str, int] = field(default_factory=dict)
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def counts(self) -> list[tuple[str, int]]:
        """Return the number of records for each reason, the most frequent first."""
        numbers = Counter(self.reasons)
        names = list(self.names)
        return [(names[at], number) for at, number in numbers.most_common()]

    def reason_of(self, record: int) -> str:
        """Return the reason for which a record was dropped."""
        return list(self.names)[self.reasons[bisect_left(self.records, record)]]

    def of_reason(self, reason: str | None) -> "array[int]":
        """Return the records that were dropped for a reason; all without one."""
        if reason is None:
            return self.records
        wanted = self.names.get(reason)
        pairs = zip(self.records, self.reasons, strict=True)
        return array("Q", (record for record, at in pairs if at == wanted))


def dropped_records(node: TracedNode, manifest: Manifest, works: BackgroundWorks) -> BackgroundWork:
    """Return the search for the dropped records of a node; its result is a `DroppedRecords`."""

    def find(work: BackgroundWork) -> DroppedRecords:
        dropped = DroppedRecords()
        for number, (record, fields) in enumerate(node.dropped(), 1):
            parts = tuple(reasons_of(fields))
            reason = ", ".join(parts)
            dropped.parts.setdefault(reason, parts)
            dropped.records.append(record)
            dropped.reasons.append(dropped.names.setdefault(reason, len(dropped.names)))
            if not number % 10_000:
                work.advance(number, manifest.dropped)
        return dropped

    key = ("dropped", str(node.folder.path), manifest.fingerprint, manifest.modified_ns)
    return works.begun(key, find)


class InputRecord(NamedTuple):
    """A record of an input of a node.

    Inputs are counted from 0, lines from 1.
    """

    path: Location
    input: int
    line: int
    record: dict[str, Any]


def input_records(
    node: TracedNode, records: list[int], works: BackgroundWorks
) -> dict[int, InputRecord]:
    """Return records of the joined inputs of a node, by their index there.

    Records of an input whose index is not ready are left out.

    Raises:
        InputError: An input is gone, or its index cannot be made.
        TraceOutdatedError: An input was changed since the node has read it.
    """
    paths = [source.path for source in node.inputs]
    by_index: dict[int, InputRecord] = {}
    wanted: dict[int, dict[int, int]] = {}
    for record in records:
        ref = node.ref_of(record)
        wanted.setdefault(paths.index(ref.path), {})[ref.record] = record
    for number, inner in wanted.items():
        node.check_input(paths[number])
        with indexed(paths[number], works, ours=node.inputs[number].is_ours) as file:
            if file.work.error:
                raise InputError(str(paths[number]), file.work.error)
            for at, line in file.records(inner).items() if file.index else ():
                by_index[inner[at]] = InputRecord(paths[number], number, line.number, line.shown())
    return by_index

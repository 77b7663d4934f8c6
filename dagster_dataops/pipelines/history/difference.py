"""`diff`: how many records of a result are new, gone and changed between two versions, and why."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder, is_intact
from dagster_dataops.checkpoints.versions.node_versions import version_named, versions_at
from dagster_dataops.checkpoints.versions.version import CURRENT, ResultVersion
from dagster_dataops.errors import TraceOutdatedError, VersionMissingError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.parts import NotebookHtml
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.pipelines.history.causes import Cause, cause_otherwise, causes_between
from dagster_dataops.pipelines.history.changed_lines import SAMPLES, ChangedLines
from dagster_dataops.pipelines.history.content_match import counted_by_content
from dagster_dataops.pipelines.history.counted_changes import ChangeCounter
from dagster_dataops.pipelines.history.input_steps import is_same_input
from dagster_dataops.pipelines.history.matched_lines import matched_lines
from dagster_dataops.pipelines.history.node_folder import node_at
from dagster_dataops.pipelines.history.result_sides import why_not_by_record

_NO_DIGESTS: Final = (
    "the input has changed, and digests of its records were not written: _keep_versions was not "
    "set when one of the results was made"
)


@dataclass(frozen=True, repr=False)
class Difference:
    """The difference between two versions of a result.

    Attributes:
        node: The name of the node.
        before: The first version.
        after: The second one.
        same_input: Whether both were made of one content.
        causes: What differs between the versions: operator, options, code, input; or else the reply
            of a model, or chance. Empty if the results are equal.
        results: The differences of the lines, by the name of the output; without a name if there
            is one result.
    """

    node: str
    before: ResultVersion
    after: ResultVersion
    same_input: bool
    causes: tuple[Cause, ...]
    results: Mapping[str, ChangedLines]

    _repr_html_ = NotebookHtml()

    @property
    def new(self) -> int:
        """The number of lines that only the second version has."""
        return sum(result.new for result in self.results.values())

    @property
    def gone(self) -> int:
        """The number of lines that only the first version has."""
        return sum(result.gone for result in self.results.values())

    @property
    def changed(self) -> int:
        """The number of lines that were made of one input record and differ."""
        return sum(result.changed for result in self.results.values())

    @property
    def summary(self) -> str:
        """The numbers in words."""
        same = sum(result.same for result in self.results.values())
        moved = sum(result.moved for result in self.results.values())
        texts = [f"{self.new:,} new", f"{self.gone:,} gone", f"{self.changed:,} changed"]
        texts += [f"{moved:,} moved"] * bool(moved)
        return f"{', '.join(texts)}, {same:,} the same"

    def to_json(self) -> dict[str, Any]:
        """Return the difference as values that JSON can hold."""
        return {
            "node": self.node,
            "before": self.before.name,
            "after": self.after.name,
            "new": self.new,
            "gone": self.gone,
            "changed": self.changed,
            "same_input": self.same_input,
            "causes": [vars(cause) for cause in self.causes],
            "results": {name: result.to_json() for name, result in self.results.items()},
        }

    @override
    def __repr__(self) -> str:
        versions = f"from {self.before.name} to {self.after.name}"
        return f"<difference of {self.node} {versions}: {self.summary}>"

    @override
    def __str__(self) -> str:
        return "\n".join(self._text())

    def _text(self) -> Iterator[str]:
        runs = [
            f"{version.name} (run {version.manifest.run})" for version in (self.before, self.after)
        ]
        yield f"{self.node}: from {runs[0]} to {runs[1]}"
        yield f"records: {self.summary}"
        if self.causes:
            yield "what differs between the versions:"
            yield from (f"    {cause}" for cause in self.causes)
        for name, result in self.results.items():
            yield from _lines_of(name, result)


def _lines_of(output: str, lines: ChangedLines) -> Iterator[str]:
    if output:
        numbers = f"{lines.new:,} new, {lines.gone:,} gone, {lines.changed:,} changed"
        yield f"result {output}: {numbers}, {lines.same:,} the same"
    if lines.by_content:
        yield f"matched by content, not by input record: {lines.by_content}"
    if lines.causes:
        yield "by cause:"
        for cause, number in lines.causes.most_common():
            yield f"    {counted(number, 'records')}: {cause}"
    yield from map(str, lines.samples)


def diff(
    folder: str | os.PathLike[str],
    before: str | int | None = None,
    after: str | int = CURRENT,
    *,
    samples: int = SAMPLES,
) -> Difference:
    """Compare two versions of a result, record by record of its input.

    Args:
        folder: The folder of the node, or of one of its partitions or results.
        before: The number of the first version; by default the newest one before ``after``.
        after: The number of the second one; by default the present result.
        samples: How many lines of each kind are shown.

    Raises:
        VersionMissingError: There is no such version.
        ResultMissingError: The folder has no result.
        TraceError: The map from input records to lines is damaged, or a result was edited.
    """
    node = node_at(folder)
    second = version_named(node, str(after))
    first = version_named(node, _before(node, second) if before is None else str(before))
    return compared(node, first, second, samples)


def compared(
    node: NodeFolder,
    before: ResultVersion,
    after: ResultVersion,
    samples: int = SAMPLES,
    outputs: Collection[str] | None = None,
) -> Difference:
    """Return the difference of two versions of a node.

    Only ``outputs`` are compared; by default all results that both versions have.
    """
    same_input = is_same_input(before.manifest, after.manifest)
    for version in (before, after):
        _check_in_place(node, version)
    known = causes_between(before.manifest, after.manifest)
    otherwise = cause_otherwise(after.manifest)
    of_equal_input = "; ".join(map(str, known)) or str(otherwise)
    results = {
        name: _compared_lines(before, after, name, of_equal_input, samples)
        for name in after.results
        if name in before.results and (outputs is None or name in outputs)
    }
    for version in (before, after):
        _check_in_place(node, version)
    if not any(result.differing for result in results.values()):
        known = []
    elif not same_input:
        known.append(Cause("input", "", "the input: it has another content"))
    if any(str(otherwise) in cause for result in results.values() for cause in result.causes):
        known.append(otherwise)
    return Difference(node.name, before, after, same_input, tuple(known), results)


def _check_in_place(node: NodeFolder, version: ResultVersion) -> None:
    """Check that the files of a version of a node are unchanged since they were published."""
    if Manifest.load(node.located(version.folder.manifest)) != version.manifest:
        reason = "another result was published while it was compared; try again"
        raise TraceOutdatedError(str(version.folder.path), reason)
    for place, part in version.manifest.parts(version.folder).values():
        if not is_intact(place, replace(part, artefact="")):  # its files are not compared
            reason = f"it was edited or deleted after run {part.run} published it"
            raise TraceOutdatedError(str(place.located(place.result)), reason)


def changed_since(folder: Path, version: int) -> ChangedLines:
    """Compare the lines of one result with those of a version of its node.

    Raises:
        VersionMissingError: There is no such version.
        TraceError: The map from input records to lines is damaged.
    """
    node = node_at(folder)
    before, after = version_named(node, str(version)), version_named(node, CURRENT)
    parts = after.manifest.parts(node)
    output = next(name for name, (place, _) in parts.items() if place.path == folder.absolute())
    return compared(node, before, after, 0, (output,)).results[output]


def _compared_lines(
    before: ResultVersion,
    after: ResultVersion,
    output: str,
    of_equal_input: str,
    samples: int,
) -> ChangedLines:
    if before.results[output].fingerprint == after.results[output].fingerprint:
        return ChangedLines(same=after.results[output].rows or 0)
    changes = matched_lines(before, after, output)
    if changes is None:
        reasons = [why for version in (before, after) if (why := why_not_by_record(version))]
        why = reasons[0] if reasons else _NO_DIGESTS
        same_input = is_same_input(before.manifest, after.manifest)
        unknown = "the input or another cause; which of them is not known for each record"
        cause = of_equal_input if same_input else unknown
        return counted_by_content(before, after, output, (why, cause), samples)
    return ChangeCounter(before, after, of_equal_input, samples).count(changes)


def _before(node: NodeFolder, version: ResultVersion) -> str:
    """Return the name of the version before another one."""
    numbers = versions_at(node).numbers()
    if version.name != CURRENT:
        numbers = [number for number in numbers if number < int(version.name)]
    if not numbers:
        reason = (
            "no earlier result was kept; set _keep_versions=1 or more, then the next result that "
            "replaces one keeps it"
        )
        raise VersionMissingError(str(node.located(node.path)), reason)
    return str(numbers[-1])

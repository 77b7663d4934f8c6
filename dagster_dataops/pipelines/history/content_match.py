"""Match the lines of two versions of a result by their content, wherever they are."""

from collections.abc import Sequence

import xxhash

from dagster_dataops.checkpoints.versions.version import ResultVersion
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.pipelines.history.changed_lines import ChangedLine, ChangedLines, text_of_line
from dagster_dataops.pipelines.history.result_sides import lines_of_result
from dagster_dataops.pipelines.history.spilled_groups import SpilledGroups


def counted_by_content(
    before: ResultVersion, after: ResultVersion, output: str, why: tuple[str, str], samples: int
) -> ChangedLines:
    """Count the lines that only one version has, or has more often.

    ``why`` tells why they are not matched by their input, and why lines differ, as far as is
    known.
    """
    lines = ChangedLines(by_content=why[0])
    places = before.results[output], after.results[output]
    gone, new = _FirstLines(samples), _FirstLines(samples)
    with SpilledGroups() as groups:
        for side, place in enumerate(places):
            for number, line in enumerate(lines_of_result(place)):
                groups.add(side, xxhash.xxh3_64_intdigest(line), number)
        for group in groups.groups():
            equal = min(len(group.before), len(group.after))
            lines.same += equal
            gone.add(group.before[equal:])
            new.add(group.after[equal:])
    lines.gone, lines.new = gone.count, new.count
    if lines.differing:
        lines.causes[why[1]] = lines.differing
    lines.samples += [ChangedLine("new", "", text, why[1]) for text in new.texts(places[1])]
    lines.samples += [ChangedLine("gone", text, "", why[1]) for text in gone.texts(places[0])]
    return lines


class _FirstLines:
    """Counts lines, and keeps the first ones of a result among them.

    Attributes:
        count: The number of lines.
    """

    def __init__(self, most: int) -> None:
        self.count = 0
        self._most = most
        self._numbers: list[int] = []

    def add(self, numbers: Sequence[int]) -> None:
        """Add lines by their numbers, from 0."""
        self.count += len(numbers)
        self._numbers += numbers
        if len(self._numbers) > 2 * self._most:
            self._numbers = sorted(self._numbers)[: self._most]

    def texts(self, place: JsonlDataset) -> list[str]:
        """Return the lines that are kept."""
        wanted = sorted(self._numbers)[: self._most]
        texts = []
        for number, line in enumerate(lines_of_result(place)) if wanted else ():
            if number in wanted:
                texts.append(text_of_line(line))
            if number == wanted[-1]:
                break
        return texts

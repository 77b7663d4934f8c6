"""Failed records of an error file, grouped by cause: exception, part and form of the message."""

import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dagster_dataops.checkpoints.publish.error_rows import parse_error_row
from dagster_dataops.pipelines.reporting.excerpts import excerpt
from dagster_dataops.pipelines.reporting.failed_rows import cause_of
from dagster_dataops.pipelines.view.records.background_work import BackgroundWork, BackgroundWorks
from dagster_dataops.pipelines.view.records.viewed_file import ViewedFile, indexed

_MOST_GROUPS: Final = 200
_FORM: Final = 160  # characters of a message that are compared
_SPECIAL: Final = re.compile(r"[.^$*+?{}\[\]\\|()]")
_VARIABLE: Final = re.compile(r"\d[\d.,:_]*|'[^']*'|\"[^\"]*\"|`[^`]*`|\{.*|0x[0-9a-f]+")


@dataclass
class FailedGroup:
    """Failed records with one cause.

    Attributes:
        exception: The type of the exception.
        part: The part of a chain, or the stage of a stream, that failed; may be empty.
        message: The message of the first.
        form: The beginning of their messages, with ``…`` for each value.
        records: Their indices in the error file.
    """

    exception: str
    part: str
    message: str
    form: str = ""
    records: "array[int]" = field(default_factory=lambda: array("Q"))

    @property
    def pattern(self) -> str:
        """A regular expression for messages of this form."""
        start = self.message[:_FORM]
        value = f"…|{_VARIABLE.pattern}"  # the sign for a value may be in the message itself
        literals = map(_escaped, re.split(value, start))
        end = r"\Z" if len(self.message) <= _FORM else ""
        return f"^{f'(?:{value})'.join(literals)}{end}"


@dataclass
class FailedGroups:
    """All failed records of an error file.

    The most frequent group comes first.
    """

    groups: list[FailedGroup]
    total: int

    def records(self, group: int | None) -> "array[int] | range":
        """Return the indices of the records of a group; of all without one."""
        if group is None:
            return range(self.total)
        return self.groups[group].records if 0 <= group < len(self.groups) else array("Q")


def failed_records(file: ViewedFile, works: BackgroundWorks) -> BackgroundWork:
    """Return the work that groups the failed records of an error file, as `FailedGroups`.

    The index of the file must be ready.
    """
    location, state = file.location, file.state

    def group(work: BackgroundWork) -> FailedGroups:
        groups: dict[tuple[str, str, str], FailedGroup] = {}
        total = 0
        with indexed(location, works) as again:
            for block in again.blocks():
                for at, line in enumerate(block.lines(), block.first):
                    _add(groups, at, parse_error_row(line))
                total = block.end
                work.advance(block.start, again.interval.end)
        ordered = sorted(groups.values(), key=lambda group: -len(group.records))
        return FailedGroups(ordered, total)

    return works.begun(("failed", str(location), state), group)


def _add(
    groups: dict[tuple[str, str, str], FailedGroup], record: int, row: Mapping[str, Any]
) -> None:
    message, (exception, part) = excerpt(row.get("message", "")), cause_of(row)
    form = _VARIABLE.sub("…", message[:_FORM])
    if (exception, part, form) not in groups and len(groups) >= _MOST_GROUPS:
        exception, part, form, message = ("others", "", "", "")
    new = FailedGroup(exception, part, message, form)
    groups.setdefault((exception, part, form), new).records.append(record)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text)

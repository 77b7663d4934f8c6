"""`ChangedLines`: the numbers of equal and differing lines of two versions, with samples."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from dagster_dataops.foundation.override import override

SAMPLES: Final = 5
_LONGEST: Final = 200  # characters of a line in a text


@dataclass(frozen=True)
class ChangedLine:
    """A line that differs between two versions of a result.

    Attributes:
        change: ``changed``, ``new`` or ``gone``.
        before: The line of the first version; empty if there is none.
        after: That of the second one.
        cause: Why it differs, in words.
        input_before: The number of the input record that it was made of in the first version,
            from 1; 0 if it is not known.
        input_after: That in the second version.
    """

    change: str
    before: str
    after: str
    cause: str
    input_before: int = 0
    input_after: int = 0

    @override
    def __str__(self) -> str:
        record = self.input_after or self.input_before
        place = f"input record {record:,}" if record else "no input record is known"
        lines = [f"{self.change}, {place}: {self.cause}"]
        lines += [f"    - {cut(self.before)}"] * bool(self.before)
        lines += [f"    + {cut(self.after)}"] * bool(self.after)
        return "\n".join(lines)


@dataclass
class ChangedLines:
    """The numbers of equal and differing lines of two versions of a result.

    Attributes:
        same: The number of equal lines.
        moved: The number of equal lines whose input record is at another place among the others.
        new: The number of lines that only the second version has.
        gone: The number of lines that only the first version has.
        changed: The number of lines that were made of one input record and differ.
        causes: The number of lines that differ by their cause in words.
        samples: Some lines of each kind.
        by_content: Why lines were matched by their content; empty if they were matched by the
            input record that they were made of. Then a changed line counts as gone and as new.
    """

    same: int = 0
    moved: int = 0
    new: int = 0
    gone: int = 0
    changed: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    samples: list[ChangedLine] = field(default_factory=list)
    by_content: str = ""

    @property
    def differing(self) -> int:
        """The number of lines that differ."""
        return self.new + self.gone + self.changed

    def to_json(self) -> dict[str, Any]:
        """Return the values that JSON can hold."""
        return {
            **{name: getattr(self, name) for name in ("same", "moved", "new", "gone", "changed")},
            "causes": dict(self.causes.most_common()),
            "samples": [vars(sample) for sample in self.samples],
            "by_content": self.by_content,
        }


def text_of_line(line: bytes | None) -> str:
    """Return a line as text; an empty one if there is none."""
    return "" if line is None else line.decode(errors="replace")


def cut(text: str) -> str:
    """Return a text, cut if it is too long for one line."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

"""`Decision`: the decision of a person; `counting`: the decision that counts for each question."""

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dagster_dataops.library.sorting.canonical_form import canonical


class Decision(NamedTuple):
    """The decision of one person about one question.

    Attributes:
        id: The id of the question.
        decision: One of the choices.
        edited: New values by column.
        reviewer: The person; empty if the file does not say.
        comment: A text of the person.
        where: The file and line.
    """

    id: str
    decision: str
    edited: dict[str, Any]
    reviewer: str
    comment: str
    where: str

    @property
    def person(self) -> str:
        """The reviewer, as `person_of` returns it."""
        return person_of(self.reviewer)

    @property
    def verdict(self) -> bytes:
        """A text that is the same for decisions to the same effect."""
        return canonical([self.decision, self.edited])


def person_of(reviewer: str) -> str:
    """Return the same text for names that differ only in case, spaces or forms of characters."""
    return " ".join(unicodedata.normalize("NFKC", reviewer).casefold().split())


def counting(decisions: Iterable[Decision], agreement: int) -> Mapping[str, Decision]:
    """Return the decision that counts for each question that has one, by id.

    Args:
        decisions: The decisions, in the order in which they were taken.
        agreement: How many reviewers must have decided the same.
    """
    agreeing: dict[tuple[str, bytes], set[str]] = {}
    verdicts: dict[str, Decision] = {}
    for decision in decisions:
        reviewers = agreeing.setdefault((decision.id, decision.verdict), set())
        reviewers.add(decision.person)
        if len(reviewers) >= agreement:
            verdicts.setdefault(decision.id, decision)
    return verdicts

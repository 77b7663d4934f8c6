"""`PageReview`: a review that people decide on a page: its questions, and how decisions are saved.

Decisions are saved in a file of their own beside the questions, whole and at once. The next run
takes them as it takes those of any other file. Until then they may be changed.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from dagster_dataops.datasets.durable_files import storage, write_durably
from dagster_dataops.datasets.file_values.file_keeper import FILES
from dagster_dataops.datasets.published_files import CHECKPOINTS
from dagster_dataops.errors import ReviewError, StorageError
from dagster_dataops.library.review.decision_checks import decision_of
from dagster_dataops.library.review.decision_files import FaultError, Row, rows_in
from dagster_dataops.library.review.decisions import Decision, person_of
from dagster_dataops.library.review.question_files import text_of
from dagster_dataops.library.review.questions import COMMENT, DECISION, ID, NEW_VALUES, REVIEWER
from dagster_dataops.library.review.review_folder import REVIEW, STATE, Answers, ReviewFolder
from dagster_dataops.records import encode

SAVED: Final = "decided-in-view.jsonl"
_PLACE: Final = "the page"
_WITHOUT: Final = (FILES, CHECKPOINTS, STATE)  # folders without reviews


@dataclass(frozen=True)
class PageQuestion:
    """A question for one reviewer.

    Attributes:
        id: Its id.
        shown: The values shown, by field.
        choices: The possible decisions.
        instructions: A text for the person; may be empty.
        edit: The text of each column that may be changed, by name.
        decision: What this reviewer has decided; ``None`` if nothing.
        may_change: Whether the decision is only saved, and no run has taken it.
    """

    id: str
    shown: Mapping[str, Any]
    choices: list[str]
    instructions: str
    edit: Mapping[str, str]
    decision: Decision | None
    may_change: bool


class PageReview:
    """A review as it is on the disk now.

    Args:
        path: The folder of the review.
        reviewer: The person who decides; may be empty.

    Attributes:
        folder: Its folder.
        reviewer: The person.
    """

    def __init__(self, path: Path, reviewer: str = "") -> None:
        self.folder, self.reviewer = ReviewFolder(path), reviewer.strip()

    @cached_property
    def _answers(self) -> Answers:
        return self.folder.answers()

    @property
    def agreement(self) -> int:
        """How many reviewers must decide the same."""
        return self.folder.agreement

    @property
    def faults(self) -> list[str]:
        """Errors in files with decisions, for which the next run takes nothing."""
        return self._answers.faults

    @cached_property
    def waiting(self) -> list[str]:
        """The ids of the questions that the latest run waits for."""
        return [id_ for id_ in self.folder.waiting if id_ in self.folder.asked]

    @cached_property
    def open(self) -> list[str]:
        """The ids of those that are open for this reviewer."""
        decided, verdicts = self._decided, self.folder.verdicts(self._answers)
        return [id_ for id_ in self.waiting if id_ not in verdicts and id_ not in decided]

    @cached_property
    def saved(self) -> list[PageQuestion]:
        """The questions that this reviewer has decided here, and that no run has taken yet."""
        questions = map(self.question, self._decided)
        return [question for question in questions if question is not None and question.may_change]

    @cached_property
    def _decided(self) -> dict[str, Decision]:
        """The decision of this reviewer about each question that has one."""
        decided: dict[str, Decision] = {}
        for decision in self._answers.decisions:
            if decision.person == person_of(self.reviewer):
                decided.setdefault(decision.id, decision)
        return decided

    @cached_property
    def _taken(self) -> set[tuple[str, str]]:
        return {(decision.id, decision.person) for decision in self.folder.taken()}

    def question(self, id_: str) -> PageQuestion | None:
        """Return a question; ``None`` if it was not asked."""
        asked = self.folder.asked.get(id_)
        if asked is None:
            return None
        form, decision = asked.form, self._decided.get(id_)
        edited = decision.edited if decision else {}
        return PageQuestion(
            id_,
            asked.shown,
            form.choices,
            form.instructions,
            {name: text_of(edited.get(name, asked.shown[name])) for name in form.edit},
            decision,
            decision is not None and self._may_change(decision),
        )

    def _may_change(self, decision: Decision) -> bool:
        ours = decision.where.startswith(f"{SAVED} ")
        return ours and (decision.id, decision.person) not in self._taken

    def save(self, id_: str, decision: str, edited: Mapping[str, str], comment: str) -> None:
        """Save a decision durably.

        Args:
            id_: The question.
            decision: One of its choices; empty to take back the one that was saved.
            edited: The texts of columns that may be changed, by name; equal ones change nothing.
            comment: A text of the person.

        Raises:
            ReviewError: The decision is not possible; nothing was saved.
            StorageError: It cannot be saved.
        """
        if not self.folder.asked:
            raise ReviewError(id_, "no question was asked here")
        with self.folder.locked(creates=True):
            now = PageReview(self.folder.path, self.reviewer)
            now._save(id_, decision, edited, comment)

    def _save(self, id_: str, decision: str, edited: Mapping[str, str], comment: str) -> None:
        changed = self._changed(id_, edited) if decision.strip() else {}
        row = Row(_PLACE, id_, decision, changed, self.reviewer, comment.strip(), texts=True)
        try:
            new = decision_of(row, self.folder.asked, SAVED, named=self.agreement > 1)
        except FaultError as fault:
            raise ReviewError(id_, fault.reason) from None
        before = self._decided.get(id_)
        if before is not None and not self._may_change(before):
            reason = f"{before.decision!r} was decided in {before.where}, and stands"
            raise ReviewError(id_, reason)
        person = person_of(self.reviewer)
        rows = {
            (saved.id, person_of(saved.reviewer)): saved
            for saved in _saved_rows(self.folder.path / SAVED)
        }
        if new is not None:
            rows[id_, person] = row._replace(edited=new.edited, decision=new.decision)
        elif rows.pop((id_, person), None) is None:
            raise ReviewError(id_, "choose a decision")
        content = b"".join(encode(_line(saved)) for saved in rows.values())
        write_durably(self.folder.path / SAVED, content)

    def _changed(self, id_: str, edited: Mapping[str, str]) -> dict[str, str]:
        """Return the texts that differ from those shown; a browser changes the ends of lines."""
        asked = self.folder.asked.get(id_)
        if asked is None:
            return {}
        changed = {}
        for name, text in edited.items():
            lines = _lines_of(text)
            if name not in asked.shown or lines != _lines_of(text_of(asked.shown[name])):
                changed[name] = lines
        return changed


def _lines_of(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _line(row: Row) -> dict[str, Any]:
    line = {ID: row.id, DECISION: row.decision, NEW_VALUES: row.edited}
    return {**line, REVIEWER: row.reviewer, COMMENT: row.comment}


def _saved_rows(path: Path) -> list[Row]:
    if not path.exists():
        return []
    try:
        return list(rows_in(path))
    except FaultError as fault:
        reason = f"{fault.place} {fault.reason}; correct the file"
        raise StorageError(str(path), "save a decision in it", reason) from None


def review_of_node(folder: Path) -> Path | None:
    """Return the folder of the review in the folder of a node; ``None`` if there is none."""
    path = folder / REVIEW
    return path if _is_review(path) else None


def reviews_below(folder: Path) -> Iterator[Path]:
    """Yield the folders of reviews in a folder and below it, by name."""
    with storage(folder, "list the reviews"):
        for where, folders, _ in os.walk(folder):
            if _is_review(Path(where)):
                folders.clear()
                yield Path(where)
            else:
                folders[:] = [
                    name
                    for name in sorted(folders)
                    if not name.startswith(".") and name not in _WITHOUT
                ]


def _is_review(path: Path) -> bool:
    return next((path / STATE).glob("asked-*.jsonl"), None) is not None

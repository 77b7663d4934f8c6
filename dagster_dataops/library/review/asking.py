"""``review.Ask``: a person decides about records."""

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import xxhash

from dagster_dataops.data import data_register
from dagster_dataops.datasets.lines import iterate_lines, opened_content
from dagster_dataops.errors import DefinitionError, OperatorContextError
from dagster_dataops.foundation.hashing.operational import Operational
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.library.field_keys import FieldKey, Keys, key_list
from dagster_dataops.library.filters.comparison import OPERATIONS, Comparison
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.library.review.question_files import SUFFIXES, Format
from dagster_dataops.library.review.questions import Form, Question
from dagster_dataops.library.review.review_folder import (
    ReviewFolder,
    review_path,
    shown_faults,
    undecided,
)
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.operators.outcomes.record_context import OperatorContext, StopRun
from dagster_dataops.records import Record, decode

if TYPE_CHECKING:
    from dagster_dataops.library.review.decisions import Decision

review: Any = data_register.new_group("review")

DROP: Final = "drop"
_SHARES: Final = 2**64
_LOG: Final = logging.getLogger("dagster_dataops")


class Ask(review):
    """Let people decide about records: keep, drop, label or change them.

    The questions go to a file in the folder of the node, or in one below ``to``, and the step ends.
    People fill it in, decide on the page of ``python -m dagster_dataops view --review``, or put
    files with decisions beside it: jsonl, CSV of any spreadsheet, or an export of Label Studio. The
    next run takes the decisions; a sensor launches it under Dagster. When every question is
    decided, all records are published in their order.

    Writes ``output_key="review"``: the decision, or ``null`` in records that are not asked about.
    The decision ``drop`` drops a record, for the reason ``review``. Columns of ``edit`` get the
    values that the person wrote.

    A question is what the person sees: ``fields`` with their values, ``choices``, ``edit``,
    ``instructions``. Equal questions are asked once, in all runs. A decision that was taken stands.

    Args:
        fields: Columns and selectors that the person sees.
        choices: The decisions to choose from. ``drop`` drops the record; others are labels.
        when: Which records are asked about: a condition ``[key, op, value]`` as of
            ``filters.Field``, a list of conditions that must all hold, or a share, 0 to 1. By
            default all.
        edit: Columns of ``fields`` that the person may change.
        instructions: A text for the person.
        output_key: Column of the decision.
        to: Folder for the questions and decisions; each node and partition has its own in it. By
            default ``review`` in the folder of the node.
        format: ``jsonl``, ``csv`` or ``label_studio``.
        agreement: How many reviewers must decide the same. With 1 the first decision counts.
        seed: Another number makes another choice of the share ``when``.

    Raises:
        DefinitionError: An option is wrong.
    """

    def __init__(
        self,
        fields: Keys,
        choices: Sequence[str] = ("keep", DROP),
        *,
        when: float | Sequence[Any] | None = None,
        edit: Keys = (),
        instructions: str = "",
        output_key: str = "review",
        to: Annotated[str | None, Operational] = None,
        format: Annotated[Format, Operational] = "jsonl",  # noqa: A002 - the word of the library
        agreement: PositiveInt = 1,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("format", format, tuple(SUFFIXES))
        shown = key_list("fields", fields)
        changed = key_list("edit", edit) if edit else []
        self._form = Form(shown, list(choices), changed, instructions)
        self._form.check()
        self._keys = list(map(FieldKey, shown))
        self._share = when if isinstance(when, int | float) else 1.0
        self._conditions = [] if isinstance(when, int | float) else conditions_of(when)
        if not 0 <= self._share <= 1:
            raise DefinitionError(f"when is {when!r}; a share is between 0 and 1")
        self._written, self._seed = output_key, seed
        self.to, self._format, self.agreement = to, format, agreement
        self._verdicts: dict[str, Decision] = {}
        self._asks = False

    async def open(self, context: OperatorContext) -> None:
        """Write the questions that are new to a file, and read the decisions.

        Raises:
            StopRun: A question is undecided, or a file with decisions is wrong.
        """
        self._context = context
        self._asks = not context.folder.name.startswith(".")  # not a preview
        if not self._asks:
            return
        self._check(context)
        folder = ReviewFolder(self.folder_of(context), self.agreement)
        wanted: dict[str, None] = {}
        new = list(self._new(context, folder, wanted))
        folder.ask(self._form, new, self._format)
        with folder.locked():
            answers = folder.answers()
            if answers.faults:
                reason = f"{shown_faults(answers.faults)}. Nothing was taken: correct the files"
                raise StopRun(reason)
            folder.take(answers)
        self._warn("an earlier one of the same reviewer, which stands", answers.ignored)
        self._warn("the one of another reviewer, which counts", folder.overruled(answers))
        self._verdicts = folder.verdicts(answers)
        left = undecided(wanted, self._verdicts)
        folder.wait_for(left)
        if left:
            raise StopRun(_undecided_message(folder, left, len(wanted)), waits=True)

    async def forward(self, record: Record) -> Any:
        """Return the record with its decision and the new values, or drop it."""
        question = self._question(record)
        if question is None or not self._asks:
            return record | {self._written: None}
        verdict = self._verdicts.get(question.id)
        if verdict is None:
            raise StopRun("the input has changed while it was read; run again")
        self._context.count(**{f"review/{verdict.decision}": 1})
        if verdict.decision == DROP:
            return self._context.drop("review")
        return record | verdict.edited | {self._written: verdict.decision}

    def _warn(self, other: str, places: Sequence[str]) -> None:
        """Log the places of decisions that have no effect."""
        if places:
            number, shown = counted(len(places), "decisions"), "; ".join(places[:3])
            _LOG.warning("%s: %s differ from %s: %s", self._context.node, number, other, shown)

    def folder_of(self, context: OperatorContext) -> Any:
        """Return the folder of the questions and decisions."""
        return review_path(self.to, context.folder, context.root)

    def _question(self, record: Record) -> Question | None:
        """Return the question about a record; ``None`` if it is not asked about."""
        if not all(condition.fits(record) for condition in self._conditions):
            return None
        question = self._form.question(self._keys, record)
        if self._share < 1:
            place = xxhash.xxh3_64_intdigest(question.id.encode(), seed=self._seed % _SHARES)
            if place >= self._share * _SHARES:
                return None
        return question

    def _new(
        self, context: OperatorContext, folder: ReviewFolder, wanted: dict[str, None]
    ) -> Iterator[Question]:
        """Yield each question of the input that was not asked; note the ids of all."""
        with opened_content(context.input) as (source, interval):
            for line in iterate_lines(source, [interval]):
                try:
                    question = self._question(decode(line.text))
                except Exception:  # noqa: BLE001, S112 - the record fails when it is processed
                    continue
                if question is not None and question.id not in wanted:
                    wanted[question.id] = None
                    if question.id not in folder.asked:
                        yield question

    def _check(self, context: OperatorContext) -> None:
        """Raise an `OperatorContextError` where the operator cannot wait."""
        invocation = self.__dataops__
        if invocation.link is None:
            reason = "needs a node of its own; take the operator out of the chain"
            raise OperatorContextError("review.Ask", reason)
        if context.agent[1] > 1:
            reason = "runs on one machine; leave out the cluster for its node"
            raise OperatorContextError("review.Ask", reason)
        if invocation.resolved.concurrency_mode != "async":
            reason = "needs the usual concurrency mode; leave out _concurrency_mode"
            raise OperatorContextError("review.Ask", reason)


def conditions_of(when: Sequence[Any] | None) -> list[Comparison]:
    """Return the conditions of the option ``when``."""
    if when is None:
        return []
    several = [when] if when and isinstance(when[0], str) else list(when)
    for condition in several:
        sized = isinstance(condition, list | tuple) and len(condition) in {2, 3}
        fits = sized and isinstance(condition[0], str)
        if not fits or condition[1] not in OPERATIONS:
            reason = f"give [key, op, value] with an op of {', '.join(OPERATIONS)}"
            raise DefinitionError(f"when is {when!r}; {reason}")
    if not several:
        raise DefinitionError("when is empty; leave it out to ask about all records")
    return [Comparison(key, op, *(value or [None])) for key, op, *value in several]


def _undecided_message(folder: ReviewFolder, left: Sequence[str], all_: int) -> str:
    files = ", ".join(folder.files_with(left))
    return (
        f"undecided questions: {len(left):,} of {all_:,}; decide in {files}, or put "
        f"files with decisions into {folder.path}, and run again"
    )

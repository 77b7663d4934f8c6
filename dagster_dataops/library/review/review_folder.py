"""`ReviewFolder`: the files with the questions of a node and the decisions about them.

The folder has the files of questions, and files with decisions that people put there; a file of
questions that was filled in is one. ``state/`` in it has:

* ``asked-<number>-<digest>.jsonl``: the questions of one round. It is written first, then the file
  for people, then ``asked-<number>-<digest>.sent``. A process that finds no ``.sent`` writes the
  file for people unless it is there.
* ``decisions.jsonl``: the decisions that were taken, in that order. Each stands.
* ``waiting.json``: the questions that the latest run waits for.
* ``lock``: held while decisions are taken, or saved from a page. It is there after the first save.

Each but the lock is replaced as a whole. So nothing is asked twice and no decision is lost,
wherever a process dies.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from dagster_dataops.datasets.durable_files import (
    make_folder_durably,
    read_if_there,
    storage,
    write_durably,
)
from dagster_dataops.errors import StorageError
from dagster_dataops.foundation.concurrency.file_lock import locked_file
from dagster_dataops.foundation.format_numbers import read_number
from dagster_dataops.foundation.places.confined_names import confined
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.library.review.decision_checks import Asked, decision_of
from dagster_dataops.library.review.decision_files import READ, FaultError, rows_in
from dagster_dataops.library.review.decisions import Decision, counting
from dagster_dataops.library.review.question_files import (
    SUFFIXES,
    label_studio_form,
    question_file,
)
from dagster_dataops.library.review.questions import Form, Question
from dagster_dataops.records import encode

REVIEW: Final = "review"  # the folder of the review in that of its node
STATE: Final = "state"
_FORMAT: Final = 1  # of the files of the state
_ROUND: Final = re.compile(r"asked-([0-9]{3,9})-")
_DECISIONS: Final = "decisions.jsonl"
_LOCK: Final = "lock"
_WAITING: Final = "waiting.json"
_OF_SYSTEMS: Final = frozenset({"thumbs.db", "desktop.ini"})
_MOST_SHOWN: Final = 10  # faults, and files


class Answers(NamedTuple):
    """The decisions in the files of a folder.

    Attributes:
        decisions: All decisions, those of ``decisions.jsonl`` first.
        new: How many of them are not in ``decisions.jsonl``.
        faults: Errors in the files, each with its place.
        ignored: Places of decisions that differ from an earlier one of the same reviewer.
    """

    decisions: list[Decision]
    new: int
    faults: list[str]
    ignored: list[str]


class ReviewFolder:
    """The review of a node.

    Args:
        path: Its folder, which may not exist.
        agreement: How many reviewers must decide the same; by default as many as the latest run
            asked for.

    Attributes:
        asked: The questions, by id.
        rounds: The number of files of questions.
        agreement: How many reviewers must decide the same.

    Raises:
        NewerVersionError: A newer version has written it.
        StorageError: It cannot be read.
    """

    def __init__(self, path: Path, agreement: int | None = None) -> None:
        self.path = path
        self._state = path / STATE
        self.agreement = agreement or self._waited_agreement
        self.asked: dict[str, Asked] = {}
        self._files: dict[str, list[str]] = {}  # ids, by the name of a file of questions
        self._unsent: list[Path] = []
        self.rounds = 0
        for file in sorted(self._state.glob("asked-*.jsonl")):
            self._load(file)

    def ask(self, form: Form, questions: Sequence[Question], format: str) -> None:  # noqa: A002
        """Ask questions that were not asked before, in a new file; and finish earlier rounds."""
        for file in self._unsent:
            self._send(file)
        self._unsent = []
        if not questions:
            return
        make_folder_durably(self._state)
        ids = "".join(question.id for question in questions)
        digest = hashlib.blake2b(ids.encode(), digest_size=4).hexdigest()
        name = f"{self.rounds + 1:03d}-{digest}"
        head = {"format": _FORMAT, "written_as": format, "file": f"questions-{name}"}
        head |= form._asdict()
        lines = [head, *(question._asdict() for question in questions)]
        file = self._state / f"asked-{name}.jsonl"
        write_durably(file, b"".join(map(encode, lines)))
        self._load(file)
        self.ask(form, [], format)

    def _load(self, file: Path) -> None:
        """Read the questions of a round."""
        head, *lines = _records(file)
        form, name, number = _form_of(head, file), _file_of(head, file), _ROUND.match(file.name)
        if number is None or not all({"id", "shown"} <= line.keys() for line in lines):
            raise _damaged(file)
        self.asked |= {line["id"]: Asked(form, line["shown"]) for line in lines}
        self._files[name] = [line["id"] for line in lines]
        self.rounds = max(self.rounds, int(number[1]))
        if not file.with_suffix(".sent").exists():
            self._unsent.append(file)

    def _send(self, file: Path) -> None:
        """Write the file of a round for people, unless it is there."""
        head, *lines = _records(file)
        form, target = _form_of(head, file), self.path / _file_of(head, file)
        if head["written_as"] == "label_studio":
            write_durably(target.with_suffix(".xml"), label_studio_form(form))
        if not target.exists():
            questions = [Question(line["id"], line["shown"]) for line in lines]
            write_durably(target, question_file(head["written_as"], form, questions))
        write_durably(file.with_suffix(".sent"), b"")

    def answers(self) -> Answers:
        """Read all files with decisions; nothing is written."""
        decided, faults, ignored = self.taken(), list[str](), list[str]()
        decisions = list(decided)
        first = {(decision.id, decision.person): decision for decision in reversed(decided)}
        stands = set(first)
        for read in self._read(faults):
            key = (read.id, read.person)
            before = first.setdefault(key, read)
            if before is read:
                decisions.append(read)
            elif before.verdict != read.verdict:
                differs = f"{read.where} ({before.where} was taken)"
                ignored.append(differs) if key in stands else faults.append(
                    f"{self.path / read.where}: {read.decision!r} differs from "
                    f"{before.decision!r} in {before.where}, by the same reviewer; leave one"
                )
        return Answers(decisions, len(decisions) - len(decided), faults, ignored)

    @property
    def state(self) -> list[tuple[str, int, int]]:
        """Name, size and time of change of each file that people may have written."""
        with storage(self.path, "list the decisions"):
            paths = [path for path in self._paths() if path.name != STATE]
            stats = [(path.name, path.stat()) for path in paths if path.exists()]
        return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]

    def take(self, answers: Answers) -> None:
        """Write the decisions to ``decisions.jsonl`` if some are new."""
        if answers.new:
            lines = [{"format": _FORMAT}, *(each._asdict() for each in answers.decisions)]
            write_durably(self._state / _DECISIONS, b"".join(map(encode, lines)))

    def verdicts(self, answers: Answers) -> dict[str, Decision]:
        """Return the decision that counts for each question that has one, by id."""
        return dict(counting(answers.decisions, self.agreement))

    def overruled(self, answers: Answers) -> list[str]:
        """Return the places of new decisions that differ from the one that counts."""
        counts = self.verdicts(answers)
        new = answers.decisions[len(answers.decisions) - answers.new :]
        return [
            f"{decision.where} ({counts[decision.id].where} counts)"
            for decision in new
            if decision.id in counts and counts[decision.id].verdict != decision.verdict
        ]

    @property
    def waiting(self) -> list[str]:
        """The ids of the questions that the latest run waits for."""
        return list(self._waiting.get("ids", ()))

    @property
    def _waited_agreement(self) -> int:
        number = self._waiting.get("agreement", 1)  # version 0.3.0.dev0 had none
        return number if type(number) is int and number > 0 else 1

    @property
    def _waiting(self) -> dict[str, Any]:
        return (_records(self._state / _WAITING) or [{}])[0]

    def wait_for(self, ids: Collection[str]) -> None:
        """Write the questions that this run waits for to ``waiting.json``."""
        waiting = {"format": _FORMAT, "ids": list(ids), "agreement": self.agreement}
        if (ids or self.waiting) and waiting != self._waiting:
            write_durably(self._state / _WAITING, encode(waiting))

    @contextmanager
    def locked(self, *, creates: bool = False) -> Iterator[None]:
        """Let no page save a decision in the block, and no other process take decisions.

        Args:
            creates: Whether to create the lock, as a page does. A folder without it has no page
                whose decisions may change.
        """
        lock = self._state / _LOCK
        used = creates or lock.exists()
        with storage(lock, "lock the review"), locked_file(lock) if used else nullcontext():
            yield

    def files_with(self, ids: Collection[str]) -> list[str]:
        """Return the paths of some of the files with these questions."""
        wanted = set(ids)
        files = [name for name, asked in self._files.items() if not wanted.isdisjoint(asked)]
        more = [f"{len(files) - 3} more"] if len(files) > 3 else []
        return [*(str(self.path / name) for name in files[:3]), *more]

    def taken(self) -> list[Decision]:
        """Return the decisions that were taken, in that order."""
        path = self._state / _DECISIONS
        lines = _records(path)[1:]
        try:
            return [Decision(**line) for line in lines]
        except TypeError:
            raise StorageError(str(path), "read the decisions", "it is damaged") from None

    def _read(self, faults: list[str]) -> Iterator[Decision]:
        """Yield the decisions in the files; errors are appended to ``faults``."""
        for path in self._decision_files(faults):
            try:
                for row in rows_in(path):
                    try:
                        decision = decision_of(row, self.asked, path.name, named=self.agreement > 1)
                    except FaultError as fault:
                        faults.append(f"{path} {fault.place}: {fault.reason}")
                    else:
                        if decision is not None:
                            yield decision
            except FaultError as fault:
                faults.append(f"{path} {fault.place}: {fault.reason}")

    def _paths(self) -> list[Path]:
        with storage(self.path, "list the decisions"):
            return sorted(self.path.iterdir()) if self.path.is_dir() else []

    def _decision_files(self, faults: list[str]) -> Iterator[Path]:
        forms = {Path(name).stem for name in self._files}
        for path in self._paths():
            hidden = path.name.startswith((".", "~$")) or path.name.lower() in _OF_SYSTEMS
            if hidden or path.name == STATE or (path.suffix == ".xml" and path.stem in forms):
                continue
            if path.suffix.lower() in READ and path.is_file():
                yield path
            else:
                kinds = ", ".join(sorted(READ))
                faults.append(f"{path}: is no file with decisions; save it as one of {kinds}")


def shown_faults(faults: Sequence[str]) -> str:
    """Return the first faults as one text."""
    more = len(faults) - _MOST_SHOWN
    rest = [f"and {counted(more, 'more faults')}"] if more > 0 else []
    return "; ".join([*faults[:_MOST_SHOWN], *rest])


def review_path(to: str | None, folder: Path, root: Path) -> Path:
    """Return the folder of the review of a node.

    Args:
        to: The option of the operator.
        folder: Folder of the node.
        root: Root folder of all results.
    """
    if to is None:
        return folder / REVIEW
    within = folder.relative_to(root) if folder.is_relative_to(root) else Path(folder.name)
    return Path(to).expanduser().absolute() / within


def _records(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of the state; none if there is no file."""
    content = read_if_there(path, "read the state of the review")
    try:
        records = [orjson.loads(line) for line in content.splitlines()]
    except orjson.JSONDecodeError:
        raise _damaged(path) from None
    if not records:
        if path.exists() and path.suffix == ".jsonl":
            raise _damaged(path)
        return []
    number = records[0].get("format") if isinstance(records[0], dict) else None
    known = read_number(number, _FORMAT, str(path))
    if known is None or not all(isinstance(record, dict) for record in records):
        raise _damaged(path)
    return records


def _form_of(head: dict[str, Any], path: Path) -> Form:
    try:
        return Form(*(head[name] for name in Form._fields))
    except KeyError:
        raise _damaged(path) from None


def _file_of(head: dict[str, Any], path: Path) -> str:
    """Return the name of the file for people of a round."""
    suffix = SUFFIXES.get(head.get("written_as", ""))
    if suffix is None or not isinstance(head.get("file"), str):
        raise _damaged(path)
    return confined(f"{head['file']}.{suffix}", path)


def _damaged(path: Path) -> StorageError:
    reason = "it is damaged; restore it, or delete it to lose what it says"
    return StorageError(str(path), "read the state of the review", reason)


def undecided(ids: Iterable[str], verdicts: Collection[str]) -> list[str]:
    """Return the questions without a decision that counts."""
    return [question for question in ids if question not in verdicts]

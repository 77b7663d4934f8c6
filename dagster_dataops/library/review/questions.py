"""`Form`: the fields and choices of all questions; `Question`: the question about one record."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.sorting.canonical_form import canonical
from dagster_dataops.records import Record

ID: Final = "review_id"
DECISION: Final = "decision"
REVIEWER: Final = "reviewer"
COMMENT: Final = "comment"
CHOICES: Final = "choices"
INSTRUCTIONS: Final = "instructions"
NEW_VALUES: Final = "edited"  # of jsonl: the new values by column
EDITED: Final = f"{NEW_VALUES}:"  # begins the names of columns with new values
CHANGED: Final = re.compile(r"edited:.*|edited_[0-9]+", re.DOTALL)  # the second in Label Studio
RESERVED: Final = (ID, DECISION, REVIEWER, COMMENT, CHOICES, INSTRUCTIONS)


class Question(NamedTuple):
    """A question about all records whose fields have the same values.

    Attributes:
        id: A digest of everything that the person sees.
        shown: The values shown, by field.
    """

    id: str
    shown: dict[str, Any]


class Form(NamedTuple):
    """The fields, choices and instructions that a person sees with each record.

    Attributes:
        fields: The columns and selectors shown.
        choices: The possible decisions.
        edit: The columns that may be changed.
        instructions: A text for the person.
    """

    fields: list[str]
    choices: list[str]
    edit: list[str]
    instructions: str

    def question(self, keys: Sequence[FieldKey], record: Record) -> Question:
        """Return the question about a record; ``keys`` are those of the fields."""
        shown = {key.name: key.value(record) for key in keys}
        asked = canonical([list(shown.items()), self.choices, self.edit, self.instructions])
        digest = hashlib.blake2b(asked, digest_size=12).hexdigest()
        return Question(f"q{digest}", shown)  # a spreadsheet would take digits for a number

    def check(self) -> None:
        """Check the parts."""
        self._check_names("fields", self.fields)
        self._check_names("choices", self.choices)
        for name in self.fields:
            if name in RESERVED or CHANGED.fullmatch(name):
                reason = f"the files of a review use the name {name!r}; rename the column first"
                raise DefinitionError(f"fields: {reason}")
        for name in self.edit:
            if name not in self.fields or not FieldKey(name).plain:
                reason = f"{name!r} is no column of fields={self.fields}; show what may be changed"
                raise DefinitionError(f"edit: {reason}")

    @staticmethod
    def _check_names(option: str, names: Sequence[object]) -> None:
        """Raise a `DefinitionError` unless there are names, all different."""
        fit = all(isinstance(name, str) and name == name.strip() != "" for name in names)
        if not names or not fit or len(set(names)) < len(names):
            reason = "give one or more different texts, without space around them"
            raise DefinitionError(f"{option} is {list(names)!r}; {reason}")

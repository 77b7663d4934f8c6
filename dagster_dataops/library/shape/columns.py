"""``shape.Rename``, ``Select``, ``Drop``, ``Fill`` and ``Add``: the columns of a record."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from dagster_dataops.data import data_register
from dagster_dataops.errors import DefinitionError, MissingColumnError, UnfitRecordError
from dagster_dataops.library.field_keys import Keys, key_list
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.records import Record

shape: Any = data_register.new_group("shape")


class Rename(shape):
    """Rename columns, such as ``keys={"content": "text"}``; their order stays.

    Several columns are renamed at once, so two can be exchanged. A missing column is left out, or
    is an error of the record with ``missing="error"``. A new name that the record already has is an
    error of the record, or is replaced with ``overwrite=True``. With ``keep_original=True``, the
    columns are copied: the old names stay, and the new ones come last.

    Args:
        keys: New names by old name.
        missing: ``skip`` or ``error``, for a column that is missing.
        overwrite: Whether columns with a new name are replaced.
        keep_original: Whether the old names stay, too.
    """

    renamed_options: ClassVar = {"replace": "overwrite", "keep": "keep_original"}

    def __init__(
        self,
        keys: Mapping[str, str],
        *,
        missing: str = "skip",
        overwrite: bool = False,
        keep_original: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if len(set(keys.values())) < len(keys):
            msg = f"keys gives two columns the same name: {dict(keys)}"
            raise DefinitionError(msg)
        self._names, self._replace, self._keep = dict(keys), overwrite, keep_original
        self._required = _required(keys, missing)

    def forward(self, record: Record) -> Record:
        check_present(record, self._required)
        values = {new: old for old, new in self._names.items() if old in record and old != new}
        clashing = [
            new for new in values if new in record and (self._keep or new not in self._names)
        ]
        if clashing and not self._replace:
            msg = f"the record already has {clashing}; choose another name, or overwrite=True"
            raise UnfitRecordError(msg)
        if self._keep:
            return record | {new: copy.deepcopy(record[old]) for new, old in values.items()}
        names = self._names
        return {names.get(key, key): value for key, value in record.items() if key not in clashing}


class Select(shape):
    """Keep the columns ``keys``, in this order; drop all others.

    A missing column is left out, or is an error of the record with ``missing="error"``.

    Args:
        keys: Columns, in this order.
        missing: ``skip`` or ``error``, for a column that is missing.
    """

    def __init__(self, keys: Keys, *, missing: str = "skip", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._keys = key_list("keys", keys)
        self._required = _required(self._keys, missing)

    def forward(self, record: Record) -> Record:
        check_present(record, self._required)
        return {key: record[key] for key in self._keys if key in record}


class Drop(shape):
    """Remove the columns ``keys``; a record may lack some.

    Args:
        keys: Column, or several.
    """

    def __init__(self, keys: Keys, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._keys = key_list("keys", keys)

    def forward(self, record: Record) -> Record:
        for key in self._keys:
            record.pop(key, None)
        return record


class Fill(shape):
    """Write ``values``, a dict by column, where the column is missing or ``null``.

    With ``empty=True``, the empty text, list and dict are replaced as well.

    Args:
        values: Values by column.
        empty: Whether the empty text, list and dict are replaced as well.
    """

    def __init__(self, values: Mapping[str, Any], *, empty: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._values, self._empty = dict(values), empty

    def forward(self, record: Record) -> Record:
        for key, value in self._values.items():
            present = record.get(key)
            if present is None or (self._empty and present in ("", [], {})):
                record[key] = copy.deepcopy(value)
        return record


class Add(shape):
    """Write ``values``, a dict by column, into every record; existing values are replaced.

    Args:
        values: Values by column.
    """

    def __init__(self, values: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._values = dict(values)

    def forward(self, record: Record) -> Record:
        record.update(copy.deepcopy(self._values))
        return record


def check_present(record: Record, keys: Iterable[str]) -> None:
    """Check that a record has columns."""
    for key in keys:
        if key not in record:
            raise MissingColumnError(key, f"its keys are {', '.join(record) or 'none'}")


def _required(keys: Iterable[str], missing: str) -> list[str]:
    check_choice("missing", missing, ("skip", "error"))
    return list(keys) if missing == "error" else []

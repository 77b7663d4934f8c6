"""``shape.Flatten``, ``Unflatten`` and ``Explode``: dicts and lists inside a record."""

from collections.abc import Iterator
from typing import Any, ClassVar

from dagster_dataops.errors import DefinitionError, UnfitRecordError
from dagster_dataops.library.field_keys import FieldKey, Keys, key_list
from dagster_dataops.library.shape.columns import shape
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record


class Flatten(shape):
    """Replace dicts by their entries: ``{"a": {"b": 1}}`` becomes ``{"a.b": 1}``.

    ``separator="."`` joins the keys. Reads ``keys``: a list of columns, or ``None`` for all. Lists
    stay as they are, and so do empty dicts. A key that contains ``separator`` is an error of the
    record, so that ``shape.Unflatten`` with the same ``separator`` always gives the record back.

    Args:
        separator: Text between the keys.
        keys: Column that is flattened, or several; ``None`` for all.
    """

    renamed_options: ClassVar = {"sep": "separator"}

    def __init__(self, separator: str = ".", keys: Keys | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._sep = _separator(separator)
        self._keys = None if keys is None else frozenset(key_list("keys", keys))

    def forward(self, record: Record) -> Record:
        flat: Record = {}
        for key, value in record.items():
            if self._sep in key:
                raise UnfitRecordError(_has_separator(key, self._sep))
            if isinstance(value, dict) and (self._keys is None or key in self._keys):
                flat.update(self._entries(key, value))
            else:
                flat[key] = value
        return flat

    def _entries(self, path: str, nested: Any) -> Iterator[tuple[str, Any]]:
        stack: list[Iterator[tuple[str, Any]]] = [iter([(path, nested)])]
        while stack:
            for inner_path, value in stack[-1]:
                if isinstance(value, dict) and value:
                    stack.append(self._below(inner_path, value))
                    break
                yield inner_path, value
            else:
                stack.pop()

    def _below(self, path: str, nested: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        for key, value in nested.items():
            if self._sep in key:
                raise UnfitRecordError(_has_separator(key, self._sep))
            yield f"{path}{self._sep}{key}", value


class Unflatten(shape):
    """Make dicts of keys with a separator: ``{"a.b": 1, "a.c": 2}`` becomes ``{"a": {...}}``.

    ``separator="."`` separates the keys. A record in which a key is a value and a dict at once,
    such as ``{"a": 1, "a.b": 2}``, is an error. It gives back what ``shape.Flatten`` flattened.

    Args:
        separator: Text between the keys.
    """

    renamed_options: ClassVar = {"sep": "separator"}

    def __init__(self, separator: str = ".", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._sep = _separator(separator)

    def forward(self, record: Record) -> Record:
        nested: Record = {}
        copied = {id(nested)}  # the dicts that were made here: others are values
        for key, value in record.items():
            *path, last = key.split(self._sep)
            place: dict[str, Any] = nested
            for step in path:
                if step not in place:
                    place[step] = {}
                    copied.add(id(place[step]))
                elif id(place[step]) not in copied:
                    raise UnfitRecordError(_conflict(key, step))
                place = place[step]
            if last in place:
                raise UnfitRecordError(_conflict(key, last))
            place[last] = value
        return nested


class Explode(shape):
    """Make one record of each element of a list.

    Reads the list in ``input_key``, writes the element to ``output_key`` (by default
    ``input_key``) and its number, from 0, to ``index_key="index"`` (``None``: nowhere). With
    ``merge=True``, the elements are dicts, and their entries become columns of the record, without
    ``input_key``; they replace columns of the same name.

    A missing, ``null`` or empty list drops the record for the reason ``empty``; with
    ``keep_empty=True`` the record stays, with ``null`` as its element. Another value is an error
    of the record.

    Args:
        input_key: Key of the list.
        output_key: Column of the element; ``None`` for ``input_key``.
        index_key: Column of the number of the element, from 0; ``None`` writes none.
        merge: Whether the entries of elements, which are dicts, become columns.
        keep_empty: Whether a record without elements stays.
    """

    def __init__(
        self,
        input_key: str,
        output_key: str | None = None,
        *,
        index_key: str | None = "index",
        merge: bool = False,
        keep_empty: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column = FieldKey(input_key).checked_single("name one list")
        if merge and output_key is not None:
            msg = "merge=True writes the entries of the elements; leave output_key out"
            raise DefinitionError(msg)
        self._written, self._index = output_key, index_key
        self._merge, self._keep_empty = merge, keep_empty

    def forward(self, record: Record) -> Any:
        elements = self._column.value(record)
        if elements is not None and not isinstance(elements, list):
            kind = type(elements).__name__
            msg = f"key {self._column.name!r} holds a {kind}, no list; shape.Explode needs a list"
            raise UnfitRecordError(msg)
        if not elements:
            return self._empty(record)
        copies = [self._with_element(record, element) for element in elements]
        if self._index is not None:
            for number, copy in enumerate(copies):
                copy[self._index] = number
        return copies

    def _empty(self, record: Record) -> Any:
        if not self._keep_empty:
            return Drop("empty")
        numbered = {} if self._index is None else {self._index: None}
        written = {} if self._merge else {self._written or self._column.name: None}
        return record | written | numbered

    def _with_element(self, record: Record, element: Any) -> Record:
        if self._merge:
            if not isinstance(element, dict):
                kind = type(element).__name__
                name = self._column.name
                msg = f"an element of {name!r} is a {kind}, no dict; merge=True needs dicts"
                raise UnfitRecordError(msg)
            rest = record.copy()
            rest.pop(self._column.name, None)
            return rest | element
        return self._column.replaced(element, record, self._written)


def _separator(sep: str) -> str:
    if not sep:
        msg = "sep is empty; give the text between keys, such as '.'"
        raise DefinitionError(msg)
    return sep


def _has_separator(key: str, sep: str) -> str:
    return f"key {key!r} contains the separator {sep!r}; choose another sep"


def _conflict(key: str, step: str) -> str:
    return f"key {key!r} needs {step!r} twice, as a value and as a dict; rename one of them"

"""``shape.Template``, ``Hash`` and ``AddId``: values made of other values of a record."""

import string
from collections.abc import Iterable
from typing import Any, Final

import orjson
import xxhash

from dagster_dataops.errors import DefinitionError, UnfitRecordError
from dagster_dataops.library.field_keys import Keys, key_list
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.library.shape.columns import check_present, shape
from dagster_dataops.operators.outcomes.record_context import OperatorContext
from dagster_dataops.records import Record, encode_anything

_DIGITS: Final = 10
_SORTED: Final = orjson.OPT_SORT_KEYS
_SURROGATES: Final = "surrogatepass"


class Template(shape):
    """Write a text made of columns, such as ``template="{title}: {body}"``.

    Writes ``output_key="text"``. The template is Python's ``str.format``: ``{score:.2f}`` formats,
    ``{meta[lang]}`` takes an entry, ``{{`` is a brace. A missing column is an error of the record,
    ``null`` is the empty text. Attributes of values cannot be named.

    Args:
        template: Format string with columns in braces.
        output_key: Column of the text.
    """

    def __init__(self, template: str, output_key: str = "text", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._template, self._written = template, output_key
        self._keys = _template_keys(template)

    def forward(self, record: Record) -> Record:
        check_present(record, self._keys)
        values = {key: "" if record[key] is None else record[key] for key in self._keys}
        try:
            record[self._written] = self._template.format_map(values)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            problem = f"{type(error).__name__}: {error}"
            msg = f"the template {self._template[:80]!r} does not fit the record: {problem}"
            raise UnfitRecordError(msg) from None
        return record


def _template_keys(template: str) -> list[str]:
    """Return the columns of a template."""
    keys: dict[str, None] = {}
    try:
        open_fields = [template]
        while open_fields:
            for _, field, spec, _ in string.Formatter().parse(open_fields.pop()):
                if field is not None:
                    keys[_column_of(field)] = None
                    open_fields.append(spec or "")
    except ValueError as error:
        msg = f"template {template[:80]!r} is malformed: {error}"
        raise DefinitionError(msg) from None
    return list(keys)


def _column_of(field: str) -> str:
    key, bracket, rest = field.partition("[")
    outside = "".join(part.partition("]")[2] for part in rest.split("[")) if bracket else ""
    if not key or key.isdigit() or "." in key or "." in outside:
        msg = f"{{{field}}} names no column; use {{column}} or {{column[entry]}}"
        raise ValueError(msg)
    return key


class Hash(shape):
    """Write the hash of columns: xxh3-128, as 32 hexadecimal digits.

    Reads ``input_key="text"``, one column or a list, and writes ``output_key="hash"``. The hash of
    one text is that of its UTF-8 bytes. Any other value, and several columns, are hashed as JSON
    with sorted keys; a missing column differs from ``null``.

    Args:
        input_key: Column that is hashed, or several.
        output_key: Column of the hash.
    """

    def __init__(self, input_key: Keys = "text", output_key: str = "hash", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._keys, self._written = key_list("input_key", input_key), output_key

    def forward(self, record: Record) -> Record:
        value = record.get(self._keys[0]) if len(self._keys) == 1 else None
        if isinstance(value, str):
            record[self._written] = xxhash.xxh3_128_hexdigest(value.encode("utf-8", _SURROGATES))
        else:
            record[self._written] = _hash(record, self._keys)
        return record


class AddId(shape):
    """Write an id that stays the same: a hash of the record, or its number in the input.

    Writes ``output_key="id"``: ``prefix=""`` and then, with ``by="content"``, the 32
    hexadecimal digits of an xxh3-128 hash of ``input_key`` (by default all columns but the id, in
    any order). Equal records have equal
    ids, and no record changes the id of another. With ``by="index"``, it is the number of the
    record in the input of the node, from 0, with at least 10 digits, as NeMo Curator's ``AddId``
    writes it. An id that is there stays, unless ``overwrite=True``.

    Args:
        output_key: Column of the id.
        prefix: Text before the digits.
        by: ``content`` or ``index``.
        input_key: Columns that are hashed; ``None`` for all but the id.
        overwrite: Whether an id that is there is replaced.
    """

    def __init__(
        self,
        output_key: str = "id",
        prefix: str = "",
        by: str = "content",
        *,
        input_key: Keys | None = None,
        overwrite: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("by", by, ("content", "index"))
        self._written, self._prefix, self._overwrite = output_key, prefix, overwrite
        self._by_index = by == "index"
        self._keys = None if input_key is None else key_list("input_key", input_key)

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def forward(self, record: Record) -> Record:
        if self._overwrite or record.get(self._written) is None:
            record[self._written] = f"{self._prefix}{self._id(record)}"
        return record

    def _id(self, record: Record) -> str:
        if self._by_index:
            return f"{self._context.index:0{_DIGITS}d}"
        keys = self._keys or [key for key in record if key != self._written]
        return _hash(record, keys)


def _hash(record: Record, keys: Iterable[str]) -> str:
    """Return the hash of columns by name."""
    values = {key: record[key] for key in keys if key in record}
    try:
        data = orjson.dumps(values, option=_SORTED)
    except TypeError:  # between the parts of a chain, values may be none of JSON
        data = encode_anything(values)
    return xxhash.xxh3_128_hexdigest(data, 1)

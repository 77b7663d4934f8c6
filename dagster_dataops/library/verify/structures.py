"""``verify.Regex``, ``Json``, ``JsonSchema`` and ``Fields``: the form of texts and values."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import orjson

from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.option_values import check_choice, needs_extra
from dagster_dataops.library.user_patterns import Engine, applied, compiled
from dagster_dataops.library.verify.fenced_blocks import fenced_blocks
from dagster_dataops.library.verify.verdict import Verdict, verify
from dagster_dataops.records import Record

_SHOWN: Final = 200
_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "list": (list,),
    "dict": (dict,),
}


class Regex(verify):
    """Check that a text matches a regular expression.

    Reads ``input_key="text"`` and writes ``output_key="valid"``. ``match="search"`` looks for
    ``pattern`` anywhere; ``"full"`` wants the whole text to match. With ``negate=True``, texts that
    match fail. The reason of ``mode="drop"`` or ``"both"`` is ``no_match``, or ``match`` with
    ``negate``.

    Args:
        pattern: Regular expression.
        input_key: Key of the text: a column, or a selector.
        output_key: Column of the result, a boolean.
        match: ``search`` anywhere, or ``full`` for the whole text.
        negate: Whether texts that match fail.
        engine: ``re`` or ``re2``, as in ``filters.Regex``.
        mode: ``tag`` writes the result, ``drop`` drops what fails, ``both`` does both.
    """

    added_later = frozenset({"engine"})

    def __init__(
        self,
        pattern: str,
        input_key: str = "text",
        output_key: str = "valid",
        *,
        match: str = "search",
        negate: bool = False,
        engine: Engine = "re",
        mode: str = "tag",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("match", match, ("search", "full"))
        self._pattern = compiled(pattern, engine, "verify.Regex")
        self._full, self._negate = match == "full", negate
        self._column = FieldKey(input_key)
        self._verdict = Verdict(mode, output_key, None)

    def forward(self, record: Record) -> Any:
        text = self._column.text(record)
        matches = self._pattern.fullmatch if self._full else self._pattern.search
        if (applied(matches, text) is None) is self._negate:
            return self._verdict.of(record, None)
        return self._verdict.of(record, "match" if self._negate else "no_match")


class Json(verify):
    """Check that a text is JSON, and write its value.

    Reads ``input_key="text"``. Writes the value to ``parsed_key="parsed"`` (``null`` for a text
    that is no JSON), ``output_key="valid"``, and to ``error_key="error"`` the place and the message
    or ``null``. With ``fenced=True``, the first fenced block marked as JSON is taken if the text
    has one, or the first without a language. Nothing is repaired: an answer that was cut off is no
    JSON. NaN and infinities are no JSON.

    The reasons of ``mode="drop"`` and ``"both"`` are ``empty`` and ``no_json``. The value is
    written in every mode.

    Args:
        input_key: Key of the text: a column, or a selector.
        parsed_key: Column of the value; ``None`` writes none.
        output_key: Column of the result, a boolean.
        error_key: Column of the error in words; ``None`` writes none.
        fenced: Whether a fenced block is taken if there is one.
        mode: ``tag`` writes the result, ``drop`` drops what fails, ``both`` does both.
    """

    def __init__(
        self,
        input_key: str = "text",
        parsed_key: str | None = "parsed",
        output_key: str = "valid",
        error_key: str | None = "error",
        *,
        fenced: bool = True,
        mode: str = "tag",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column, self._parsed, self._fenced = FieldKey(input_key), parsed_key, fenced
        self._verdict = Verdict(mode, output_key, error_key)

    def forward(self, record: Record) -> Any:
        text = self._column.text(record)
        blocks = fenced_blocks(text, ("json",)) if self._fenced else None
        value, error = None, None
        try:
            value = orjson.loads(blocks[0].code if blocks else text)
        except ValueError as fault:  # orjson.JSONDecodeError
            error = str(fault)
        if self._parsed is not None:
            record[self._parsed] = value
        reason = ("no_json" if text.strip() else "empty") if error is not None else None
        return self._verdict.of(record, reason, error)


class JsonSchema(verify):
    """Check a value, or the whole record, by a JSON Schema.

    Reads ``input_key=None``: the whole record, or the value of this key. Writes
    ``output_key="valid"``, and to ``error_key="error"`` the path and the message of the first
    error, such as ``$.items[0].price: -1 is less than the minimum of 0``, or ``null``. A missing
    value counts as ``null``. A text is not parsed: see ``verify.Json``.

    ``schema`` is a dict; references to other documents are refused. The reason of ``mode="drop"``
    and ``"both"`` is ``schema``. Needs the extra ``json-schema``.

    Args:
        schema: JSON Schema, a dict.
        input_key: Key of the value; ``None`` for the whole record.
        output_key: Column of the result, a boolean.
        error_key: Column of the error in words; ``None`` writes none.
        mode: ``tag`` writes the result, ``drop`` drops what fails, ``both`` does both.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        input_key: str | None = None,
        output_key: str = "valid",
        error_key: str | None = "error",
        *,
        mode: str = "tag",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._checked = SchemaCheck(dict(schema))
        self._column = None if input_key is None else FieldKey(input_key)
        self._verdict = Verdict(mode, output_key, error_key)

    def forward(self, record: Record) -> Any:
        if self._column is None:
            value: Any = {**record}  # the validator is no code of Python: all columns are read
        else:
            value = next(iter(self._column.present(record)), None)
        error = self._checked(value)
        return self._verdict.of(record, None if error is None else "schema", error)


class SchemaCheck:
    """Checks values by a JSON Schema; pickled as the schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        with needs_extra("verify.JsonSchema", "json-schema"):
            import jsonschema_rs
        try:
            self._validator = jsonschema_rs.validator_for(schema, retriever=_refuse)
        except (ValueError, TypeError) as error:
            msg = f"schema is no valid JSON Schema: {str(error)[:_SHOWN]}"
            raise DefinitionError(msg) from None

    @override
    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return SchemaCheck, (self._schema,)

    def __call__(self, value: Any) -> str | None:
        """Return the path and message of the first error; ``None`` if there is none."""
        try:
            if self._validator.is_valid(value):
                return None
        except ValueError as surrogate:
            return f"$: {surrogate}"
        error = next(iter(self._validator.iter_errors(value)))
        steps = "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path
        )
        return f"${steps}: {error.message[:_SHOWN]}"


def _refuse(uri: str) -> Any:
    msg = f"it refers to {uri!r}; put all definitions into the schema"
    raise ValueError(msg)


class Fields(verify):
    """Check that a record has columns, and that their values have types.

    ``required`` names columns that must be there and not ``null``. ``types`` gives types by column,
    such as ``{"id": "int", "tags": "list"}``, of ``str``, ``int``, ``float`` (or ``int``),
    ``bool``, ``list`` and ``dict``; a missing column or ``null`` has any type. With
    ``non_empty=True``, required texts, lists and dicts must not be empty or white space alone.
    Columns may be selectors. Writes ``output_key="valid"``, and to ``error_key="error"`` the first
    fault or ``null``.

    Reasons of ``mode="drop"`` and ``"both"``, in this order: ``missing``, ``empty``,
    ``wrong_type``.

    Args:
        required: Columns that must be there.
        types: Types by column; ``None`` checks none.
        output_key: Column of the result, a boolean.
        error_key: Column of the error in words; ``None`` writes none.
        non_empty: Whether required values must not be empty.
        mode: ``tag`` writes the result, ``drop`` drops what fails, ``both`` does both.
    """

    def __init__(
        self,
        required: str | Iterable[str] = (),
        types: Mapping[str, str] | None = None,
        output_key: str = "valid",
        error_key: str | None = "error",
        *,
        non_empty: bool = False,
        mode: str = "tag",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        names = [required] if isinstance(required, str) else list(required)
        types = dict(types or {})
        for key, kind in types.items():
            check_choice(f"the type of {key!r}", kind, _KINDS)
        if not names and not types:
            msg = "give required or types"
            raise DefinitionError(msg)
        self._required = list(map(FieldKey, names))
        self._types = [(FieldKey(key), kind) for key, kind in types.items()]
        self._non_empty = non_empty
        self._verdict = Verdict(mode, output_key, error_key)

    def forward(self, record: Record) -> Any:
        checks: list[Callable[[Record], tuple[str, str] | None]] = [self._absent]
        checks += [self._hollow] * self._non_empty + [self._mistyped]
        for check in checks:
            if fault := check(record):
                return self._verdict.of(record, *fault)
        return self._verdict.of(record, None)

    def _absent(self, record: Record) -> tuple[str, str] | None:
        for column in self._required:
            values = column.present(record)
            if not values or any(value is None for value in values):
                return "missing", f"{column.name} is missing"
        return None

    def _hollow(self, record: Record) -> tuple[str, str] | None:
        for column in self._required:
            for value in column.present(record):
                if value in ([], {}) or (isinstance(value, str) and not value.strip()):
                    return "empty", f"{column.name} is empty"
        return None

    def _mistyped(self, record: Record) -> tuple[str, str] | None:
        for column, kind in self._types:
            for value in column.present(record):
                if value is not None and type(value) not in _KINDS[kind]:
                    return "wrong_type", f"{column.name} is {type(value).__name__}, not {kind}"
        return None

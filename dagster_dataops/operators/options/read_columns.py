"""The columns that an operator needs, and whether a record has them.

An operator declares them by ``reads``; operators of the library by the names of their options. A
key is the name of a column, or a selector such as ``meta.lang`` or ``texts[*].body``. A key whose
value is ``null`` is there. An element that ``[*]`` selects of an empty list is not missing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from dagster_dataops.errors import MissingColumnError, SelectorSyntaxError
from dagster_dataops.foundation.frozen import frozen
from dagster_dataops.foundation.selectors import SPECIAL
from dagster_dataops.records import Record

if TYPE_CHECKING:
    from dagster_dataops.foundation.selectors.selector import Selector

_MOST_NAMED: Final = 20


class ReadName(str):
    """A name in a declaration of ``reads``, with more about it.

    Args:
        name: The key.
        plain: Whether it is the name of a column, never a selector.
        input: The number of the input that has it, from 0; ``None`` for each input.
        optional: Whether records may lack it; if all do, the run warns.
    """

    __slots__ = ("input", "optional", "plain")
    plain: bool
    input: int | None
    optional: bool

    def __new__(
        cls,
        name: str,
        *,
        plain: bool = False,
        input: int | None = None,  # noqa: A002 - our word
        optional: bool = False,
    ) -> Self:
        """Make the name."""
        read_name = super().__new__(cls, name)
        read_name.plain, read_name.input, read_name.optional = plain, input, optional
        return read_name


class ReadKey:
    """A key that an operator reads.

    Args:
        name: The key, with one path.
        plain: Whether it is the name of a column, never a selector.

    Attributes:
        name: The key.
        column: The column that it is, or begins with.
        selector: Its selector; ``None`` for the name of a column.
    """

    def __init__(self, name: str, *, plain: bool = False) -> None:
        self.name = name
        self.selector = None if plain or SPECIAL.isdisjoint(name) else _selector(name)
        self.column = name if self.selector is None else "".join(self.selector.columns)

    def is_in(self, record: Record) -> bool:
        """Return whether a record has the element, perhaps as ``null``."""
        if self.name in record:
            return True
        if self.selector is None:
            return False
        try:
            self.selector.get(record)
        except MissingColumnError:
            return False
        return True

    def is_null(self, record: Record) -> bool:
        """Return whether all elements that it selects in a record that has them are ``null``."""
        if self.name in record:
            return record[self.name] is None
        values = [] if self.selector is None else self.selector.values(record)
        return all(value is None for value in values)


def _selector(name: str) -> "Selector":
    from dagster_dataops.foundation.selectors.selector import Selector  # most keys are columns

    return Selector(name)


def check_keys(record: Record, keys: Iterable[ReadKey]) -> None:
    """Check that a record has keys.

    Raises:
        MissingColumnError: It lacks one.
    """
    for key in keys:
        if not key.is_in(record):
            shown = ", ".join(list(record)[:_MOST_NAMED]) or "none"
            raise MissingColumnError(key.name, f"its columns are {shown}")


def keys_of(names: Iterable[str], number: int = 0, *, optional: bool = False) -> list[ReadKey]:
    """Return the keys of a declaration that are about one of the inputs, each once.

    Args:
        names: The names in the declaration.
        number: The number of the input, from 0.
        optional: Whether those that records may lack are returned, or the others.
    """
    wanted = [
        name
        for name in names
        if getattr(name, "input", None) in {None, number} and is_optional(name) is optional
    ]
    return list({key.name: key for name in wanted for key in _keys(name)}.values())


def columns_needed(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the keys that a declaration needs, each with a column that it is, or begins with."""
    needed = [name for name in names if not is_optional(name)]
    return [(name, key.column) for name in needed for key in _keys(name) if key.column]


def is_optional(name: str) -> bool:
    """Return whether records may lack the key of a name in a declaration."""
    return getattr(name, "optional", False)


def _keys(name: str) -> list[ReadKey]:
    """Return a key for each path of a name; a text that is no selector is the name of a column."""
    plain = getattr(name, "plain", False)
    if not plain and not SPECIAL.isdisjoint(name):
        from dagster_dataops.foundation.selectors.grammar import parse, path_text

        try:
            return [ReadKey(path_text(path)) for path in parse(name)]
        except SelectorSyntaxError:
            plain = True
    return [ReadKey(str(name), plain=plain)]


@frozen(eq=True, kw_only=False)
class OptionsOf:
    """A declaration of ``reads``: the keys in some options, which are texts, lists or mappings.

    Attributes:
        names: Names of the options. ``None`` as the value of an option names no column.
        plain: Whether the keys are names of columns, never selectors.
    """

    names: Sequence[str]
    plain: bool = False

    def __call__(self, **options: Any) -> list[ReadName]:
        """Return the keys in the options of an operator."""
        names = [key for name in self.names for key in texts_in(options.get(name))]
        return [ReadName(key, plain=self.plain) for key in dict.fromkeys(names)]


def texts_in(value: object) -> list[str]:
    """Return the texts that an option names: one, those of a list, or the keys of a mapping."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, (Mapping, Iterable)):
        return []
    return [item for item in value if isinstance(item, str)]

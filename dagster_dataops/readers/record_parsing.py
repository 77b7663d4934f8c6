"""What a reader makes records of, one item after another or several at once, always in order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from typing_extensions import override

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.streams.parallel.parallel_map import ParallelMap
from dagster_dataops.streams.stages.mapping import Map

if TYPE_CHECKING:
    from dagster_dataops.streams.core.stage import Stage


class Parsing(Protocol):
    """Makes a record of an item."""

    def __call__(self, item: Any) -> Any:
        """Return the record."""
        ...

    def described(self) -> Mapping[str, Any]:
        """Return what tells its records from others: its code, and the values that it uses."""
        ...


@dataclass(frozen=True, eq=False)
class Parse(Map):
    """Every item, parsed."""

    name: ClassVar[str] = "parse"

    @override
    def options(self) -> dict[str, Any]:
        return _described(self.functions)


@dataclass(frozen=True, eq=False)
class ParallelParse(ParallelMap):
    """Every item, parsed several at once; the same stage, to whoever compares them."""

    name: ClassVar[str] = "parse"

    @override
    def options(self) -> dict[str, Any]:
        return _described(self.functions)


def _described(functions: tuple[Callable[[Any], Any], ...]) -> dict[str, Any]:
    parsing: Any = functions[0]
    return dict(parsing.described())


def parsed(upstream: "Stage", parsing: Parsing, num_parallel_calls: int = 1) -> "Stage":
    """Return the stage that parses what comes from another, in its order.

    Args:
        upstream: Where items come from.
        parsing: What makes records of them.
        num_parallel_calls: How many at once, in threads.
    """
    if num_parallel_calls == 1:
        return Parse(upstream, (parsing,), None)
    return ParallelParse(
        upstream,
        (parsing,),
        None,
        num_parallel_calls=num_parallel_calls,
        deterministic=True,
        mode="thread",
    )


class LineParsing:
    """Makes a record of a line of a part file by the reader's ``parse``.

    Args:
        parse: Takes the line as a text and returns a record; a method of a reader.
        folder: Where the files are, for errors.
        values: What else of the reader it may use.
        with_place: Whether records get the columns ``file`` and ``line``.
    """

    def __init__(
        self,
        parse: Callable[[str], Any],
        folder: str,
        values: Mapping[str, Any],
        *,
        with_place: bool,
    ) -> None:
        self._parse, self._folder = parse, folder
        self._values, self._with_place = values, with_place

    def __call__(self, item: tuple[str, int, str]) -> Any:
        """Return the record of a line.

        Raises:
            StreamSourceError: It is no UTF-8, or ``parse`` failed or returned no record; with file
                and line.
        """
        name, number, raw = item
        try:
            line = raw if raw.isascii() else raw.encode("latin-1").decode()
            record = self._parse(line.removesuffix("\r"))
        except Exception as error:
            kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
            raise StreamSourceError(self._place(name, number), f"{kind}{error}") from error
        if not isinstance(record, dict):
            reason = f"parse returned a {type(record).__name__}, not a record (a dict)"
            raise StreamSourceError(self._place(name, number), reason)
        return {**record, "file": name, "line": number} if self._with_place else record

    def _place(self, name: str, number: int) -> str:
        return f"{self._folder}/{name}, line {number}"

    def described(self) -> Mapping[str, Any]:
        """Return what tells its records from others."""
        function = getattr(self._parse, "__func__", self._parse)
        return {"parse": function, "values": dict(self._values), "with_place": self._with_place}


class ItemParsing:
    """Makes a record of whatever a reader reads.

    Args:
        parse: A method of the reader.
        values: What else of the reader it may use.
    """

    def __init__(self, parse: Callable[[Any], Any], values: Mapping[str, Any]) -> None:
        self._parse, self._values = parse, values

    def __call__(self, item: Any) -> Any:
        """Return the record of an item."""
        return self._parse(item)

    def described(self) -> Mapping[str, Any]:
        """Return what tells its records from others."""
        function = getattr(self._parse, "__func__", self._parse)
        return {"parse": function, "values": dict(self._values)}

"""Stages that parse the items of a reader into records, serially or in threads, in order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from typing_extensions import override

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.streams.parallel.parallel_map import OrderedMap
from dagster_dataops.streams.stages.mapping import Map

if TYPE_CHECKING:
    from dagster_dataops.streams.core.stage import Stage


class RecordParser(Protocol):
    """A function that makes a record of an item."""

    def __call__(self, item: Any) -> Any:
        """Return the record."""
        ...

    def identity_values(self) -> Mapping[str, Any]:
        """Return the code and the values that determine the records."""
        ...


@dataclass(eq=False)
class ParseStage(Map):
    """Parse each item."""

    name: ClassVar[str] = "parse"

    @override
    def options(self) -> dict[str, Any]:
        return _identity_values(self.functions)


@dataclass(eq=False)
class ParallelParseStage(OrderedMap):
    """Parse items in threads. Its fingerprint is that of `ParseStage`."""

    name: ClassVar[str] = "parse"

    @override
    def options(self) -> dict[str, Any]:
        return _identity_values(self.functions)


def _identity_values(functions: tuple[Callable[[Any], Any], ...]) -> dict[str, Any]:
    parsing: Any = functions[0]
    return dict(parsing.identity_values())


def parse_stage(upstream: "Stage", parsing: RecordParser, num_parallel_calls: int = 1) -> "Stage":
    """Return a stage that parses the items of another one, in order.

    Args:
        upstream: The input.
        parsing: Makes a record of an item.
        num_parallel_calls: The number of threads; 1 parses in the reading thread.
    """
    if num_parallel_calls == 1:
        return ParseStage(upstream, (parsing,), None)
    return ParallelParseStage(upstream, (parsing,), None, num_parallel_calls, mode="thread")


class LineParser:
    """Makes a record of a line with the ``parse`` method of a `PartFiles` reader.

    Args:
        parse: The bound method; takes the line and returns a record.
        folder: The folder of the files, for errors.
        values: The attributes of the reader that ``parse`` may use.
        with_place: Whether to add the columns ``file`` and ``line``.
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
            StreamSourceError: The line is not UTF-8, or ``parse`` failed or did not return a dict;
                with file and line.
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

    def identity_values(self) -> Mapping[str, Any]:
        """Return the code and the values that determine the records."""
        function = getattr(self._parse, "__func__", self._parse)
        return {"parse": function, "values": dict(self._values), "with_place": self._with_place}


class ItemParser:
    """Makes a record of an item with the ``parse`` method of a `Reader`.

    Args:
        parse: The bound method.
        values: The attributes of the reader that ``parse`` may use.
    """

    def __init__(self, parse: Callable[[Any], Any], values: Mapping[str, Any]) -> None:
        self._parse, self._values = parse, values

    def __call__(self, item: Any) -> Any:
        """Return the record of an item."""
        return self._parse(item)

    def identity_values(self) -> Mapping[str, Any]:
        """Return the code and the values that determine the records."""
        function = getattr(self._parse, "__func__", self._parse)
        return {"parse": function, "values": dict(self._values)}

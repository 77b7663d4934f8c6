"""Stages that parse the items of a reader into records, serially or in threads, in order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.parallel.parallel_map import OrderedMap
from dagster_dataops.streams.stages.mapping import Map

if TYPE_CHECKING:
    from dagster_dataops.streams.core.stage import Stage


@dataclass(frozen=True, eq=False)
class ItemParser:
    """Makes a record of an item with the ``parse`` method of a reader.

    Attributes:
        parse: The bound method.
        values: The attributes of the reader that ``parse`` may use.
    """

    parse: Callable[[Any], Any]
    values: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, item: Any) -> Any:
        """Return the record of an item."""
        return self.parse(item)

    def options(self) -> dict[str, Any]:
        """Return the code and the values that determine the records."""
        function = getattr(self.parse, "__func__", self.parse)
        return {"parse": function, "values": dict(self.values)}


@dataclass(frozen=True, eq=False, kw_only=True)
class LineParser(ItemParser):
    """Makes a record of a line; the item is a file name, a line number and the line.

    Attributes:
        folder: The folder of the files, for errors.
        with_place: Whether to add the columns ``file`` and ``line``.
    """

    folder: str
    with_place: bool

    @override
    def __call__(self, item: tuple[str, int, str]) -> Any:
        name, number, raw = item
        try:
            line = raw if raw.isascii() else raw.encode("latin-1").decode()
            record = self.parse(line.removesuffix("\r"))
        except Exception as error:
            raise self.refused(f"{name}, line {number}", error) from error
        if type(record) is not dict or self.with_place:
            return self.placed(record, name, number, f"line {number}")
        return record

    def refused(self, place: str, error: Exception) -> StreamSourceError:
        """Return the error of an item at a place in the folder."""
        kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
        return StreamSourceError(f"{self.folder}/{place}", f"{kind}{error}")

    def placed(self, record: Any, name: str, number: int, place: str) -> Any:
        """Return a record, with its file and number if wanted."""
        if not isinstance(record, dict):
            reason = f"parse returned a {type(record).__name__}, not a record (a dict)"
            raise StreamSourceError(f"{self.folder}/{name}, {place}", reason)
        return {**record, "file": name, "line": number} if self.with_place else record

    @override
    def options(self) -> dict[str, Any]:
        return {**super().options(), "with_place": self.with_place}


@dataclass(eq=False)
class ParseStage(Map):
    """Parse each item."""

    name: ClassVar[str] = "parse"

    @override
    def options(self) -> dict[str, Any]:
        return _options(self.functions)


@dataclass(eq=False)
class ParallelParseStage(OrderedMap):
    """Parse items in threads. Its fingerprint is that of `ParseStage`."""

    name: ClassVar[str] = "parse"

    @override
    def options(self) -> dict[str, Any]:
        return _options(self.functions)


def _options(functions: tuple[Any, ...]) -> dict[str, Any]:
    options: dict[str, Any] = functions[0].options()
    return options


def parse_stage(upstream: "Stage", parsing: ItemParser, num_parallel_calls: int = 1) -> "Stage":
    """Return a stage that parses the items of another one, in order.

    Args:
        upstream: The input.
        parsing: Makes a record of an item.
        num_parallel_calls: The number of threads; 1 parses in the reading thread.
    """
    if num_parallel_calls == 1:
        return ParseStage(upstream, (parsing,), None)
    return ParallelParseStage(upstream, (parsing,), None, num_parallel_calls, mode="thread")

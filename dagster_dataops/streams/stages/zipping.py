"""``zip``: yield one item of each stream together."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.stage import CombinedStage, ReadContext

_END: Final = object()


@dataclass(eq=False)
class ZipStage(CombinedStage):
    """Yield one item of each stream as a list, as a dict (``names``) or merged (``flatten``).

    At the end some streams have lost one item to an incomplete row, so whether this end was reached
    is saved.
    """

    name: ClassVar[str] = "zip"
    saved: ClassVar[tuple[str, ...]] = ("failed", "_finished")
    names: tuple[str, ...]
    zip_to_shortest: bool
    flatten: bool

    @property
    @override
    def finitude(self) -> Finitude:
        endless = any(source.finitude is Finitude.INFINITE for source in self.sources)
        return Finitude.INFINITE if endless else Finitude.FINITE

    @override
    def begin(self, context: ReadContext) -> None:
        self._mixture_fault = _mixture_fault([source.finitude for source in self.sources])

    @override
    def reset(self) -> None:
        self._finished = False

    @override
    def items(self) -> Iterator[Any]:
        if self._mixture_fault:
            raise DataPipelineError(self._mixture_fault)
        iterators = [source.items() for source in self.opened]
        combine, item = self._combined_row, None
        while iterators and not self._finished:
            row = [next(iterator, _END) for iterator in iterators]
            if has_end(row) and self._is_finished(row, iterators):
                self._finished = True
                return
            try:
                item = combine(row)
            except DataPipelineError as error:
                item = self.counter.handle(row, error, item)
            else:
                yield item

    def _is_finished(self, row: list[Any], iterators: list[Iterator[Any]]) -> bool:
        """Return whether the streams have ended. Ended pseudo-infinite streams are restarted."""
        deciding = [at for at, pseudo in enumerate(self.pseudo_infinite) if not pseudo]
        longer = [str(at) for at in deciding if row[at] is not _END]
        if len(longer) < len(deciding):
            if not longer or self.zip_to_shortest:
                return True
            msg = (
                "zip: all streams must have the same number of items, but those at the indices "
                f"[{', '.join(longer)}] have more than the others; zip_to_shortest=True drops them"
            )
            raise DataPipelineError(msg)
        for at, source in enumerate(self.opened):
            if row[at] is _END:
                source.restart()
                iterators[at] = source.items()
                row[at] = next(iterators[at], _END)
        return has_end(row)

    def _combined_row(self, row: list[Any]) -> Any:
        if self.flatten:
            return _flat_dict(row) if isinstance(row[0], dict) else _flat_list(row)
        if not self.names:
            return row
        named: dict[str, Any] = {}
        for name, item in zip(self.names, row, strict=True):
            named.setdefault(name, item)
        return named


def has_end(row: list[Any]) -> bool:
    """Return whether a stream had no item for this row.

    ``_END in row`` would compare items, and some types cannot be compared.
    """
    for item in row:  # noqa: SIM110 - takes a third of the time of any()
        if item is _END:
            return True
    return False


def _mixture_fault(kinds: list[Finitude]) -> str:
    if Finitude.INFINITE in kinds and Finitude.FINITE in kinds:
        return "zip: finite and infinite streams cannot be mixed; end the infinite one with take()"
    if kinds and all(kind is Finitude.PSEUDO_INFINITE for kind in kinds):
        return "zip: pseudo-infinite streams alone never end; end one of them with take()"
    return ""


def _flat_dict(row: list[Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for item in row:
        if not isinstance(item, dict):
            raise DataPipelineError("zip: with flatten, either all items must be dicts or none")
        for key, value in item.items():
            if key in flat:
                msg = (
                    f"zip: with flatten, all keys must differ, but two streams have the key {key!r}"
                )
                raise DataPipelineError(msg)
            flat[key] = value
    return flat


def _flat_list(row: list[Any]) -> list[Any]:
    flat: list[Any] = []
    for item in row:
        if isinstance(item, dict):
            raise DataPipelineError("zip: with flatten, either all items must be dicts or none")
        flat.extend(item) if isinstance(item, list) else flat.append(item)
    return flat

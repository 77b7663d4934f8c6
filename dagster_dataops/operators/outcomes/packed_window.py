"""Packing operators: two methods, ``select_samples_to_pack`` and ``pack_selected_samples``."""

from typing import Any, Final

from dagster_dataops.foundation.parts import function_of_part
from dagster_dataops.records import Record

SELECT: Final = "select_samples_to_pack"
PACK: Final = "pack_selected_samples"


class PackedWindow(list[Record]):
    """The packs of a window.

    Attributes:
        failed: The error of each record whose groups all failed, by its place in the window.
        unused: The places of the records that are in no group.
    """

    failed: dict[int, Exception]
    unused: set[int]


def is_packing(cls: type) -> bool:
    """Return whether a class has both methods of a packing operator."""
    return callable(getattr(cls, SELECT, None)) and callable(getattr(cls, PACK, None))


def forward_window(self: Any, records: list[Record]) -> PackedWindow:
    """Return the packs of a window.

    An error in a group fails the records of this group alone, an error of the selection all
    records of the window.
    """
    from dagster_dataops.streams.stages.grouping.window_packing import groups_of, packs_of

    with_lazy_files = function_of_part("with_lazy_files")
    samples = [with_lazy_files(record) for record in records]
    try:
        groups = groups_of(self.select_samples_to_pack(list(samples)))
    except Exception as error:  # noqa: BLE001 - a failure of this window alone
        return _failed_window(error, len(samples))
    places = {id(sample): place for place, sample in enumerate(samples)}
    window = PackedWindow()
    packed: set[int] = set()
    failed: dict[int, Exception] = {}
    foreign = False
    for group in filter(None, groups):
        members = [places[id(sample)] for sample in group if id(sample) in places]
        foreign = foreign or len(members) < len(group)
        try:
            window += packs_of(self.pack_selected_samples, group)
        except Exception as error:  # noqa: BLE001 - a failure of this group alone
            failed |= dict.fromkeys(members, error)
        else:
            packed.update(members)
    window.failed = {place: error for place, error in failed.items() if place not in packed}
    rest = set(range(len(samples))) - packed - set(window.failed)
    window.unused = set() if foreign else rest  # copies of records cannot be told apart
    return window


def _failed_window(error: Exception, size: int) -> PackedWindow:
    window = PackedWindow()
    window.failed, window.unused = dict.fromkeys(range(size), error), set()
    return window


def add_forward_window(cls: type) -> None:
    """Give a class with both methods, and no other of an operator, ``forward_window``."""
    others = ("forward", "forward_batch", "forward_window", "forward_batch_input")
    if is_packing(cls) and not any(callable(getattr(cls, other, None)) for other in others):
        cls.forward_window = forward_window  # type: ignore[attr-defined]

"""`DropExplainer`: the numbers behind drops, and the records that duplicates are duplicates of.

The operator of a published result is constructed again from the options in the manifest. It is
asked only if these give the same digest as those of the run: an option that the manifest does not
hold in full, such as a function, gives another one.
"""

import copy
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from dagster_dataops.data import data_register
from dagster_dataops.errors import DataOpsError
from dagster_dataops.operators.bound_methods import keep_function, plain_function
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.records import Record

_LIBRARY: Final = "dagster_dataops.library."
_CLUSTER: Final = "cluster_of_view"
_HIDDEN: Final = frozenset({"drop_reason"})


class Explanation(NamedTuple):
    """Why a record was dropped.

    Attributes:
        reason: The reason that the operator gives now.
        numbers: What it measured, by name.
        found: Texts of the record that it found, such as an n-gram of a benchmark.
    """

    reason: str
    numbers: dict[str, Any]
    found: list[str]


class DropExplainer:
    """Asks an operator again about records that it dropped.

    Args:
        operator: The operator.
    """

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        options = operator.__dataops__.options
        self._tags = _changed(operator, mode="tag") if options.get("mode") == "drop" else None
        self._clusters: Operator | None = None
        if "cluster_key" in options and options["cluster_key"] is None:
            self._clusters = _changed(operator, cluster_key=_CLUSTER)
        self._first_of_equals = operator.__dataops__.spec.qualified_name == "dedup.Exact"

    @property
    def limits(self) -> dict[str, float]:
        """The options that are numbers, with those that have their default."""
        options = self._operator.__dataops__.options.items()
        return {name: one for name, one in options if type(one) in {int, float}}

    @property
    def explains(self) -> bool:
        """Whether it can tell numbers."""
        return self._tags is not None

    @property
    def pairs_up(self) -> bool:
        """Whether it can tell which record a dropped one is a duplicate of."""
        return self._clusters is not None or self._first_of_equals

    def explanation(self, record: Record) -> Explanation | None:
        """Return why a record was dropped; ``None`` if the operator cannot be asked."""
        if self._tags is None:
            return None
        given = copy.deepcopy(record)
        try:
            made = plain_function(self._tags)(given)
        except Exception:  # noqa: BLE001 - then there is no explanation
            return None
        made = given if made is None else made
        if not isinstance(made, Mapping):
            return None
        numbers = dict(_new(record, made))
        shown = {name: one for name, one in numbers.items() if name not in _HIDDEN}
        found = [value for value in shown.values() if isinstance(value, str) and value.strip()]
        return Explanation(str(made.get("drop_reason") or ""), shown, found)

    def kept(
        self,
        records: Iterable[tuple[int, Record]],
        dropped: Collection[int],
        scratch: Path,
    ) -> dict[int, int]:
        """Return which kept record each dropped one is a duplicate of, by index.

        Args:
            records: Index and content of all records that did not fail, in order.
            dropped: The indices of the dropped ones.
            scratch: An empty folder for temporary files.

        Raises:
            DataOpsError: The operator failed.
        """
        if self._first_of_equals:
            return _first_of_equals(self._operator, records, dropped)
        indices: array[int] = array("Q")
        operator = self._clusters
        assert operator is not None  # noqa: S101 - asked only if it pairs up
        sketch = plain_function(operator)

        def sketches() -> Iterator[Any]:
            for index, record in records:
                indices.append(index)
                yield sketch(copy.copy(record))

        wanted, found = set(dropped), {}
        for at, cluster in enumerate(keep_function(operator, scratch)(sketches())):
            if indices[at] in wanted and cluster["id"] != at:
                found[indices[at]] = indices[cluster["id"]]
        return found


def _first_of_equals(
    operator: Operator, records: Iterable[tuple[int, Record]], dropped: Collection[int]
) -> dict[int, int]:
    sketch, wanted = plain_function(operator), set(dropped)
    first: dict[Any, int] = {}
    found = {}
    for index, record in records:
        value = sketch(record)
        if index in wanted:
            found[index] = first[value]
        else:
            first.setdefault(value, index)
    return found


def _new(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what an operator has written; of a dict that was there, what is new in it."""
    for name, value in after.items():
        if name in before and before[name] == value:
            continue
        if isinstance(value, dict):
            known = before.get(name)
            yield from _new(known if isinstance(known, dict) else {}, value)
        else:
            yield name, value


def _changed(operator: Operator, **options: Any) -> Operator | None:
    change: Callable[[Mapping[str, Any]], Operator] = operator.__dataops_changed__
    try:
        return change(options)
    except DataOpsError:
        return None


def drop_explainer(
    name: str, options: Mapping[str, Any], options_digest: str
) -> DropExplainer | None:
    """Return the explainer of an operator of the library.

    Args:
        name: Its qualified name, such as ``filters.WordCount``.
        options: The options whose value is not the default, from the manifest.
        options_digest: The digest of all options in the run.

    Returns:
        The explainer; ``None`` if it is an operator of a user, if it cannot be constructed, or if
        an option is another one than in the run.
    """
    group, _, own = name.rpartition(".")
    try:
        kind = data_register.operator(group, own)
        if not kind.__module__.startswith(_LIBRARY):
            return None
        operator: Operator = kind(**options)
        if operator.__dataops__.options_digest != options_digest:
            return None
    except Exception:  # noqa: BLE001 - an option can be an artefact, a file that is gone, ...
        return None
    return DropExplainer(operator)

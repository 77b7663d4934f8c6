"""`DropExplainer`: the numbers behind drops, and the records that duplicates are duplicates of.

The operator of a published result is constructed again from the options in the manifest. It is
called only if their digest is the same as in the run. An option that the manifest does not hold in
full, such as a function, changes the digest.
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
_OF_EQUALS: Final = frozenset({"dedup.Exact", "dedup.Url"})  # their duplicates are equal
_HIDDEN: Final = frozenset({"drop_reason"})


class Explanation(NamedTuple):
    """Why a record was dropped.

    Attributes:
        reason: The reason that the operator gives now.
        numbers: The values that it measured, by name.
        found: Texts of the record that caused the drop, such as an n-gram of a benchmark.
    """

    reason: str
    numbers: dict[str, Any]
    found: list[str]


class DropExplainer:
    """Calls an operator again on records that it dropped, to explain the drops."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        options = operator.__dataops__.options
        self._tags = _changed(operator, mode="tag") if options.get("mode") == "drop" else None
        self._clusters: Operator | None = None
        if "cluster_key" in options and options["cluster_key"] is None:
            self._clusters = _changed(operator, cluster_key=_CLUSTER)
        self._compares_equals = operator.__dataops__.spec.qualified_name in _OF_EQUALS

    @property
    def limits(self) -> dict[str, float]:
        """The options that are numbers, also those with their default."""
        options = self._operator.__dataops__.options.items()
        return {name: value for name, value in options if type(value) in {int, float}}

    @property
    def explains(self) -> bool:
        """Whether it can return explanations."""
        return self._tags is not None

    @property
    def pairs_up(self) -> bool:
        """Whether it can find the record that a dropped one is a duplicate of."""
        return self._clusters is not None or self._compares_equals

    def explanation(self, record: Record) -> Explanation | None:
        """Return why a record was dropped; ``None`` if the operator cannot explain it."""
        if self._tags is None:
            return None
        changed = copy.deepcopy(record)
        try:
            tagged = plain_function(self._tags)(changed)
        except Exception:  # noqa: BLE001 - then there is no explanation
            return None
        tagged = changed if tagged is None else tagged
        if not isinstance(tagged, Mapping):
            return None
        numbers = dict(_new(record, tagged))
        shown = {name: value for name, value in numbers.items() if name not in _HIDDEN}
        texts = [value for value in shown.values() if isinstance(value, str) and value.strip()]
        return Explanation(str(tagged.get("drop_reason") or ""), shown, texts)

    def kept(
        self,
        records: Iterable[tuple[int, Record]],
        dropped: Collection[int],
        scratch: Path,
    ) -> dict[int, int]:
        """Return the index of the kept record by the index of each duplicate of it.

        Args:
            records: Index and content of all records that did not fail, in order.
            dropped: The indices of the dropped ones.
            scratch: An empty folder for temporary files.
        """
        if self._compares_equals:
            return _kept_of_equals(self._operator, records, dropped)
        indices: array[int] = array("Q")
        operator = self._clusters
        assert operator is not None  # noqa: S101 - called only if it pairs up
        sketch = plain_function(operator)

        def sketches() -> Iterator[Any]:
            for index, record in records:
                indices.append(index)
                yield sketch(copy.copy(record))

        wanted, kept_by = set(dropped), {}
        for at, cluster in enumerate(keep_function(operator, scratch)(sketches())):
            if indices[at] in wanted and cluster["id"] != at:
                kept_by[indices[at]] = indices[cluster["id"]]
        return kept_by


def _kept_of_equals(
    operator: Operator, records: Iterable[tuple[int, Record]], dropped: Collection[int]
) -> dict[int, int]:
    sketch, duplicates = plain_function(operator), set(dropped)
    keys: dict[int, Any] = {}
    kept: dict[Any, int] = {}
    for index, record in records:
        value = sketch(record)
        key = value[0] if isinstance(value, list) else value  # without the rank
        if index in duplicates:
            keys[index] = key
        else:
            kept.setdefault(key, index)
    return {index: kept[key] for index, key in keys.items() if key in kept}


def _new(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each entry that an operator wrote, also in nested dicts."""
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
    group, _, operator_name = name.rpartition(".")
    try:
        kind = data_register.operator(group, operator_name)
        if not kind.__module__.startswith(_LIBRARY):
            return None
        operator: Operator = kind(**options)
        if operator.__dataops__.options_digest != options_digest:
            return None
    except Exception:  # noqa: BLE001 - an option can be an artefact, a file that is gone, ...
        return None
    return DropExplainer(operator)

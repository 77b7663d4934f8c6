"""``sample.Split`` and ``sample.Rate``: decide about each record by its hash."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, ClassVar, Final

import xxhash

from dagster_dataops.data import data_register
from dagster_dataops.errors import DefinitionError, OperatorOptionError
from dagster_dataops.library.field_keys import FieldKey, Keys, key_list
from dagster_dataops.library.sorting.canonical_form import canonical
from dagster_dataops.operators.options.ranges import Fraction
from dagster_dataops.operators.outcomes.named_outputs import To
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

sample: Any = data_register.new_group("sample")

_BITS: Final = 64


def _outputs(ratios: Any, **_: Any) -> tuple[str, ...]:
    names = tuple(ratios) if isinstance(ratios, Mapping) else ()
    if len(names) < 2:
        reason = f"must have shares by 2 to 64 different names, got {ratios!r:.100}"
        raise OperatorOptionError("sample.Split", "ratios", reason)
    return names


class Split(sample, outputs=_outputs):  # type: ignore[call-arg]  # taken by the metaclass
    """Send each record to one of several outputs, by its hash.

    ``ratios`` has the expected share of the records by the name of the output; the sum is 1.
    The names are the outputs of the node, in this order. The hash is that of the column
    ``hash_key`` or of several, by default of the whole record, with ``seed``. So equal records go
    to the same output, and adding records never moves others. With ``group_key`` the hash is that
    of these columns alone, so that records of one group stay together; ``hash_key`` is left out
    then. Records without the key go to the same output.

    Args:
        ratios: Share of each output, by its name.
        hash_key: Column that is hashed, or several; ``None`` for the whole record.
        group_key: Columns whose equal values stay together, instead of ``hash_key``.
        seed: Another number makes another choice.
    """

    renamed_options: ClassVar = {"fractions": "ratios", "key": "hash_key"}

    def __init__(
        self,
        ratios: Mapping[str, float] = {"train": 0.9, "val": 0.05, "test": 0.05},
        *,
        hash_key: Keys | None = None,
        group_key: Keys | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if any(share < 0 for share in ratios.values()) or not math.isclose(
            sum(ratios.values()), 1, abs_tol=1e-9
        ):
            msg = f"ratios must be positive and their sum 1, got {dict(ratios)}"
            raise DefinitionError(msg)
        if hash_key is not None and group_key is not None:
            msg = "give hash_key or group_key, not both: records of one group have one hash"
            raise DefinitionError(msg)
        self._hash = RecordHash(hash_key if group_key is None else group_key, seed)
        self._outputs = list(ratios)
        self._ends = list(accumulate(ratios.values()))[:-1]

    def forward(self, record: Record) -> To:
        return To(self._outputs[bisect_right(self._ends, self._hash.share(record))])


class Rate(sample):
    """Keep each record with probability ``ratio``, decided by its hash.

    The hash is that of the column ``hash_key`` or of several, by default of the whole record, with
    ``seed``. So equal records are kept together, adding records changes nothing for others, and a
    higher rate keeps the same records and more. The reason of drops is ``sampled_out``.

    Other than in datatrove, the result does not depend on the order of records or on workers.

    Args:
        ratio: Share of the records that is kept, 0 to 1.
        hash_key: Column that is hashed, or several; ``None`` for the whole record.
        seed: Another number makes another choice.
    """

    renamed_options: ClassVar = {"rate": "ratio", "key": "hash_key"}

    def __init__(
        self, ratio: Fraction, *, hash_key: Keys | None = None, seed: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._rate, self._hash = ratio, RecordHash(hash_key, seed)

    def forward(self, record: Record) -> Drop | None:
        return None if self._hash.share(record) < self._rate else Drop("sampled_out")


class RecordHash:
    """Computes a hash of some columns of a record, or with ``key=None`` of the whole record.

    The order of columns in the record does not count. Another seed gives other numbers.
    """

    def __init__(self, key: Keys | None, seed: int = 0) -> None:
        self._columns = [] if key is None else list(map(FieldKey, key_list("hash_key", key)))
        self._seed = seed

    def of(self, record: Record) -> int:
        """Return the hash, less than 2^64."""
        columns = self._columns
        chosen: Any = [column.present(record) for column in columns] if columns else {**record}
        return xxhash.xxh3_64_intdigest(canonical(chosen), self._seed % (1 << _BITS))

    def share(self, record: Record) -> float:
        """Return the hash as a number from 0 to less than 1."""
        return (self.of(record) >> 11) / (1 << 53)  # the bits that a float holds

"""``llm.SemanticDedup``: remove texts that mean the same as another."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from dagster_dataops.foundation.hashing.operational import Operational
from dagster_dataops.foundation.override import override
from dagster_dataops.library.dedup.algorithms.option_checks import (
    Threshold,
    cluster_columns,
    need_numpy,
)
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.llm.embedding import embedded
from dagster_dataops.library.llm.text_prompts import llm
from dagster_dataops.library.llm.vector_files import (
    near_vectors,
    packed_column,
    packed_vector,
    stored_rows,
)
from dagster_dataops.models.model_operator import DEFAULT_CLIENT, ModelOperator
from dagster_dataops.operators.options.ranges import AtLeastZero, PositiveInt
from dagster_dataops.operators.outcomes.record_context import OperatorContext
from dagster_dataops.records import Record


class SemanticDedup(ModelOperator, llm, writes=cluster_columns):  # type: ignore[call-arg]  # by the metaclass
    """Drop records whose text means the same as that of a record before.

    Reads ``input_key="text"``. The model ``model`` makes a vector of each text, of ``batch_size``
    texts a request; with ``vector_key``, the column of that name has the vectors, and no model is
    called. A record is dropped if the cosine of its vector and that of a kept record is at least
    ``threshold``. The first record of those that are near is kept.

    Up to ``exact_up_to`` records, each is compared with all kept ones. With more, only those are
    compared that are on the same side of 16 random hyperplanes, for as many sets of hyperplanes as
    find 99 % of the pairs at the threshold, at most 256 sets.

    With ``cluster_key`` nothing is dropped. That column becomes ``{"id": position of the kept
    record, "kept": bool}``.

    The selection uses up to ``max_memory_mb`` MB and two bytes a number of the vectors. Needs the
    extra ``dedup``.

    Source: Abbas et al. 2023, arXiv:2303.09540. There the vectors are clustered first; here
    all pairs count.

    Args:
        input_key: Key of the text: a column, or a selector.
        threshold: Cosine, 0 to 1, from which records are near.
        dimensions: Numbers in a vector; ``None`` for those of the model.
        batch_size: Texts in a request.
        vector_key: Column of the vector; ``None`` calls the model.
        cluster_key: Column of the cluster; ``None`` drops records instead.
        exact_up_to: Most records that are all compared.
        max_memory_mb: Memory in MB before files are used.
    """

    def __init__(
        self,
        input_key: str = "text",
        *,
        threshold: Threshold = 0.95,
        model: str = "text-embedding-3-small",
        dimensions: PositiveInt | None = None,
        batch_size: PositiveInt = 32,
        vector_key: str | None = None,
        cluster_key: str | None = None,
        exact_up_to: AtLeastZero = 100_000,
        max_memory_mb: PositiveInt = 256,
        client: Annotated[Any, Operational] = DEFAULT_CLIENT,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, client, **{"_batch_size": batch_size, "_max_workers": 16, **kwargs})
        need_numpy("llm.SemanticDedup")
        self._column, self._dimensions = FieldKey(input_key), dimensions
        self._vectors = None if vector_key is None else FieldKey(vector_key)
        self._threshold, self._exact_up_to = threshold, exact_up_to
        self._cluster_key = cluster_key
        self._max_bytes = max_memory_mb << 20

    @override
    async def open(self, context: OperatorContext) -> None:
        if self._vectors is None:
            await super().open(context)

    @override
    def __dataops_server__(self, clients: Mapping[str, Any]) -> tuple[str, bool]:
        return super().__dataops_server__(clients) if self._vectors is None else ("", False)

    async def sketch_batch(self, records: list[Record]) -> list[str]:
        if self._vectors is not None:
            return [packed_column(self._vectors, record) for record in records]
        texts = [self._column.text(record) for record in records]
        return [packed_vector(vector) for vector in await embedded(self, texts, self._dimensions)]

    def keep(self, sketches: Iterator[str], scratch: Path) -> Iterator[Any]:
        vectors = stored_rows(scratch / "vectors", sketches)
        limits = self._threshold, self._exact_up_to
        for position, kept in near_vectors(vectors, *limits, scratch / "buckets", self._max_bytes):
            if self._cluster_key is None:
                yield position == kept
            else:
                yield {"id": kept, "kept": position == kept}

    def change(self, record: Record, cluster: dict[str, Any]) -> Record:
        return {**record, str(self._cluster_key): cluster}

"""``llm.Embed``: vectors of texts."""

from typing import Annotated, Any, Final

from dagster_dataops.errors import InvalidOutputError
from dagster_dataops.foundation.hashing.operational import Operational
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.llm.text_prompts import llm
from dagster_dataops.models.model_operator import DEFAULT_CLIENT, ModelOperator
from dagster_dataops.models.model_session import Endpoint
from dagster_dataops.models.replies.vectors import vector_length, vectors_of
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import JsonValue, Record


class Embed(ModelOperator, llm):
    """Write the vector of a text, by the model ``model``.

    Reads ``input_key="text"`` and writes ``output_key="embedding"``, a list of numbers; of
    ``dimensions`` numbers if the model supports that. Each request has the texts of ``batch_size``
    records. If the server refuses one, it is divided until the bad text is alone. All vectors of a
    result have one length, and their numbers are finite; otherwise the record fails.

    Args:
        input_key: Key of the text: a column, or a selector.
        output_key: Column of the vector.
        dimensions: Numbers in a vector; ``None`` for those of the model.
        batch_size: Texts in a request.
    """

    def __init__(
        self,
        input_key: str = "text",
        output_key: str = "embedding",
        *,
        model: str = "text-embedding-3-small",
        dimensions: PositiveInt | None = None,
        batch_size: PositiveInt = 32,
        client: Annotated[Any, Operational] = DEFAULT_CLIENT,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, client, **{"_batch_size": batch_size, "_max_workers": 16, **kwargs})
        self.output_key = output_key
        self._column = FieldKey(input_key)
        self._dimensions = dimensions

    async def forward_batch(self, records: list[Record]) -> list[Record]:
        texts = [self._column.text(record) for record in records]
        vectors = await embedded(self, texts, self._dimensions)
        return [
            record | {self.output_key: vector}
            for record, vector in zip(records, vectors, strict=True)
        ]


async def embedded(
    operator: ModelOperator, texts: list[str], dimensions: int | None = None
) -> list[list[JsonValue]]:
    """Return the vectors of texts, by one request.

    Args:
        operator: The operator that asks; it is open.
        texts: The texts.
        dimensions: Length of the vectors, if the model supports it.

    Raises:
        BadReplyError: Vectors are missing.
        InvalidOutputError: A vector has another length than others of the result, or a number that
            is not finite.
    """
    request: dict[str, Any] = {"model": operator.model, "input": texts, "encoding_format": "float"}
    if dimensions is not None:
        request["dimensions"] = dimensions
    reply, _ = await operator.call(request, endpoint=_EMBEDDINGS)
    vectors = vectors_of(request, reply)
    try:
        operator.session.check_length(request, len(vectors[0]), vector_length)
    except InvalidOutputError:
        operator.session.reject(request)
        raise
    return vectors


def _check(request: dict[str, Any], reply: dict[str, Any]) -> None:
    vectors_of(request, reply)


_EMBEDDINGS: Final = Endpoint("/embeddings", _check)

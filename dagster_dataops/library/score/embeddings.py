"""``score.Embedding``: vectors of texts by a model in a folder, without a server."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.loaded_files import LoadedFile
from dagster_dataops.library.option_values import check_choice, needs_extra
from dagster_dataops.library.score.linear import score
from dagster_dataops.operators.options.file_content import FileContent
from dagster_dataops.records import Record

Vectors: TypeAlias = Sequence[Sequence[float]]


class Embedding(score):
    """Write the vector of a text by a model of yours, in this process.

    Reads ``input_key="text"`` and writes ``output_key="embedding"``, a list of numbers, which
    ``sample.Diversity`` and ``llm.SemanticDedup`` read as ``vector_key``. The texts of
    ``_batch_size`` records go to the model at once.

    ``model`` is a function that takes a list of texts and returns as many vectors, or the folder
    of a saved model: of model2vec (``backend="model2vec"``, the default; extra ``model2vec``), or
    of Sentence Transformers (``backend="sentence-transformers"``; extra of that name). Nothing is
    downloaded, so the name of a model is refused. `llm.Embed` asks a server instead.

    Args:
        model: Function from a list of texts to vectors, or the folder of a saved model.
        input_key: Key of the text: a column, or a selector.
        output_key: Column of the vector.
        backend: Reads the folder: ``model2vec`` or ``sentence-transformers``.
    """

    def __init__(
        self,
        model: Callable[[list[str]], Vectors] | Annotated[str | Path, FileContent],
        input_key: str = "text",
        output_key: str = "embedding",
        *,
        backend: str = "model2vec",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._vectors: Callable[[list[str]], Vectors]
        self._vectors = model if callable(model) else LoadedFile(_loaded, str(model), backend)
        self._column, self._written = FieldKey(input_key), output_key

    def forward_batch(self, records: list[Record]) -> list[Any]:
        vectors = self._vectors([self._column.text(record) for record in records])
        if len(vectors) != len(records):
            texts = counted(len(records), "texts")
            msg = f"the model returned {counted(len(vectors), 'vectors')} for {texts}"
            raise ValueError(msg)
        for record, vector in zip(records, vectors, strict=True):
            record[self._written] = list(map(float, vector))
        return list(records)


def _loaded(path: str, backend: str) -> Callable[[list[str]], Vectors]:
    check_choice("backend", backend, _READERS)
    if not Path(path).is_dir():
        msg = f"model {path!r} is no folder; save the model there, as nothing is downloaded"
        raise DefinitionError(msg)
    return _READERS[backend](path)


def _model2vec(path: str) -> Callable[[list[str]], Vectors]:
    with needs_extra("score.Embedding with model2vec", "model2vec"):
        from model2vec import StaticModel
    model: Any = StaticModel.from_pretrained(path)
    return lambda texts: model.encode(texts).tolist()


def _sentence_transformers(path: str) -> Callable[[list[str]], Vectors]:
    extra = "sentence-transformers"
    with needs_extra(f"score.Embedding with {extra}", extra):
        from sentence_transformers import SentenceTransformer
    model: Any = SentenceTransformer(path, local_files_only=True)
    return lambda texts: model.encode(texts, show_progress_bar=False).tolist()


_READERS: Final[dict[str, Callable[[str], Callable[[list[str]], Vectors]]]] = {
    "model2vec": _model2vec,
    "sentence-transformers": _sentence_transformers,
}

"""``pii.Entities``: mask or report names of persons and places, by a spaCy pipeline of the user."""

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.text_spans import replaced
from dagster_dataops.library.analysis.word_splitting import OfThread, read_by_spacy
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.loaded_files import checked_content
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.library.pii.secret_keys import pii
from dagster_dataops.library.text_mapping import TextMapping
from dagster_dataops.operators.options.file_content import FileContent, content_of
from dagster_dataops.records import Record

_LABELS = ("PERSON", "PER", "GPE", "LOC")
_NOT_NEEDED = ("tagger", "morphologizer", "parser", "attribute_ruler", "lemmatizer", "senter")


class Entities(pii):
    """Mask or report named entities, such as persons and places, by a spaCy pipeline of yours.

    Reads ``input_key`` and writes ``output_key``. Nothing is downloaded: ``model`` is the folder of
    a pipeline, or the name of an installed package such as ``en_core_web_sm``. Needs the extra
    ``spacy``. What is found, and how fast, is up to the pipeline. For e-mail addresses and numbers,
    `Replace` is exact.

    Args:
        model: The folder of a pipeline that finds entities, or the name of its package.
        input_key: The key of the text.
        output_key: Where the masked text is written; by default, ``input_key``.
        labels: The kinds of entities, as the pipeline names them; ``None`` for all.
        mode: ``"mask"`` replaces the entities. ``"tag"`` leaves the text and writes the list of
            entities to ``entities_key``: ``text``, ``label``, ``start`` and ``end`` (exclusive, in
            characters) of each, in order. ``"both"`` does both.
        replacement: The text that replaces an entity; ``{label}`` is its kind.
        entities_key: The key of the list of entities.
    """

    def __init__(
        self,
        model: Annotated[str | Path, FileContent],
        input_key: str = "text",
        output_key: str | None = None,
        *,
        labels: Collection[str] | None = _LABELS,
        mode: Literal["mask", "tag", "both"] = "mask",
        replacement: str = "<{label}>",
        entities_key: str = "entities",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._pipeline = OfThread(partial(_loaded, str(model), content_of(model)))
        self._labels = None if labels is None else frozenset(labels)
        self._replacement, self._masks = replacement, mode != "tag"
        self._entities_key = entities_key if mode != "mask" else None
        self._column = FieldKey(input_key)
        if self._entities_key:
            self._column.checked_single("entities_key takes those of one text")
        self._mapping = TextMapping(self._masked, input_key, output_key)

    def forward(self, record: Record) -> Record:
        if self._entities_key:
            entities = self._entities(self._column.text(record))
            record[self._entities_key] = [entity._asdict() for entity in entities]
        return self._mapping(record) if self._masks else record

    def _masked(self, value: str) -> str:
        entities = self._entities(value)
        spans = [(entity.start, entity.end) for entity in entities]
        new = [self._replacement.replace("{label}", entity.label) for entity in entities]
        return replaced(value, spans, new)

    def _entities(self, text: str) -> list["_Entity"]:
        """Return the entities of a text, in order, without overlaps."""
        return [
            _Entity(text[start:end], label, start, end)
            for label, start, end in read_by_spacy(self._pipeline, text, _labelled)
            if self._labels is None or label in self._labels
        ]


class _Entity(NamedTuple):
    text: str
    label: str
    start: int
    end: int


def _labelled(pipeline: Any, piece: str, before: int) -> list[tuple[str, int, int]]:
    return [
        (entity.label_, before + entity.start_char, before + entity.end_char)
        for entity in pipeline(piece).ents
    ]


def _loaded(name: str, digest: str) -> Any:
    """Return the spaCy pipeline in a folder, or in a package of that name."""
    with needs_extra("pii.Entities", "spacy"):
        import spacy
    checked_content(name, digest)
    try:
        pipeline: Any = spacy.load(name)
    except (OSError, ValueError) as error:
        msg = (
            f"model {name!r} is neither the folder of a spaCy pipeline nor an installed package: "
            f"{str(error).splitlines()[0]}"
        )
        raise DefinitionError(msg) from None
    for part in set(pipeline.pipe_names).intersection(_NOT_NEEDED):
        pipeline.disable_pipe(part)
    return pipeline

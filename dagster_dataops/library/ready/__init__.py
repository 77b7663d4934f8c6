"""Ready pipelines: each a function whose options are columns, limits and the model.

>>> from dagster_dataops.library.ready import sft_from_documents

``FORMS`` has all of them by the name that ``dg scaffold defs ... --form`` takes. They are made of
operators of the library alone, so that a ``defs.yaml`` can hold them, too.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from dagster_dataops.library.ready import (
    chats,
    classification,
    code_files,
    image_pairs,
    mathematics,
    preferences,
    qa_retrieval,
    sft_documents,
    translated_segments,
)
from dagster_dataops.library.ready.chats import clean_chats
from dagster_dataops.library.ready.classification import distilled_classifier
from dagster_dataops.library.ready.code_files import code_corpus
from dagster_dataops.library.ready.image_pairs import image_text_pairs
from dagster_dataops.library.ready.mathematics import verified_mathematics
from dagster_dataops.library.ready.preferences import preference_pairs
from dagster_dataops.library.ready.qa_retrieval import qa_for_retrieval
from dagster_dataops.library.ready.sft_documents import sft_from_documents
from dagster_dataops.library.ready.translated_segments import translations
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.records import Record

__all__ = [
    "FORMS",
    "ReadyPipeline",
    "clean_chats",
    "code_corpus",
    "distilled_classifier",
    "image_text_pairs",
    "preference_pairs",
    "qa_for_retrieval",
    "sft_from_documents",
    "translations",
    "verified_mathematics",
]


class ReadyPipeline(NamedTuple):
    """A ready pipeline, and how to try it.

    Attributes:
        build: The function; its first argument is the name of the pipeline.
        records: Records to try it with.
        options: Options of the function that have no default.
    """

    build: Callable[..., Pipeline]
    records: Sequence[Record]
    options: Mapping[str, Any] = MappingProxyType({})


FORMS: Final[Mapping[str, ReadyPipeline]] = {
    "sft": ReadyPipeline(sft_from_documents, sft_documents.EXAMPLE),
    "retrieval": ReadyPipeline(qa_for_retrieval, qa_retrieval.EXAMPLE),
    "preferences": ReadyPipeline(preference_pairs, preferences.EXAMPLE),
    "mathematics": ReadyPipeline(verified_mathematics, mathematics.EXAMPLE),
    "chats": ReadyPipeline(clean_chats, chats.EXAMPLE),
    "classifier": ReadyPipeline(distilled_classifier, classification.EXAMPLE),
    "code": ReadyPipeline(code_corpus, code_files.EXAMPLE),
    "translations": ReadyPipeline(translations, translated_segments.EXAMPLE, {"to": "German"}),
    "image_text": ReadyPipeline(image_text_pairs, image_pairs.EXAMPLE),
}
"""The ready pipelines by name."""

"""Functions that identify the language of a text, by the name of their library.

Each loads its model once in a process.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.option_values import needs_extra

Identifier: TypeAlias = Callable[[str], tuple[str | None, float]]

_LABEL: Final = "__label__"  # before the languages of a fastText model


def identifier(backend: str, model_path: str | None = None) -> Identifier:
    """Return the function from a text to its language (ISO 639-1) and score (0 to 1).

    Args:
        backend: ``py3langid``, ``lingua`` or ``fasttext``.
        model_path: The model of fastText.

    Raises:
        DefinitionError: ``model_path`` does not fit the backend.
        MissingExtraError: The library is not installed.
    """
    if (backend == "fasttext") != (model_path is not None):
        msg = "backend='fasttext' needs model_path, the file of a model, and the others have none"
        raise DefinitionError(msg)
    if model_path is not None:
        _fasttext_model(model_path)
        return partial(_by_fasttext, model_path)
    load, identify = _WITH_MODEL[backend]
    load()
    return identify


@cache
def _langid() -> Any:
    with needs_extra("language with backend='py3langid'", "language"):
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _by_langid(text: str) -> tuple[str | None, float]:
    found: tuple[str, float] = _langid().classify(text)
    return found


@cache
def _lingua() -> Any:
    with needs_extra("language with backend='lingua'", "lingua"):
        from lingua import LanguageDetectorBuilder
    return LanguageDetectorBuilder.from_all_languages().build()


def _by_lingua(text: str) -> tuple[str | None, float]:
    readable = text.encode("utf-8", "replace").decode()  # it is written in Rust: no surrogates
    best = _lingua().compute_language_confidence_values(readable)[0]
    if not best.value:  # no letters
        return None, 0.0
    return best.language.iso_code_639_1.name.lower(), best.value


@cache
def _fasttext_model(path: str) -> Any:
    with needs_extra("language with backend='fasttext'", "fasttext"):
        import fasttext
    return fasttext.load_model(path)


def _by_fasttext(path: str, text: str) -> tuple[str | None, float]:
    line = text.encode("utf-8", "replace").decode().replace("\n", " ")
    labels, scores = _fasttext_model(path).predict(line)
    if not labels:
        return None, 0.0
    return labels[0].removeprefix(_LABEL), min(float(scores[0]), 1.0)


_WITH_MODEL: Final[dict[str, tuple[Callable[[], Any], Identifier]]] = {
    "py3langid": (_langid, _by_langid),
    "lingua": (_lingua, _by_lingua),
}

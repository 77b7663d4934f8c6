"""Operators of group ``language`` that identify languages."""

from collections.abc import Callable, Collection
from functools import cache, partial
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from dagster_dataops.data import data_register
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.unicode_normalization import without_long_runs
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.filter_outcome import FilterOutcome
from dagster_dataops.library.loaded_files import LoadedFile
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.operators.options.file_content import FileContent
from dagster_dataops.operators.options.ranges import AtLeastZeroFloat, PositiveInt
from dagster_dataops.records import Record

language: Any = data_register.new_group("language")

Backend: TypeAlias = Literal["py3langid", "lingua", "fasttext"]

Identifier: TypeAlias = Callable[[str], tuple[str | None, float]]

# Languages under the code of several (ISO 639-3, macrolanguages).
_MEMBERS: Final = {
    "no": ("nb", "nn"),
    "zh": (
        "cjy",
        "cmn",
        "cpx",
        "czh",
        "czo",
        "gan",
        "hak",
        "hsn",
        "lzh",
        "mnp",
        "nan",
        "wuu",
        "yue",
    ),
}
_LEAST_SCORES: Final = {"py3langid": 0.3, "lingua": 0.65, "fasttext": 0.65}
_LABEL: Final = "__label__"  # before the languages of a fastText model


class Identify(language):
    """Identify the language of a text.

    Reads ``input_key``, and writes the language (ISO 639-1, or 639-3 for languages without such a
    code) to ``language_key`` and a score from 0 to 1 to ``language_score_key``. A blank text has
    the language ``None`` and the score 0. Needs the extra ``language``, or that of the backend.

    Args:
        input_key: The key of the text.
        backend: ``"py3langid"``: 97 languages and more, its model is 4.5 MB. ``"lingua"``: 75
            languages, better on short texts, slower, 98 MB; extra ``lingua``. ``"fasttext"``: a
            model file of your own, such as lid.176, which datatrove and Data-Juicer use.
        max_chars: The text is read up to the last word that ends there; ``None`` reads all of it.
        model_path: The model of fastText.
        language_key: The key of the language.
        language_score_key: The key of the score.
    """

    renamed_options: ClassVar = {"lang_key": "language_key", "score_key": "language_score_key"}

    def __init__(
        self,
        input_key: str = "text",
        *,
        backend: Backend = "py3langid",
        max_chars: PositiveInt | None = 2000,
        model_path: Annotated[str, FileContent] | None = None,
        language_key: str = "lang",
        language_score_key: str = "lang_score",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._identify, self._max_chars = identifier(backend, model_path), max_chars
        self._column, self._lang_key, self._score_key = (
            FieldKey(input_key),
            language_key,
            language_score_key,
        )

    def forward(self, record: Record) -> Record:
        identified = _identified(self._identify, self._column.text(record), self._max_chars)
        record[self._lang_key], record[self._score_key] = identified
        return record


class Filter(language):
    """Keep records whose text is in one of ``languages`` with a score that is high enough.

    Reads ``input_key``. Reasons to drop a record, in this order: ``empty`` for a blank text,
    ``language``, ``language_score``. Signals: ``lang`` and ``lang_score``, as `language.Identify`
    finds them. Needs the extra ``language``, or that of the backend. As ``LanguageFilter`` of
    datatrove, whose score must be greater than ``min_language_score``.

    Args:
        languages: ISO 639-1 codes; an empty list for all. ``zh`` and ``no`` are those of several
            languages: they count as well, such as ``wuu`` and ``yue``, or ``nb`` and ``nn``.
        input_key: The key of the text.
        min_language_score: The smallest score to keep; ``None`` for 0.3 with py3langid, whose
            scores are low for short texts, and for 0.65, the limit of datatrove, with the others.
        backend: As in `language.Identify`.
        max_chars: As in `language.Identify`.
        model_path: As in `language.Identify`.
        label_only: As ``mode="tag"``.
        mode: ``"drop"``, ``"tag"`` to write the signals and the reason instead, or ``"both"`` to
            drop and to write the signals into the kept records.
        stats_key: The key of the signals.
        reason_key: The key of the reason.
    """

    renamed_options: ClassVar = {"min_score": "min_language_score"}

    def __init__(
        self,
        languages: str | Collection[str],
        input_key: str = "text",
        *,
        min_language_score: AtLeastZeroFloat | None = None,
        backend: Backend = "py3langid",
        max_chars: PositiveInt | None = 2000,
        model_path: Annotated[str, FileContent] | None = None,
        label_only: bool = False,
        mode: Literal["drop", "tag", "both"] = "drop",
        stats_key: str = "stats",
        reason_key: str = "drop_reason",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._languages = wanted_languages(languages)
        self._min_score = least_score(backend) if min_language_score is None else min_language_score
        self._max_chars = max_chars
        self._identify, self._column = identifier(backend, model_path), FieldKey(input_key)
        self._outcome = FilterOutcome("tag" if label_only else mode, stats_key, reason_key)

    def forward(self, record: Record) -> Any:
        text = self._column.text(record)
        lang, score = _identified(self._identify, text, self._max_chars)
        signals = {"lang": lang, "lang_score": score}
        return self._outcome.of(record, self._reason(text, lang, score), signals)

    def _reason(self, text: str, lang: str | None, score: float) -> str | None:
        if not text or text.isspace():
            return "empty"
        if self._languages and lang not in self._languages:
            return "language"
        return None if score >= self._min_score else "language_score"


def _identified(identify: Identifier, text: str, max_chars: int | None) -> tuple[str | None, float]:
    if max_chars is not None and len(text) > max_chars:
        text = "".join(text[: max_chars + 1].rsplit(None, 1)[:1])[:max_chars]
    if not text or text.isspace():
        return None, 0.0
    return identify(without_long_runs(text))


def wanted_languages(languages: str | Collection[str]) -> frozenset[str]:
    """Return codes of languages, with those under the codes of several."""
    names = [languages] if isinstance(languages, str) else list(languages)
    return frozenset(names).union(*(_MEMBERS.get(name, ()) for name in names))


def least_score(backend: Backend) -> float:
    """Return the score from which a language is usually taken for certain."""
    return _LEAST_SCORES[backend]


def identifier(backend: str, model_path: str | None = None) -> Identifier:
    """Return the function from a text to its language (ISO 639-1) and score (0 to 1).

    The backend is ``py3langid``, ``lingua`` or ``fasttext``, which needs the path of a model.
    """
    if (backend == "fasttext") != (model_path is not None):
        msg = "backend='fasttext' needs model_path, the file of a model, and the others have none"
        raise DefinitionError(msg)
    if model_path is not None:
        return partial(_by_fasttext, LoadedFile(_fasttext_model, model_path))
    load, identify = _WITH_MODEL[backend]
    load()
    return identify


@cache
def _langid() -> Any:
    with needs_extra("language with backend='py3langid'", "language"):
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _by_langid(text: str) -> tuple[str | None, float]:
    identified: tuple[str, float] = _langid().classify(text)
    return identified


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


def _fasttext_model(path: str) -> Any:
    with needs_extra("language with backend='fasttext'", "fasttext"):
        import fasttext
    return fasttext.load_model(path)


def _by_fasttext(model: LoadedFile, text: str) -> tuple[str | None, float]:
    line = text.encode("utf-8", "replace").decode().replace("\n", " ")
    labels, scores = model.value.predict(line)
    if not labels:
        return None, 0.0
    return labels[0].removeprefix(_LABEL), min(float(scores[0]), 1.0)


_WITH_MODEL: Final[dict[str, tuple[Callable[[], Any], Identifier]]] = {
    "py3langid": (_langid, _by_langid),
    "lingua": (_lingua, _by_lingua),
}

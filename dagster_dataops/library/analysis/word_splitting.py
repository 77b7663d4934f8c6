"""Functions that split a text into words, by name."""

import re
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

from typing_extensions import override

from dagster_dataops.errors import DefinitionError, MissingExtraError

Splitter: TypeAlias = Callable[[str], list[str]]

# Kana and Chinese characters are written without spaces; each counts as a word.
_SINGLE: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_SINGLE}]|[^\W{_SINGLE}]+")
# spaCy takes time that grows with the square of such a run.
_LONG_RUN: Final = re.compile(r"[^\w\s]{500}|(?:['’]\w{0,2}){200}|\S{5000}")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SMALLEST_LIMIT: Final = 1_000_000  # of characters, spaCy's default


def words_function(words: str | Splitter, language: str = "en") -> Splitter:
    """Return the function that splits a text into words.

    Args:
        words: ``whitespace`` for runs without white space; ``regex`` for runs of letters, digits
            and underscores, each Chinese character and kana alone; ``spacy`` for the tokens of
            spaCy's blank pipeline without white space; ``jieba`` (Chinese); ``mecab`` (Japanese);
            or a function from a text to a list of words.
        language: ISO 639-1 code, for ``spacy``.

    Returns:
        The same object for the same arguments, so that operators can share its results.

    Raises:
        DefinitionError: ``words`` is none of these, or spaCy does not know the language.
        MissingExtraError: The package is not installed.
    """
    if callable(words):
        return words
    if words == "whitespace":
        return str.split
    if words == "regex":
        return _regex_words
    if words in _SEGMENTERS:
        return _segmenter(words)
    if words == "spacy":
        return spacy_pipeline(language).words
    msg = (
        f"words={words!r} is unknown; use whitespace, regex, spacy, jieba, mecab or a function "
        "from a text to a list of words"
    )
    raise DefinitionError(msg)


def _regex_words(text: str) -> list[str]:
    return _WORD.findall(text)


class SpacyPipeline:
    """spaCy's blank pipeline of a language with its sentence splitter; one for each thread.

    Lone surrogates count as U+FFFD. Runs of more than 500 punctuation characters, of 200 ``'s`` or
    of 5,000 characters without a space are cut, because spaCy needs time that grows with their
    square. Pickled as its language.

    Args:
        language: ISO 639-1 code.

    Raises:
        DefinitionError: spaCy does not know the language.
        MissingExtraError: spaCy is not installed.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._of_thread = threading.local()
        self._pipeline()

    def words(self, text: str) -> list[str]:
        """Return the tokens of a text, stripped, without empty ones."""
        found = []
        for piece in pieces_for_spacy(text):
            pipeline = self._pipeline(len(piece))
            with pipeline.memory_zone():
                found += [token.text.strip() for token in pipeline.make_doc(piece)]
        return [word for word in found if word]

    def sentences(self, text: str) -> list[str]:
        """Return the sentences of a text, stripped, without empty ones."""
        found = []
        for piece in pieces_for_spacy(text):
            pipeline = self._pipeline(len(piece))
            with pipeline.memory_zone():
                found += [sentence.text.strip() for sentence in pipeline(piece).sents]
        return [sentence for sentence in found if sentence]

    def _pipeline(self, length: int = 0) -> Any:
        pipeline = getattr(self._of_thread, "pipeline", None)
        if pipeline is None:
            pipeline = self._of_thread.pipeline = _new_pipeline(self._language)
        pipeline.max_length = max(_SMALLEST_LIMIT, length + 1)
        return pipeline

    @override
    def __reduce__(self) -> Any:
        return spacy_pipeline, (self._language,)


@cache
def spacy_pipeline(language: str) -> SpacyPipeline:
    """Return the pipeline of a language; see `SpacyPipeline` for errors."""
    return SpacyPipeline(language)


def _new_pipeline(language: str) -> Any:
    try:
        import spacy
    except ImportError:
        feature = "'spacy', as words or sentences,"
        raise MissingExtraError(feature, "spacy") from None
    try:
        pipeline: Any = spacy.blank(language)
    except ImportError as error:
        msg = f"spaCy has no pipeline for language {language!r}: {error}"
        raise DefinitionError(msg) from None
    pipeline.add_pipe("sentencizer")
    return pipeline


def pieces_for_spacy(text: str) -> list[str]:
    """Return the text in pieces that spaCy takes in linear time, with U+FFFD for surrogates."""
    text = _SURROGATE.sub("\ufffd", text)
    ends = [match.end() for match in _LONG_RUN.finditer(text)]
    if not ends:
        return [text] if text else []
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def _jieba() -> Splitter:
    import jieba

    jieba.setLogLevel("WARNING")
    return lambda text: [word for word in jieba.lcut(text) if not word.isspace()]


def _mecab() -> Splitter:
    import MeCab

    tagger = MeCab.Tagger("-Owakati")
    return lambda text: tagger.parse(_SURROGATE.sub("\ufffd", text)).split()


_SEGMENTERS: Final[dict[str, Callable[[], Splitter]]] = {"jieba": _jieba, "mecab": _mecab}


class _Segmenter:
    """A splitter whose data are loaded when it is made, once for each thread; pickled by name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._of_thread = threading.local()
        try:
            self("")
        except ImportError:
            raise MissingExtraError(f"words={name!r}", name) from None

    def __call__(self, text: str) -> list[str]:
        split = getattr(self._of_thread, "split", None)
        if split is None:
            split = self._of_thread.split = _SEGMENTERS[self._name]()
        words: list[str] = split(text)
        return words

    @override
    def __reduce__(self) -> Any:
        return _segmenter, (self._name,)


@cache
def _segmenter(name: str) -> Splitter:
    return _Segmenter(name)

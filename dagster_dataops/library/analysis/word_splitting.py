"""Functions that split a text into words, by name, and n-grams of words."""

import re
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any, Final, TypeAlias, TypeVar

from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.unicode_normalization import valid_text
from dagster_dataops.library.option_values import needs_extra

Splitter: TypeAlias = Callable[[str], list[str]]

_Part = TypeVar("_Part")

# Kana and Chinese characters are written without spaces; each counts as a word.
_SINGLE: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_SINGLE}]|[^\W{_SINGLE}]+")
# spaCy takes time that grows with the square of such a run.
_LONG_RUN: Final = re.compile(r"[^\w\s]{500}|(?:['’]\w{0,2}){200}|\S{5000}")


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


class OfThread(threading.local):
    """A value for each thread, made when the thread uses it first; the thread of the call at once.

    The function ``make`` returns a value, and is pickled in place of the values.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self.value = make, make()

    @override
    def __reduce__(self) -> Any:
        return OfThread, (self._make,)


class SpacyPipeline:
    """spaCy's blank pipeline of a language with its sentence splitter; one for each thread.

    Lone surrogates count as U+FFFD. Runs of more than 500 punctuation characters, of 200 ``'s`` or
    of 5,000 characters without a space are cut, because spaCy needs time that grows with their
    square. Pickled as its language.
    """

    def __init__(self, language: str) -> None:
        self._language, self._of_thread = language, OfThread(partial(_new_pipeline, language))

    def words(self, text: str) -> list[str]:
        """Return the tokens of a text, stripped, without empty ones."""
        return read_by_spacy(self._of_thread, text, _words)

    def sentences(self, text: str) -> list[str]:
        """Return the sentences of a text, stripped, without empty ones."""
        return read_by_spacy(self._of_thread, text, _sentences)

    @override
    def __reduce__(self) -> Any:
        return spacy_pipeline, (self._language,)


@cache
def spacy_pipeline(language: str) -> SpacyPipeline:
    """Return the pipeline of a language; see `SpacyPipeline` for errors."""
    return SpacyPipeline(language)


def _new_pipeline(language: str) -> Any:
    with needs_extra("'spacy', as words or sentences,", "spacy"):
        import spacy
    try:
        pipeline: Any = spacy.blank(language)
    except ImportError as error:
        msg = f"spaCy has no pipeline for language {language!r}: {error}"
        raise DefinitionError(msg) from None
    pipeline.add_pipe("sentencizer")
    return pipeline


def read_by_spacy(
    of_thread: OfThread, text: str, read: Callable[[Any, str, int], list[_Part]]
) -> list[_Part]:
    """Return the parts of a text, which is given to spaCy in pieces that take linear time.

    Args:
        of_thread: The pipeline.
        text: The text; lone surrogates count as U+FFFD.
        read: Returns the parts of a piece, for the pipeline, the piece and its start in the text.
    """
    text = valid_text(text)
    ends = [0, *(match.end() for match in _LONG_RUN.finditer(text)), len(text)]
    pipeline = of_thread.value
    parts: list[_Part] = []
    for start, end in pairwise(ends):
        if start < end:
            pipeline.max_length = max(pipeline.max_length, end - start + 1)
            with pipeline.memory_zone():
                parts += read(pipeline, text[start:end], start)
    return parts


def _words(pipeline: Any, piece: str, _: int) -> list[str]:
    return [word for token in pipeline.make_doc(piece) if (word := token.text.strip())]


def _sentences(pipeline: Any, piece: str, _: int) -> list[str]:
    return [sentence for sent in pipeline(piece).sents if (sentence := sent.text.strip())]


def _jieba() -> Splitter:
    import jieba

    jieba.setLogLevel("WARNING")
    return lambda text: [word for word in jieba.lcut(text) if not word.isspace()]


def _mecab() -> Splitter:
    import MeCab

    tagger = MeCab.Tagger("-Owakati")
    return lambda text: tagger.parse(valid_text(text)).split()


_SEGMENTERS: Final[dict[str, Callable[[], Splitter]]] = {"jieba": _jieba, "mecab": _mecab}


class _Segmenter:
    """A splitter whose data are loaded when it is made, once for each thread; pickled by name."""

    def __init__(self, name: str) -> None:
        self._name = name
        with needs_extra(f"words={name!r}", name):
            self._of_thread = OfThread(_SEGMENTERS[name])
        self("")  # loads the data

    def __call__(self, text: str) -> list[str]:
        words: list[str] = self._of_thread.value(text)
        return words

    @override
    def __reduce__(self) -> Any:
        return _segmenter, (self._name,)


@cache
def _segmenter(name: str) -> Splitter:
    return _Segmenter(name)


def ngrams(words: Sequence[str], size: int) -> list[str]:
    """Return each run of ``size`` consecutive words, joined; none if there are fewer words."""
    shifted = (words[start:] for start in range(size))
    return list(map(" ".join, zip(*shifted, strict=False)))

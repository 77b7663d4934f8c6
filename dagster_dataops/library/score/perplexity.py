"""``score.Perplexity``: keep texts that a KenLM model finds likely."""

import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.analyzed_text import AnalyzedText
from dagster_dataops.library.analysis.unicode_normalization import normalized
from dagster_dataops.library.filters.rules import TextFilter, bounds
from dagster_dataops.library.loaded_files import LoadedFile
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.library.score.linear import score
from dagster_dataops.library.text.character_replacement import ASCII_OF_MARKS
from dagster_dataops.operators.options.file_content import FileContent
from dagster_dataops.operators.options.ranges import AtLeastZeroFloat

_REMOVED: Final = {"Mn", "Cc"}  # accents and control characters


class Perplexity(TextFilter, score):
    """Drop texts that a KenLM model finds unlikely: their perplexity is above ``max_perplexity``.

    Reads ``input_key``. ``model`` is a file of yours, ``.arpa`` or binary, and ``sentencepiece``
    the file of the vocabulary that it was trained with; without it, words between white space
    count. With ``normalize``, a text is changed as CCNet does before it is scored: lower case, no
    accents, 0 for each digit, ASCII punctuation, no control characters. The record keeps its text.

    Each line is a sentence for the model, with a mark at its end that counts as a word; blank lines
    do not count. The perplexity is 10 to the power of the negative mean of the logarithms. Prose
    that resembles the texts of the model has some hundreds. Signal ``perplexity``, which is not
    rounded; reasons ``empty``, ``low_perplexity``, ``high_perplexity``.

    Without a model, `score.CharNGram` can be trained. Needs the extra ``kenlm``.

    Source: Wenzek et al. 2020, arXiv:1911.00359; ``perplexity_filter`` of Data-Juicer, which
    downloads its models. Both see a text as one line.

    Args:
        model: Path of a KenLM model.
        sentencepiece: Path of a SentencePiece model; ``None`` takes words between white space.
        min_perplexity: Smallest perplexity to keep; ``None`` for no limit.
        max_perplexity: Largest perplexity to keep; ``None`` for no limit.
        normalize: Whether texts are normalized as in CCNet.
    """

    renamed_options: ClassVar = {"max_ppl": "max_perplexity", "min_ppl": "min_perplexity"}

    def __init__(
        self,
        model: Annotated[str | Path, FileContent],
        *,
        sentencepiece: Annotated[str | Path, FileContent] | None = None,
        min_perplexity: AtLeastZeroFloat | None = None,
        max_perplexity: AtLeastZeroFloat | None = 1500,
        normalize: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        loaded = LoadedFile(_kenlm, str(model))
        pieces = None if sentencepiece is None else LoadedFile(_sentencepiece, str(sentencepiece))
        self._score, self._normalize = partial(_score, loaded, pieces), normalize
        self.nothing = self._has_no_lines
        self.rules = bounds("perplexity", self._perplexity, min_perplexity, max_perplexity)

    def _has_no_lines(self, text: AnalyzedText) -> bool:
        return not text.split(self._lines)

    def _perplexity(self, text: AnalyzedText) -> float:
        logarithm = 0.0
        words = 0
        for line in text.split(self._lines):
            line_logarithm, line_words = self._score(line)
            logarithm += line_logarithm
            words += line_words
        return float(10.0 ** (-logarithm / words)) if words else 0.0

    def _lines(self, text: str) -> list[str]:
        """Return the lines to score, which are not blank."""
        lines = text.encode("utf-8", "replace").decode().splitlines()
        changed = map(_as_in_ccnet, lines) if self._normalize else lines
        return [line for line in changed if line and not line.isspace()]


def _as_in_ccnet(line: str) -> str:
    letters = normalized("NFD", line.strip().lower())
    kept = (_changed(character) for character in letters) if _is_special(letters) else letters
    return "".join(kept).translate(ASCII_OF_MARKS)


def _is_special(line: str) -> bool:
    return not (line.isascii() and line.isprintable()) or any(map(str.isdigit, line))


def _changed(character: str) -> str:
    category = unicodedata.category(character)
    if category in _REMOVED:
        return ""
    return "0" if category == "Nd" else character


def _score(model: LoadedFile, sentencepiece: LoadedFile | None, line: str) -> tuple[float, int]:
    """Return the decimal logarithm of the probability of a line, and its number of words."""
    if sentencepiece is not None:
        line = " ".join(sentencepiece.value.EncodeAsPieces(line))
    return model.value.score(line), len(line.split()) + 1


def _kenlm(path: str) -> Any:
    with needs_extra("score.Perplexity", "kenlm"):
        import kenlm
    config = kenlm.Config()
    config.arpa_complain, config.show_progress = kenlm.ARPALoadComplain.NONE, False
    return _read("model", path, partial(kenlm.Model, path, config))


def _sentencepiece(path: str) -> Any:
    with needs_extra("score.Perplexity with sentencepiece", "kenlm"):
        from sentencepiece import SentencePieceProcessor
    return _read("sentencepiece", path, lambda: SentencePieceProcessor(model_file=path))


def _read(option: str, path: str, read: Callable[[], Any]) -> Any:
    if not Path(path).is_file():
        msg = f"{option} is {path!r}, which is no file; give the path of a model that you have"
        raise DefinitionError(msg)
    try:
        return read()
    except (OSError, RuntimeError) as error:
        msg = f"{option} is {path!r}, which cannot be read: {error}"
        raise DefinitionError(msg) from None

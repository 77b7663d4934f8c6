"""`WordSearch`: find many words in a text at once."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.option_values import needs_extra


class WordSearch:
    """Finds the occurrences of words or phrases in a text, in one pass.

    With ``whole_words``, a letter, digit or underscore before or after excludes an occurrence.
    Errors name the operator ``feature`` and its extra.
    """

    def __init__(
        self,
        feature: str,
        words: Iterable[str],
        *,
        whole_words: bool,
        ignore_case: bool,
        extra: str = "word-lists",
    ) -> None:
        self._whole, self._lower, self._needs = whole_words, ignore_case, (feature, extra)
        self._words = sorted({word.lower() if ignore_case else word for word in words})
        if not all(self._words):
            msg = "the words include the empty text; leave it out"
            raise DefinitionError(msg)
        self._automaton = _automaton(self._needs, self._words)

    def words_in(self, text: str) -> Iterator[str]:
        """Yield the word of each occurrence; occurrences may overlap."""
        if not self._words:
            return
        if self._lower:
            text = text.lower()
        for last, word in self._automaton.iter(text):
            if not self._whole or _is_whole(text, last - len(word) + 1, last + 1):
                yield word

    def first(self, text: str) -> str | None:
        """Return the word of the first occurrence; ``None`` if there is none."""
        return next(self.words_in(text), None)

    def count(self, text: str) -> int:
        """Return the number of occurrences."""
        return sum(1 for _ in self.words_in(text))

    @override
    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_automaton"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._automaton = _automaton(self._needs, self._words)


def words_from(option: str, words: "Iterable[str] | str | Path") -> list[str]:
    """Return a list of words; of a file, its lines without blank ones and comments (``#``)."""
    if not isinstance(words, (str, Path)):
        return list(words)
    try:
        lines = Path(words).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        msg = (
            f"{option} is {str(words)!r}, which cannot be read: {error}; give a list of words, or "
            "the path of a file in UTF-8"
        )
        raise DefinitionError(msg) from None
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _automaton(needs: tuple[str, str], words: list[str]) -> Any:
    with needs_extra(*needs):
        from ahocorasick import Automaton
    automaton: Any = Automaton()
    for word in words:
        automaton.add_word(word, word)
    automaton.make_automaton()
    return automaton


def _is_whole(text: str, start: int, end: int) -> bool:
    return not (start and _in_word(text[start - 1])) and not (
        end < len(text) and _in_word(text[end])
    )


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"

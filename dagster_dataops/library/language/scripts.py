"""``language.Script``: the scripts of a text."""

import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Any, Final

from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.language.identification import language
from dagster_dataops.records import Record

# First words of the names of scripts that have two words.
_OF_TWO_WORDS: Final = frozenset(
    """
    BASSA CAUCASIAN DIVES GUNJALA HANIFI IMPERIAL INSCRIPTIONAL KAYAH KHITAN LINEAR MASARAM MEETEI
    MENDE MEROITIC NEW NYIAKENG OL OLD PAHAWH PAU PSALTER SORA SYLOTI TAI WARANG ZANABAZAR
    """.split()  # noqa: SIM905 - a list of words is easier to read
)
_WIDTHS: Final = frozenset({"FULLWIDTH", "HALFWIDTH"})
_OTHER_NAMES: Final = {
    "Cjk": "Han",
    "Ideographic": "Han",
    "Katakana-Hiragana": "Katakana",
    "Feminine": "Latin",
    "Masculine": "Latin",
    "Kelvin": "Latin",
    "Angstrom": "Latin",
    "Micro": "Greek",
    "Ohm": "Greek",
    **dict.fromkeys(("Mathematical", "Modifier", "Double-Struck", "Script"), "Common"),
    **dict.fromkeys(("Black-Letter", "Superscript", "Turned", "Vertical"), "Common"),
}


class Script(language):
    """Write the script of most letters of a text, and the share of each script.

    Reads ``input_key``. Writes the script, such as ``"Latin"``, ``"Han"`` or ``"Cyrillic"``, to
    ``script_key``, and a dict from scripts to shares of the letters, the largest first, to
    ``shares_key``. A text without letters has the script ``None`` and no shares. A script is the
    beginning of the Unicode name of a letter; letters of no script are ``"Common"``.

    Args:
        input_key: The key of the text.
        script_key: The key of the script.
        shares_key: The key of the shares.
    """

    def __init__(
        self,
        input_key: str = "text",
        *,
        script_key: str = "script",
        shares_key: str = "script_shares",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column = FieldKey(input_key)
        self._script_key, self._shares_key = script_key, shares_key

    def forward(self, record: Record) -> Record:
        shares: dict[str, Any] = {**script_shares(self._column.text(record))}
        record[self._script_key] = next(iter(shares), None)
        record[self._shares_key] = shares
        return record


def script_shares(text: str) -> dict[str, float]:
    """Return the share of letters in each script; the largest first, then by name."""
    counts: Counter[str] = Counter()
    for character, count in Counter(text).items():
        if character.isalpha():
            counts[_script(character)] += count
    letters = counts.total()
    return {
        script: count / letters
        for script, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    }


@lru_cache(maxsize=1 << 16)
def _script(letter: str) -> str:
    words = unicodedata.name(letter, "COMMON").split()
    if words[0] in _WIDTHS:
        words = words[1:]
    script = " ".join(words[: 1 + (words[0] in _OF_TWO_WORDS)]).title()
    return _OTHER_NAMES.get(script, script)

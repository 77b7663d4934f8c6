"""What the filters take for a language: stop words, how words are split, and other limits."""

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from dagster_dataops.library.analysis.signals.word_signals import STOP_WORDS
from dagster_dataops.library.analysis.stop_words import languages_with_stop_words, stop_words_of
from dagster_dataops.library.analysis.word_splitting import Splitter

_WITHOUT_SPACES: Final = frozenset({"ja", "km", "lo", "my", "th", "wuu", "yue", "zh"})

# Single characters in Chinese and Japanese, because each counts as a word there.
_MORE_STOP_WORDS: Final = MappingProxyType(
    {
        "ca": "a al als amb aquest aquesta com de del dels el els en es està i la les més no o per "
        "però que què s són un una",
        "ja": "の に は を た が で て と し れ さ あ い も な す る か ら こ ま",
        "ko": "그 등 및 또는 이 수 것 더 각 때 경우 대한 위해 위한 있는 있다 있습니다 합니다 하는 "
        "할 한 않는 없는 같은 다음 모든 통해 다른 그리고 하지만",
        "ro": "a al ale am ar care ca că ce cu de din dar este în la mai nu o pe pentru poate prin "
        "sau se și sunt un unei unui va",
        "uk": "а або але в від вона він вони для до є за з і із його й її на не ні про та так "
        "також те то у це цей що щоб як який якщо",
        "vi": "bạn các cho có của để đã được hoặc khi không là một này như những trong và về với",
        "wuu": "的 了 是 在 不 有 个 和 我 这 人",
        "yue": "的 係 喺 嘅 唔 有 個 同 我 呢 咗",
        "zh": "的 了 是 在 和 不 有 我 这 个 中 为 以 到 会 可 要 用 這 個 為 會",
    }
)

# Of Penedo et al. 2025, arXiv:2506.20920 (FineWeb2): no rule about short lines, 0.1 of characters
# in repeated lines, no curly bracket. The others were measured on handbooks.
_OTHER: Final[Mapping[str, Any]] = {
    "max_duplicate_line_ratio": 0.4,
    "max_duplicate_line_char_ratio": 0.25,
    "max_mean_word_length": 12,
    "max_non_alpha_words_ratio": 0.7,
    "min_line_punct_ratio": 0.05,
    "max_short_line_ratio": None,
    "max_duplicate_char_ratio": 0.1,
    "filter_curly_bracket": False,
    "min_sentences": 3,
}
_UNSPACED: Final[Mapping[str, Any]] = {
    **_OTHER,
    "min_mean_word_length": 1,
    "max_new_line_ratio": 0.12,
    "duplicate_ngrams": ((10, 0.20), (12, 0.18), (14, 0.16), (16, 0.14)),
}
_SYLLABLES: Final[Mapping[str, Any]] = {
    **_OTHER,
    "min_mean_word_length": 2,
    "max_new_line_ratio": 0.45,
}
_LIMITS: Final = MappingProxyType(
    {
        "en": {},
        "ko": _SYLLABLES,
        "vi": _SYLLABLES,
        **dict.fromkeys(_WITHOUT_SPACES, _UNSPACED),
    }
)


def base_language(language: str) -> str:
    """Return the code of a language without its region, in lower case: ``pt`` for ``pt-BR``."""
    return language.replace("_", "-").partition("-")[0].lower()


def has_spaces(language: str) -> bool:
    """Return whether a language is written with spaces between words."""
    return base_language(language) not in _WITHOUT_SPACES


def words_of(words: str | Splitter, language: str) -> str | Splitter:
    """Return how words are split: ``regex`` for ``whitespace`` in a language without spaces."""
    return "regex" if words == "whitespace" and not has_spaces(language) else words


def usual_stop_words(language: str) -> frozenset[str] | None:
    """Return stop words of a language, those of Gopher for English; ``None`` without a list."""
    code = base_language(language)
    if code == "en":
        return STOP_WORDS
    if code in _MORE_STOP_WORDS:
        return frozenset(_MORE_STOP_WORDS[code].split())
    return stop_words_of(code) if code in languages_with_stop_words() else None


def by_language(
    constructor: Callable[..., Any], language: str, values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return options, with the values of a language for those that have their defaults.

    The signature of ``constructor`` has the defaults, which are for English.
    """
    limits = _LIMITS.get(base_language(language), _OTHER)
    defaults = inspect.signature(constructor).parameters
    return {
        name: limits.get(name, value) if value == defaults[name].default else value
        for name, value in values.items()
    }

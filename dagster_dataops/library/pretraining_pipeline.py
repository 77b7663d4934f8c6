"""A ready pipeline that makes a pretraining corpus of raw texts, as nodes or as chains.

>>> from dagster_dataops.library.pretraining_pipeline import pretraining_pipeline
"""

from collections.abc import Collection
from typing import Any, Final

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.stop_words import languages_with_stop_words
from dagster_dataops.library.filters.language_limits import (
    base_language,
    has_spaces,
    usual_stop_words,
)
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.pipelines.pipeline import Pipeline

Steps = dict[str, Operator]
Key = dict[str, str]  # the option `input_key` of all operators

# Characters that show nothing, controls, and what stands for unreadable characters. The joiners of
# emoji and of Indian and Persian scripts are not among them.
_INVISIBLE: Final = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u2060-\u2063\ufeff\ufffd]"
_RIGHTS: Final = r"\b(?:copyright|all rights reserved|watermark)\b|版权所有|保留所有权利"
_CONFIDENTIAL: Final = (
    r"\b(?:confidential|proprietary information|trade secret|internal use only|"
    r"do not (?:copy|distribute))\b|机密文件|内部资料|严禁转载|禁止复制|仅供内部使用|未经授权"
)
# With a language, a long text may name its owner, as manuals do.
_NOTICES: Final = {
    True: f"(?i){_RIGHTS}|{_CONFIDENTIAL}",
    False: rf"(?is)\A(?=.{{0,400}}\Z).*?(?:{_RIGHTS})|{_CONFIDENTIAL}",
}
_FILLER: Final = (
    r"(?i)lorem\s+ipsum|dolor\s+sit\s+amet|consectetur\s+adipis|占位符|示例文本|"
    r"placeholder\s+text|dummy\s+text"
)
_IDENTITY_TERMS: Final = {
    "en": [
        "id number",
        "id card",
        "identity card",
        "identification number",
        "national id",
        "passport number",
        "social security number",
        "driver's license number",
        "tax id",
    ],
    "de": ["personalausweis", "ausweisnummer", "reisepassnummer", "sozialversicherungsnummer"],
    "es": ["documento nacional de identidad", "número de identidad", "número de pasaporte"],
    "fr": ["carte d'identité", "numéro de passeport", "numéro de sécurité sociale"],
    "it": ["carta d'identità", "numero di passaporto", "codice fiscale"],
    "ja": ["身分証明書", "旅券番号", "運転免許証", "マイナンバー"],
    "pt": ["bilhete de identidade", "cartão de cidadão", "número do passaporte"],
    "zh": ["身份证", "证件号", "护照号", "驾驶证", "社保号"],
}
_BULLETS: Final = tuple("•‣◦⁃■□▪▫●○◆◇▶►◀→⇒➤–—-*+✓✔★☆·・")
_PARTICLES: Final = {
    "ja": "のはがをにでともへやかねよ",
    "zh": "的了吗呢吧啊呀嘛是在和与就都而及或着也很到",
}
_CHARACTERS_OF_WORD: Final = 2  # in scripts without spaces
_TAGS: Final = [r"https?://[^\s<>]+", r"</?[A-Za-z!][^<>]*>"]
_EMOJI: Final = (
    "[\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff\u2600-\u27bf\ufe0f\u200d\U000e0020-\U000e007f]+"
)


_MAX_WORDS: Final = 10_000


def pretraining_pipeline(
    name: str = "pretraining",
    *,
    input_key: str = "text",
    language: str = "en",
    min_chars: int | None = 100,
    max_chars: int | None = 100_000,
    min_words: int | None = 10,
    max_words: int | None = _MAX_WORDS,
    max_tokens: int = 1024,
    tokenizer: str = "o200k_base",
    blocked_words: Collection[str] | str = (),
    chained: bool = False,
) -> Pipeline:
    """Return a pipeline of 24 steps: filters, near-duplicates, cleaning, pieces.

    The steps are those of LazyLLM's ``build_text_pt_pipeline``, in the same order, made of
    operators of the library. Differences on purpose: entities are decoded, not deleted; line ends
    stay; notices and identity terms are found as words; the joiners of emoji are no invisible
    characters; a short last piece is kept; no word list is shipped.

    Args:
        name: Name of the pipeline.
        input_key: The column of the text. A piece replaces it, with its number in ``chunk``.
        language: ISO 639-1 code of the texts, also with a region. It chooses stop words, terms and
            limits; in languages without spaces, such as Chinese and Japanese, two characters
            count as a word.
        min_chars: Least number of characters without white space; ``None`` for no limit.
        max_chars: Largest number of characters without white space; ``None`` for no limit.
        min_words: Least number of words; ``None`` for no limit.
        max_words: Largest number of words; ``None`` for no limit. The default is that of English:
            in other languages, where chapters of manuals are longer, ``max_chars`` alone limits.
        max_tokens: Largest number of tokens in a piece.
        tokenizer: As in ``chunk.Tokens``.
        blocked_words: Words, or the path of a file; a text with two or more is dropped.
        chained: Whether the steps before and after ``near_duplicates`` are one chain each, so that
            three results are written instead of 24.

    Returns:
        A pipeline. It needs the extras ``library`` and ``dedup``.

    Raises:
        DefinitionError: There are no stop words of the language.
    """
    if usual_stop_words(language) is None:
        msg = (
            f"there are no stop words of language {language!r}; use an ISO 639-1 code such as 'de'"
        )
        raise DefinitionError(msg)
    key = {"input_key": input_key}
    filters = {
        "null_content": data.text.LengthFilter(1, **key),
        "char_count": data.text.LengthFilter(min_chars, max_chars, **key),
        "word_count": _word_count(key, language, min_words, max_words),
        **_content_filters(key, language),
        **_shape_filters(key, language),
        "word_blocklist": data.filters.Blocklist(
            blocked_words, max_hits=1, whole_words=has_spaces(language), **key
        ),
    }
    refiners = {
        "remove_html_url": data.text.Replace(_TAGS, **key),
        "decode_html_entity": data.text.FixUnicode(unescape_html=True, **key),
        "remove_emoji": data.text.Replace(_EMOJI, **key),
        "remove_extra_spaces": data.text.NormalizeWhitespace(collapse=True, **key),
        "token_chunker": data.chunk.Sentences(
            max_tokens=max_tokens, tokenizer=tokenizer, language=language, **key
        ),
    }
    unique = data.dedup.NearDuplicate(threshold=0.85, **key)
    with Pipeline(name) as ppl:
        _add(ppl, "filtered", filters, chained=chained)
        ppl.add("near_duplicates", unique)
        _add(ppl, "refined", refiners, chained=chained)
    return ppl


def _add(ppl: Pipeline, name: str, steps: Steps, *, chained: bool) -> None:
    if not chained:
        for step, operator in steps.items():
            ppl.add(step, operator)
        return
    with Pipeline() as line:
        _add(line, name, steps, chained=False)
    (node,) = line.chained().graph.nodes.values()  # its parts have the names of the steps
    ppl.add(name, node.operator)


def _word_count(key: Key, language: str, least: int | None, most: int | None) -> Any:
    if most == _MAX_WORDS and base_language(language) != "en":
        most = None
    if not has_spaces(language):
        least, most = (limit and limit * _CHARACTERS_OF_WORD for limit in (least, most))
        return data.text.LengthFilter(least, most, **key)
    return data.filters.WordCount(min_words=least, max_words=most, strip=None, **key)


def _content_filters(key: Key, language: str) -> Steps:
    return {
        "sentence_count": data.filters.SentenceCount(
            min_sentences=3, max_sentences=1000, language=language, **key
        ),
        "special_char": data.filters.Regex(_INVISIBLE, **key),
        "watermark": data.filters.Regex(_NOTICES[base_language(language) == "en"], **key),
        "idcard": data.filters.Blocklist(
            _IDENTITY_TERMS.get(base_language(language), _IDENTITY_TERMS["en"]),
            max_hits=2,
            whole_words=has_spaces(language),
            **key,
        ),
        "javascript": data.filters.LinesContaining(**key),
        "lorem_ipsum": data.filters.Regex(_FILLER, **key),
        "colon_end": data.filters.Regex(r"[:：]\s*\Z", **key),
    }


def _shape_filters(key: Key, language: str) -> Steps:
    off = dict.fromkeys(
        (
            "min_words",
            "max_words",
            "min_mean_word_length",
            "max_mean_word_length",
            "max_symbol_to_word_ratio",
            "max_ellipsis_lines_ratio",
            "max_non_alpha_words_ratio",
            "min_stop_words",
        )
    )
    code = base_language(language)
    listed = None if code in languages_with_stop_words() else usual_stop_words(code)
    stop_words = (
        data.filters.StopWordRatio(
            min_ratio=None, max_ratio=0.6, language=code, stop_words=listed, **key
        )
        if has_spaces(language)
        else data.filters.CharacterShare(
            _PARTICLES.get(code, _PARTICLES["zh"]), max_ratio=0.5, **key
        )
    )
    return {
        "ellipsis_end": data.filters.Ellipsis(**key),
        "no_punc": data.filters.PunctuationGap(
            max_gap=112 if has_spaces(language) else 250,
            unit="words" if has_spaces(language) else "characters",
            **key,
        ),
        "curly_bracket": data.filters.CharacterShare("{}", max_ratio=0.08, **key),
        "bullet_point": data.filters.GopherQuality(
            **off, bullets=_BULLETS, max_bullet_lines_ratio=0.9, **key
        ),
        "symbol_ratio": data.filters.SymbolsToWords(max_symbol_to_word_ratio=0.3, **key),
        "stop_word": stop_words,
        "unique_word": data.filters.UniqueWordRatio(
            min_ratio=0.1 if has_spaces(language) else 0.03, **key
        ),
    }

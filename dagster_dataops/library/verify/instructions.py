"""``verify.IFEval``: check whether a response follows instructions that rules can check."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.library.analysis.sentence_splitting import rule_sentences
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.verify.fenced_blocks import fenced_blocks
from dagster_dataops.library.verify.verdict import Verdict, verify
from dagster_dataops.records import Record

Arguments = Mapping[str, Any]

_WORD: Final = re.compile(r"\w+")
_PLACEHOLDER: Final = re.compile(r"\[[^\[\]\n]*\]")
_BULLET: Final = re.compile(r"^[ \t]*(?:\*(?!\*)|-).", re.MULTILINE)
_HIGHLIGHT: Final = re.compile(r"\*\*([^\n*]++)\*\*|\*([^\n*]++)\*")
_TITLE: Final = re.compile(r"<<([^\n<>]++)>>")
_DIVIDER: Final = re.compile(r"\*\*\*")
_ANSWERS: Final = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_MARKS: Final = "\"'`.,;:!?()[]*_-"


class IFEval(verify):
    """Check whether a response follows its instructions, by the rules of IFEval.

    Reads the response in ``input_key="response"``, the names of the instructions in
    ``instructions_key="instruction_id_list"``, such as ``length_constraints:number_words``, and a
    list of as many dicts of arguments in ``kwargs_key="kwargs"``. Writes ``output_key="valid"``:
    whether all are followed, and a list of booleans to ``followed_key="followed"``. The reason of
    ``mode="drop"`` and ``"both"`` is ``not_followed``. An empty response follows nothing.

    Source: Zhou et al. 2023, arXiv:2311.07911. All of its instructions are known but
    ``language:response_language``, which is an error of the record: see `language.Filter`. The
    language of texts in capital or small letters is not checked, sentences are those of
    `text.SplitSentences`, and keywords are texts, not patterns.

    Args:
        input_key: Key of the response.
        instructions_key: Column of the names of the instructions.
        kwargs_key: Column of their arguments.
        output_key: Column of the result, a boolean.
        followed_key: Column of the results one by one, a list of booleans.
        mode: ``tag`` writes the result, ``drop`` drops what fails, ``both`` does both.
    """

    def __init__(
        self,
        input_key: str = "response",
        instructions_key: str = "instruction_id_list",
        kwargs_key: str = "kwargs",
        *,
        output_key: str = "valid",
        followed_key: str = "followed",
        mode: str = "tag",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column, self._followed = FieldKey(input_key), followed_key
        self._names, self._arguments = instructions_key, kwargs_key
        self._verdict = Verdict(mode, output_key, None)

    def forward(self, record: Record) -> Any:
        text = self._column.text(record)
        names, arguments = record.get(self._names), record.get(self._arguments)
        if not isinstance(names, list) or not isinstance(arguments, list):
            msg = f"keys {self._names!r} and {self._arguments!r} must hold lists"
            raise UnfitRecordError(msg)
        if len(names) != len(arguments):
            msg = f"there are {len(names)} instructions, and {len(arguments)} dicts of arguments"
            raise UnfitRecordError(msg)
        followed: list[Any] = [
            follows(text, name, options) for name, options in zip(names, arguments, strict=True)
        ]
        record[self._followed] = followed
        return self._verdict.of(record, None if all(followed) else "not_followed")


def follows(text: str, name: object, arguments: object) -> bool:
    """Return whether a text follows one instruction."""
    if name not in _RULES:
        msg = f"instruction {name!r} is unknown; known are {', '.join(_RULES)}"
        raise UnfitRecordError(msg)
    options: Arguments = arguments if isinstance(arguments, dict) else {}
    try:
        return bool(text.strip()) and bool(_RULES[str(name)](text, options))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"instruction {name!r} has the arguments {str(options)[:200]}: {error!r}"
        raise UnfitRecordError(msg) from None


def _compares(number: int, relation: object, limit: int) -> bool:
    return number < limit if relation == "less than" else number >= limit


def _occurrences(text: str, keyword: str) -> int:
    return text.lower().count(keyword.lower())


def _forbidden(text: str, arguments: Arguments) -> bool:
    words = "|".join(map(re.escape, arguments["forbidden_words"]))
    return re.search(rf"\b(?:{words})\b", text, re.IGNORECASE) is None


def _paragraphs(text: str, arguments: Arguments) -> bool:
    parts = [part.strip() for part in _DIVIDER.split(text)]
    inner = parts[1:-1]
    return all(inner) and sum(map(bool, parts)) == int(arguments["num_paragraphs"])


def _nth_paragraph(text: str, arguments: Arguments) -> bool:
    texts = [part.strip() for part in text.split("\n\n") if part.strip()]
    number: int = arguments["nth_paragraph"]
    if len(texts) != arguments["num_paragraphs"] or not 0 < number <= len(texts):
        return False
    first = texts[number - 1].split(maxsplit=1)[0]
    return first.strip(_MARKS).lower() == str(arguments["first_word"]).lower()


def _postscript(text: str, arguments: Arguments) -> bool:
    marker: str = arguments["postscript_marker"].lower()
    text = re.sub(r"(?<=\.)\s(?=[ps]\b)", "", text.lower())
    return marker in text


def _sections(text: str, arguments: Arguments) -> bool:
    pattern = rf"{re.escape(arguments['section_spliter'])}\s?[0-9]+"
    return len(re.findall(pattern, text)) >= int(arguments["num_sections"])


def _is_json(text: str, arguments: Arguments) -> bool:
    del arguments
    blocks = fenced_blocks(text, ("json",))
    try:
        json.loads(blocks[0].code if blocks else text)
    except (ValueError, RecursionError):
        return False
    return True


def _highlights(text: str) -> int:
    return sum(bool((strong or weak).strip()) for strong, weak in _HIGHLIGHT.findall(text))


def _two_responses(text: str, arguments: Arguments) -> bool:
    del arguments
    parts = [part.strip() for part in text.split("******")]
    filled = [part for part in parts if part]
    return all(parts[1:-1]) and len(filled) == 2 and filled[0] != filled[1]


def _capital_words(text: str, arguments: Arguments) -> bool:
    number = sum(word.isupper() for word in _WORD.findall(text))
    return _compares(number, arguments["capital_relation"], arguments["capital_frequency"])


_RULES: Final[Mapping[str, Callable[[str, Arguments], bool]]] = {
    "keywords:existence": lambda text, arguments: all(
        _occurrences(text, word) for word in arguments["keywords"]
    ),
    "keywords:frequency": lambda text, arguments: _compares(
        _occurrences(text, arguments["keyword"]), arguments["relation"], arguments["frequency"]
    ),
    "keywords:forbidden_words": _forbidden,
    "keywords:letter_frequency": lambda text, arguments: _compares(
        _occurrences(text, arguments["letter"]),
        arguments["let_relation"],
        arguments["let_frequency"],
    ),
    "length_constraints:number_sentences": lambda text, arguments: _compares(
        len(rule_sentences(text)), arguments["relation"], arguments["num_sentences"]
    ),
    "length_constraints:number_paragraphs": _paragraphs,
    "length_constraints:number_words": lambda text, arguments: _compares(
        len(_WORD.findall(text)), arguments["relation"], arguments["num_words"]
    ),
    "length_constraints:nth_paragraph_first_word": _nth_paragraph,
    "detectable_content:number_placeholders": lambda text, arguments: (
        len(_PLACEHOLDER.findall(text)) >= arguments["num_placeholders"]
    ),
    "detectable_content:postscript": _postscript,
    "detectable_format:number_bullet_lists": lambda text, arguments: (
        len(_BULLET.findall(text)) == arguments["num_bullets"]
    ),
    "detectable_format:constrained_response": lambda text, _: any(
        answer in text for answer in _ANSWERS
    ),
    "detectable_format:number_highlighted_sections": lambda text, arguments: (
        _highlights(text) >= arguments["num_highlights"]
    ),
    "detectable_format:multiple_sections": _sections,
    "detectable_format:json_format": _is_json,
    "detectable_format:title": lambda text, _: any(map(str.strip, _TITLE.findall(text))),
    "combination:two_responses": _two_responses,
    "combination:repeat_prompt": lambda text, arguments: (
        text.strip().lower().startswith(arguments["prompt_to_repeat"].strip().lower())
    ),
    "startend:end_checker": lambda text, arguments: (
        text.strip().strip('"').lower().endswith(arguments["end_phrase"].strip().lower())
    ),
    "startend:quotation": lambda text, _: (
        len(text.strip()) > 1 and text.strip().startswith('"') and text.strip().endswith('"')
    ),
    "change_case:capital_word_frequency": _capital_words,
    "change_case:english_capital": lambda text, _: text.isupper(),
    "change_case:english_lowercase": lambda text, _: text.islower(),
    "punctuation:no_comma": lambda text, _: "," not in text,
}

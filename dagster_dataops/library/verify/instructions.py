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
            follows(text, name, given) for name, given in zip(names, arguments, strict=True)
        ]
        record[self._followed] = followed
        return self._verdict.of(record, None if all(followed) else "not_followed")


def follows(text: str, name: object, arguments: object) -> bool:
    """Return whether a text follows one instruction.

    Raises:
        UnfitRecordError: The instruction is unknown, or lacks an argument.
    """
    if name not in _RULES:
        msg = f"instruction {name!r} is unknown; known are {', '.join(_RULES)}"
        raise UnfitRecordError(msg)
    given: Arguments = arguments if isinstance(arguments, dict) else {}
    try:
        return bool(text.strip()) and bool(_RULES[str(name)](text, given))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"instruction {name!r} has the arguments {str(given)[:200]}: {error!r}"
        raise UnfitRecordError(msg) from None


def _compares(number: int, relation: object, limit: int) -> bool:
    return number < limit if relation == "less than" else number >= limit


def _occurrences(text: str, keyword: str) -> int:
    return text.lower().count(keyword.lower())


def _forbidden(text: str, given: Arguments) -> bool:
    words = "|".join(map(re.escape, given["forbidden_words"]))
    return re.search(rf"\b(?:{words})\b", text, re.IGNORECASE) is None


def _paragraphs(text: str, given: Arguments) -> bool:
    parts = [part.strip() for part in _DIVIDER.split(text)]
    inner = parts[1:-1]
    return all(inner) and sum(map(bool, parts)) == int(given["num_paragraphs"])


def _nth_paragraph(text: str, given: Arguments) -> bool:
    found = [part.strip() for part in text.split("\n\n") if part.strip()]
    number: int = given["nth_paragraph"]
    if len(found) != given["num_paragraphs"] or not 0 < number <= len(found):
        return False
    first = found[number - 1].split(maxsplit=1)[0]
    return first.strip(_MARKS).lower() == str(given["first_word"]).lower()


def _postscript(text: str, given: Arguments) -> bool:
    marker: str = given["postscript_marker"].lower()
    text = re.sub(r"(?<=\.)\s(?=[ps]\b)", "", text.lower())
    return marker in text


def _sections(text: str, given: Arguments) -> bool:
    pattern = rf"{re.escape(given['section_spliter'])}\s?[0-9]+"
    return len(re.findall(pattern, text)) >= int(given["num_sections"])


def _is_json(text: str, given: Arguments) -> bool:
    del given
    blocks = fenced_blocks(text, ("json",))
    try:
        json.loads(blocks[0].code if blocks else text)
    except (ValueError, RecursionError):
        return False
    return True


def _highlights(text: str) -> int:
    return sum(bool((strong or weak).strip()) for strong, weak in _HIGHLIGHT.findall(text))


def _two_responses(text: str, given: Arguments) -> bool:
    del given
    parts = [part.strip() for part in text.split("******")]
    filled = [part for part in parts if part]
    return all(parts[1:-1]) and len(filled) == 2 and filled[0] != filled[1]


def _capital_words(text: str, given: Arguments) -> bool:
    number = sum(word.isupper() for word in _WORD.findall(text))
    return _compares(number, given["capital_relation"], given["capital_frequency"])


_RULES: Final[Mapping[str, Callable[[str, Arguments], bool]]] = {
    "keywords:existence": lambda text, given: all(
        _occurrences(text, word) for word in given["keywords"]
    ),
    "keywords:frequency": lambda text, given: _compares(
        _occurrences(text, given["keyword"]), given["relation"], given["frequency"]
    ),
    "keywords:forbidden_words": _forbidden,
    "keywords:letter_frequency": lambda text, given: _compares(
        _occurrences(text, given["letter"]), given["let_relation"], given["let_frequency"]
    ),
    "length_constraints:number_sentences": lambda text, given: _compares(
        len(rule_sentences(text)), given["relation"], given["num_sentences"]
    ),
    "length_constraints:number_paragraphs": _paragraphs,
    "length_constraints:number_words": lambda text, given: _compares(
        len(_WORD.findall(text)), given["relation"], given["num_words"]
    ),
    "length_constraints:nth_paragraph_first_word": _nth_paragraph,
    "detectable_content:number_placeholders": lambda text, given: (
        len(_PLACEHOLDER.findall(text)) >= given["num_placeholders"]
    ),
    "detectable_content:postscript": _postscript,
    "detectable_format:number_bullet_lists": lambda text, given: (
        len(_BULLET.findall(text)) == given["num_bullets"]
    ),
    "detectable_format:constrained_response": lambda text, _: any(
        answer in text for answer in _ANSWERS
    ),
    "detectable_format:number_highlighted_sections": lambda text, given: (
        _highlights(text) >= given["num_highlights"]
    ),
    "detectable_format:multiple_sections": _sections,
    "detectable_format:json_format": _is_json,
    "detectable_format:title": lambda text, _: any(map(str.strip, _TITLE.findall(text))),
    "combination:two_responses": _two_responses,
    "combination:repeat_prompt": lambda text, given: (
        text.strip().lower().startswith(given["prompt_to_repeat"].strip().lower())
    ),
    "startend:end_checker": lambda text, given: (
        text.strip().strip('"').lower().endswith(given["end_phrase"].strip().lower())
    ),
    "startend:quotation": lambda text, _: (
        len(text.strip()) > 1 and text.strip().startswith('"') and text.strip().endswith('"')
    ),
    "change_case:capital_word_frequency": _capital_words,
    "change_case:english_capital": lambda text, _: text.isupper(),
    "change_case:english_lowercase": lambda text, _: text.islower(),
    "punctuation:no_comma": lambda text, _: "," not in text,
}

"""Properties of any selector over any record."""

import copy
import json
import re
from typing import Any

from dagster_dataops.errors import MissingColumnError, SelectorSyntaxError
from dagster_dataops.foundation.selectors.grammar import path_text
from dagster_dataops.foundation.selectors.resolver import mapped_in_order, resolve
from dagster_dataops.foundation.selectors.selector import Selector

_KEY = r"[^.\[,\s]+"
_INDEX = r"\[(?:[0-9]{1,19}|\*)\]"
_PATH = rf"\s*(?:{_KEY}|{_INDEX})(?:\.{_KEY}|{_INDEX})*\s*"
_GRAMMAR = re.compile(rf"{_PATH}(?:,{_PATH})*", re.ASCII)


def check(data: bytes) -> None:
    """Read a selector and a record, one JSON value per line; or only a selector."""
    text, _, rest = data.decode(errors="replace").partition("\n")
    try:
        item = json.loads(rest)
    except (ValueError, RecursionError):
        item = {"a": [{"b": 1}, {"b": [2, 3]}], "c": {"d": "e"}}
    check_selector(text, item)


def check_selector(text: str, item: Any) -> None:
    try:
        selector = Selector(text)
    except SelectorSyntaxError as error:
        assert not (text.isascii() and _GRAMMAR.fullmatch(text)), "a good selector was refused"
        if not 1 <= error.column <= len(text) + 1:
            raise AssertionError("the fault lies outside") from error
        return
    if text.isascii() and not re.search(r"[0-9]{20}", text):
        assert _GRAMMAR.fullmatch(text), "a malformed selector was accepted"
    again = Selector(",".join(map(path_text, selector.paths)))
    assert again == selector, "a selector is not what it is written as"
    _check_evaluation(selector, item)


def _check_evaluation(selector: Selector, item: Any) -> None:
    before = copy.deepcopy(item)
    calls: list[Any] = []

    def marked(value: Any) -> Any:
        calls.append(value)
        return ["changed", value]

    try:
        expected = mapped_in_order(item, selector.paths, marked)
        count = len(calls)
    except MissingColumnError as error:
        expected, count = str(error), 0
        overlapping = bool(calls)
    else:
        overlapping = False
    calls.clear()
    try:
        found = selector.map(marked, item)
        assert len(calls) == count == len(selector.values(item))
        assert len(calls) == len(resolve(item, selector.paths))
    except MissingColumnError as error:
        found = str(error)
        assert overlapping or not calls, "something was called before all was resolved"
    assert found == expected, "compiled and plain evaluation differ"
    assert item == before, "the input was changed"

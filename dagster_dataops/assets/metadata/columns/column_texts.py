"""What the columns of an operator are, from the docstring of the options that name them.

The option ``output_key="score"`` with the description "Column of the score." gives the column
``score`` the text "The score.".
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dagster_dataops.assets.metadata.key_options import column_of, names_in
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.definition.spec import Invocation
from dagster_dataops.operators.options.docstrings import option_descriptions

_SUFFIX: Final = "_key"
_WRITTEN: Final = "output_key"
_ELSEWHERE: Final = re.compile(r" in the ")  # of another dataset, such as a benchmark
_ABOUT: Final = (
    re.compile(r"(?:the )?(?:column|key) of (.+)", re.IGNORECASE),
    re.compile(r"where (.+?) (?:is|are) written.*", re.IGNORECASE),
    re.compile(r"the key to which (.+?) (?:is|are) written.*", re.IGNORECASE),
    re.compile(r"column that .+? writes: (.+)", re.IGNORECASE),
)
_NAMING: Final = re.compile(r"(?:the )?(?:column|key|name|where)\b", re.IGNORECASE)
_END: Final = re.compile(r"[.;](?:\s|$)|: a column\b|, as many keys\b|, or several\b")


class ColumnText(NamedTuple):
    """What a column is, by the operator that reads or writes it.

    Attributes:
        column: The name of the column.
        text: What it is, a sentence.
        written: Whether the operator writes it, whatever it held before.
    """

    column: str
    text: str
    written: bool


def texts_of(operator: Operator) -> Iterator[ColumnText]:
    """Yield what the options of an operator say about columns, in the order of the options."""
    for invocation in operator.__dataops__.uses:
        yield from _texts_of_use(invocation)


def _texts_of_use(invocation: Invocation) -> Iterator[ColumnText]:
    described: dict[str, str] = {}
    for target in invocation.spec.targets:
        described |= option_descriptions(target)
    for option, value in invocation.options.items():
        if option.endswith(_SUFFIX) and (text := sentence(described.get(option, ""))):
            written = option == _WRITTEN
            names = [name for name in names_in(value) if column_of(name, ()) == name]
            yield from (ColumnText(name, text, written) for name in names)


def sentence(description: str) -> str:
    """Return what a column is, from the description of the option that names it.

    Returns:
        A sentence; empty if the description only says that there is a column.
    """
    text = " ".join(description.split()).replace("``", "`")
    end = _END.search(text)
    text = text[: end.start()] if end else text
    if not text or _ELSEWHERE.search(text):
        return ""
    match = next((match[1] for pattern in _ABOUT if (match := pattern.fullmatch(text))), None)
    if match is None and _NAMING.match(text):
        return ""
    said = match or text
    return f"{said[0].upper()}{said[1:]}."

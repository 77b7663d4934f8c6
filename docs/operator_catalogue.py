"""The catalogue of the library's operators as Markdown, made of their docstrings.

    python -m docs.operator_catalogue

writes the tables of operators into the pages of ``catalogue/``, which can be read unbuilt. The
directives of the pages insert a section for each operator.
"""

import inspect
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from dagster_dataops import data_register
from dagster_dataops.library import GROUPS
from dagster_dataops.library.filters.rules import TextFilter
from dagster_dataops.operators.kinds.kind import OperatorKind
from dagster_dataops.operators.kinds.kind_table import data_methods
from dagster_dataops.operators.options.docstrings import described_parameters, option_descriptions

_PAGES: Final = Path(__file__).with_name("catalogue")
_SPEEDS: Final = _PAGES / "speeds.json"
_TABLE_START: Final = "<!-- written by docs/operator_catalogue.py -->"
_TABLE_END: Final = "<!-- end of the table -->"
_LONGEST_LINE: Final = 92
_ARGS: Final = "\nArgs:\n"
_CODE: Final = re.compile(r"``(.+?)``", re.DOTALL)
_SPAN: Final = re.compile(r"\x00(\d+)\x00")
_ASIDE: Final = re.compile(r"\([^()]*\)")
_CLAUSE: Final = re.compile(
    r"(?P<verbs>\b[Rr]eads?(?: and writes)?|\b[Ww]rites?) (?P<columns>[^.;:]*)"
)
_COLUMN: Final = re.compile(r'(?P<name>[a-z]\w*)(?:="(?P<value>[\w.]+)")?')
_EXTRAS: Final = re.compile(
    r"(?P<needed>\b[Nn]eeds the )?\bextras? "
    r"(?P<names>(?:\x00\d+\x00(?: \([^)]*\))?(?:, | or |,? and )?)+)"
)
_NAMES_OF_COLUMNS: Final = {"columns", "key", "keys", "on", "types", "values"}
_INPUT_OPTIONS: Final = {"input_key", "key", "keys", "on"}
_OF_ALL_FILTERS: Final = option_descriptions(TextFilter)
_NO_COLUMNS: Final = {"null"}
_REFERENCE: Final = re.compile(r"(?<![`\w\[])`(?:(?P<group>[a-z]\w*)\.)?(?P<name>[A-Z]\w*)`(?!`)")

_SHARED: Final = "Options that several operators have"
_SEVERAL: Final = 3


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An operator of the library.

    Attributes:
        group: The group, such as ``text``.
        name: The name in the group.
        kind: The kind of the operator.
        text: The cleaned docstring.
        options: The options of the constructor, without settings.
        inherited: Descriptions of options that the classes above it have, by name.
    """

    group: str
    name: str
    kind: OperatorKind
    text: str
    options: tuple[inspect.Parameter, ...]
    inherited: dict[str, str]

    @property
    def qualified_name(self) -> str:
        """The group and the name."""
        return f"{self.group}.{self.name}"

    @property
    def is_filter(self) -> bool:
        """Whether it has the options of all filters."""
        return "mode" in self.inherited

    @property
    def sentence(self) -> str:
        """The first paragraph of the docstring, one sentence."""
        return " ".join(self.text.partition("\n\n")[0].split())

    @property
    def reads(self) -> list[str]:
        """The columns that the docstring says it reads; else those that an option names."""
        found = list(self._columns("read"))
        if not found:
            named = [one.name for one in self.options if one.name in _INPUT_OPTIONS]
            found = [self._column(name) for name in named]
        named = [one for one in found if "=" not in one]
        return list(dict.fromkeys(named or found))

    @property
    def writes(self) -> list[str]:
        """The columns that the docstring says it writes."""
        if self.kind.holds_files:
            return []
        return list(dict.fromkeys(self._columns("write")))

    @property
    def extras(self) -> dict[str, bool]:
        """The extras that the docstring names, and whether the operator always needs them."""
        found: dict[str, bool] = {}
        for part, always in zip(self.text.partition(_ARGS)[::2], (True, False), strict=True):
            text, spans = _without_code(part)
            for match in _EXTRAS.finditer(text):
                for index in _SPAN.findall(match["names"]):
                    found.setdefault(spans[int(index)], always and bool(match["needed"]))
        return found

    def _columns(self, verb: str) -> Iterator[str]:
        text, spans = _without_code(self.text.partition(_ARGS)[0])
        text = _ASIDE.sub("", text)
        text = re.sub(r"(?<!eads)(?:,| and|, and) writes ", "; writes ", text)
        for clause in _CLAUSE.finditer(text):
            sentence = text[: clause.start()].rpartition(". ")[2]
            if verb not in clause["verbs"].lower() or _tells_of_tag(sentence, spans):
                continue
            for index in _SPAN.findall(clause["columns"]):
                column = _COLUMN.fullmatch(spans[int(index)])
                if column and (column["value"] is None or _names_columns(column["name"])):
                    name = column["name"]
                    yield from [self._column(name)] if self._may_be_column(name) else []

    def _may_be_column(self, name: str) -> bool:
        options = {one.name for one in self.options}
        return name not in _NO_COLUMNS and (name not in options or _names_columns(name))

    def _column(self, name: str) -> str:
        """Return the default of an option that names a column; ``name=`` without one."""
        default = next((one.default for one in self.options if one.name == name), name)
        text = str(default).strip("'")
        if name == "output_key" and text == "None":
            return "the same"
        return f"`{name}=`" if text in {"None", str(inspect.Parameter.empty)} else f"`{text}`"


def entries(group: str) -> list[Entry]:
    """Return the operators of a group that this package has, by name."""
    names_of_group = data_register.operators(group)
    shipped = [
        name
        for name in names_of_group
        if data_register.operator(group, name).__dataops_spec__.shipped
    ]
    return [_entry(group, name) for name in shipped]


def _entry(group: str, name: str) -> Entry:
    operator: Any = data_register.operator(group, name)
    spec = operator.__dataops_spec__
    own = described_parameters(spec.description)
    options = inspect.signature(operator).parameters.values()
    return Entry(
        group=group,
        name=name,
        kind=spec.kind,
        text=spec.description,
        options=tuple(one for one in options if not one.name.startswith("_")),
        inherited={
            option: text
            for option, text in option_descriptions(operator, data_methods()).items()
            if option not in own and any(one.name == option for one in options)
        },
    )


@cache
def names() -> frozenset[str]:
    """Return the qualified names of all operators of the library."""
    return frozenset(f"{one}.{name}" for one in GROUPS for name in data_register.operators(one))


@cache
def speeds() -> dict[str, int]:
    """Return the texts a second of the operators that were measured, by qualified name."""
    found: dict[str, int] = json.loads(_SPEEDS.read_bytes())
    return found


def linked(text: str, group: str = "") -> str:
    """Return Markdown with a link in place of each operator in backticks.

    Args:
        text: The Markdown.
        group: The group of operators that are named without one.
    """

    def link(match: re.Match[str]) -> str:
        name = f"{match['group'] or group}.{match['name']}"
        return f"[{match[0]}](#{name})" if name in names() else match[0]

    return _REFERENCE.sub(link, text)


def groups_table() -> Iterator[str]:
    """Yield a table of the groups."""
    yield from ("| group | operators |", "|---|---|")
    for group in GROUPS:
        listed = ", ".join(f"`{name}`" for name in data_register.operators(group))
        yield f"| [{group}]({group}.md) | {linked(listed, group)} |"


def operators_table(group: str) -> Iterator[str]:
    """Yield a table of the operators of a group, with names that `linked` turns into links."""
    yield from (
        "| operator | does | reads | writes | extra | texts/s |",
        "|---|---|---|---|---|--:|",
    )
    for entry in entries(group):
        extras = [
            f"`{one}`" + ("" if needed else " (option)") for one, needed in entry.extras.items()
        ]
        cells = [
            f"`{entry.qualified_name}`",
            _in_cell(_qualified(_CODE.sub(r"`\1`", entry.sentence), group)),
            ", ".join(entry.reads) or "the record",
            ", ".join(entry.writes) or (entry.kind.noun if entry.kind.holds_files else "-"),
            ", ".join(extras) or "-",
            f"{speed:,}" if (speed := speeds().get(entry.qualified_name)) else "-",
        ]
        yield f"| {' | '.join(cells)} |"


def with_table(page: str, group: str) -> str:
    """Return the text of a page of a group with its table of operators as it is now."""
    before, _, rest = page.partition(_TABLE_START)
    _, _, after = rest.partition(_TABLE_END)
    table = "\n".join(operators_table(group))
    return f"{before}{_TABLE_START}\n\n{table}\n\n{_TABLE_END}{after}"


def group_page(group: str) -> Iterator[str]:
    """Yield a section for each operator of a group."""
    listed = entries(group)
    yield from _options_of_filters(listed)
    shared = _shared_options(listed)
    if shared:
        yield from (f"## {_SHARED}", "")
        yield from _described(shared, group)
    for entry in listed:
        yield from _section(entry, shared)


def _options_of_filters(found: list[Entry]) -> Iterator[str]:
    filters = [entry for entry in found if entry.is_filter]
    inherited = {name for entry in filters for name in entry.inherited}
    if inherited:
        shared = {name: text for name, text in _OF_ALL_FILTERS.items() if name in inherited}
        yield from ("## Options of all filters", "")
        yield from _described(shared, filters[0].group)


def _shared_options(found: list[Entry]) -> dict[str, str]:
    """Return the inherited options that three operators or more describe by the same text."""
    inherited = [entry.inherited for entry in found if not entry.is_filter]
    counts = Counter(option for options in inherited for option in options.items())
    return {name: text for (name, text), count in counts.items() if count >= _SEVERAL}


def _section(entry: Entry, shared: dict[str, str]) -> Iterator[str]:
    yield from (f"({entry.qualified_name})=", "", f"## {entry.qualified_name}", "")
    yield from ("```python", *_call(entry), "```", "")
    yield from (*_markdown(entry.text.partition(_ARGS)[0], entry.group).splitlines(), "")
    inherited = entry.inherited
    if entry.is_filter:
        inherited = {name: text for name, text in inherited.items() if name not in _OF_ALL_FILTERS}
    further = [name for name, text in inherited.items() if shared.get(name) == text]
    own = {name: text for name, text in inherited.items() if name not in further}
    yield from _described({**described_parameters(entry.text), **own}, entry.group)
    if further:
        yield from (f"{_SHARED}: {', '.join(f'`{name}`' for name in further)}.", "")
    yield from (f"Kind: {entry.kind.text}.", "")


def _described(options: dict[str, str], group: str) -> Iterator[str]:
    for name, text in options.items():
        yield f"- `{name}`: {_markdown(' '.join(text.split()), group)}"
    yield ""


def _call(entry: Entry) -> Iterator[str]:
    """Yield the lines of a call with the options and their defaults."""
    options: list[str] = []
    by_keyword = False
    for one in entry.options:
        if one.kind is inspect.Parameter.KEYWORD_ONLY and not by_keyword:
            by_keyword = True
            options.append("*")
        required = one.default is inspect.Parameter.empty
        options.append(one.name if required else f"{one.name}={one.default}")
    line = f"data.{entry.qualified_name}({', '.join(options)})"
    if len(line) <= _LONGEST_LINE:
        yield line
        return
    yield f"data.{entry.qualified_name}("
    yield from (f"    {option}," for option in options)
    yield ")"


def _markdown(text: str, group: str) -> str:
    return linked(_CODE.sub(r"`\1`", text), group)


def _qualified(text: str, group: str) -> str:
    """Return Markdown with the group before each operator that is named without one."""

    def name_of(match: re.Match[str]) -> str:
        name = f"{group}.{match['name']}"
        return f"`{name}`" if match["group"] is None and name in names() else match[0]

    return _REFERENCE.sub(name_of, text)


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")


def _names_columns(option: str) -> bool:
    return option.endswith("_key") or option in _NAMES_OF_COLUMNS


def _tells_of_tag(sentence: str, spans: list[str]) -> bool:
    return any("tag" in spans[int(index)] for index in _SPAN.findall(sentence))


def _without_code(text: str) -> tuple[str, list[str]]:
    """Return the text on one line with a number in place of each piece of code; and these."""
    spans: list[str] = []

    def keep(match: re.Match[str]) -> str:
        spans.append(match[1])
        return f"\0{len(spans) - 1}\0"

    return " ".join(_CODE.sub(keep, text).split()), spans


if __name__ == "__main__":
    for name_of_group in GROUPS:
        file = _PAGES / f"{name_of_group}.md"
        file.write_text(with_table(file.read_text("utf-8"), name_of_group), "utf-8")

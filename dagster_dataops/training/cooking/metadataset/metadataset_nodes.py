"""`YamlNode`: a value of a metadataset's YAML with its file and line, for errors that name them."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from dagster_dataops.errors import MetadatasetError
from dagster_dataops.operators.options.signature import nearest

_MERGE: Final = "tag:yaml.org,2002:merge"
_NAMES: Final = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list"}


@dataclass(frozen=True)
class YamlNode:
    """A value in a YAML file.

    Attributes:
        file: The path or URL of the file.
        key: The keys and indices that lead to the value, such as ``splits.train.blend[1]``.
        node: The parsed value.
        line: The line of its key, counted from 1.
    """

    file: str
    key: str
    node: yaml.Node = field(repr=False)
    line: int

    def error(self, reason: str) -> MetadatasetError:
        """Return an error at this place."""
        return MetadatasetError(self.file, self.line, self.key, reason)

    @property
    def is_mapping(self) -> bool:
        """Whether the value is a mapping."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def shown(self) -> str:
        """The value in messages."""
        if isinstance(self.node, yaml.ScalarNode):
            return repr(self.value())
        return _NAMES[type(self.node)]

    def value(self) -> Any:
        """Return the value as Python objects."""
        constructor = yaml.constructor.SafeConstructor()
        try:
            return constructor.construct_document(self.node)
        except (yaml.YAMLError, TypeError, ValueError) as error:
            raise self.error(f"cannot be read: {_problem(error)}") from error

    def entries(self) -> dict[str, "YamlNode"]:
        """Return the values of a mapping, whose keys are texts that occur once."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error(f"must be a mapping, not {self.shown}")
        merged_entries: dict[str, YamlNode] = {}
        merged: dict[str, YamlNode] = {}
        for key, value in self.node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            inner = self._inner(f".{name}" if self.key else str(name), value, key)
            if name is None:
                raise inner.error("a key must be a text")
            if key.tag == _MERGE:
                several = isinstance(value, yaml.SequenceNode)
                for element in inner.elements() if several else [inner]:
                    merged = {**element.entries(), **merged}
            elif name in merged_entries:
                raise inner.error(
                    f"{name!r} occurs twice; first in line {merged_entries[name].line}"
                )
            else:
                merged_entries[name] = inner
        return {**merged, **merged_entries}

    def known_entries(self, known: Collection[str], hints: Mapping[str, str]) -> dict[str, Any]:
        """Return the values of a mapping whose keys are all in ``known``.

        The error of an unknown key has its explanation in ``hints``, or the nearest known one.
        """
        entries = self.entries()
        for name, inner in entries.items():
            if name not in known:
                near = nearest(name, list(known))
                hint = hints.get(name) or (near and f"did you mean {near!r}?")
                raise inner.error(f"{name!r} is unknown; {hint or 'known: ' + ', '.join(known)}")
        return entries

    def elements(self) -> list["YamlNode"]:
        """Return the values of a list, which is not empty."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error(f"must be a list, not {self.shown}")
        if not self.node.value:
            raise self.error("is an empty list")
        return [
            self._inner(f"[{at}]", element, element) for at, element in enumerate(self.node.value)
        ]

    def text(self) -> str:
        """Return a text that is not empty."""
        text = self.value()
        if not isinstance(text, str) or not text:
            raise self.error(f"must be a text, not {self.shown}")
        return text

    def number(self) -> float:
        """Return a finite number above 0."""
        value = self.value()
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value <= 0:
            reason = f"must be a number above 0, not {self.shown}"
            raise self.error(f"{reason}; leave the dataset out to take nothing of it")
        return float(value) if isinstance(value, float) else value

    def _inner(self, part: str, value: yaml.Node, place: yaml.Node) -> "YamlNode":
        return YamlNode(self.file, f"{self.key}{part}", value, place.start_mark.line + 1)


def parse(text: str, file: str) -> YamlNode:
    """Parse a YAML file, which is not empty."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise MetadatasetError(file, line, "", f"it is not YAML: {_problem(error)}") from error
    if node is None:
        raise MetadatasetError(file, 1, "", "the file is empty")
    return YamlNode(file, "", node, 1)


def _problem(error: Exception) -> str:
    return str(getattr(error, "problem", None) or error)

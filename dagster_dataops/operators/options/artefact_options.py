"""Options whose value is an artefact: a node of the pipeline, a handle or a path.

Inside the operator the value is the `pathlib.Path` of the artefact's folder. An option that names a
node has this value only in a run, so the operator is constructed by then.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from dagster_dataops.datasets.artefact import Artefact, is_version
from dagster_dataops.foundation.override import override

_MAX_DEPTH: Final = 8  # containers may contain themselves


class NodeReference(str):
    """Name of a node, the value of ``ppl.upper``: an input for ``ppl.add(..., inputs=[...])``.

    As an option of an operator it is the folder of an artefact. Of a node with
    several results, ``ppl.split.train`` is the name of one of them.

    Args:
        name: The name.
        outputs: The names of its outputs, if the node has several.
    """

    __slots__ = ("outputs",)
    outputs: tuple[str, ...]

    def __new__(cls, name: str, outputs: tuple[str, ...] = ()) -> Self:
        """Return the name; `str` takes no second argument."""
        reference = super().__new__(cls, name)
        reference.outputs = outputs
        return reference

    def __getattr__(self, output: str) -> "NodeReference":
        if output.startswith("_") or output not in self.outputs:
            has = f"its results are {', '.join(self.outputs)}" if self.outputs else "it has one"
            msg = f"node {str(self)!r} has no result {output!r}; {has}"
            raise AttributeError(msg)
        return NodeReference(f"{self}.{output}")

    @override
    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.outputs]


@dataclass(frozen=True, slots=True)
class ArtefactReference:
    """The value of an option that names a node of the pipeline.

    Attributes:
        node: The name of the node.
    """

    node: str

    @override
    def __repr__(self) -> str:
        return f"<artefact {self.node}>"


def as_option(value: Any) -> Any:
    """Return ``value`` with node references and handles in it replaced; also inside containers."""
    return _mapped(value, _option)


def _option(value: Any) -> Any:
    if isinstance(value, NodeReference):
        return ArtefactReference(str(value))
    return value.path if isinstance(value, Artefact) else value


def referenced(value: Any) -> Iterator[str]:
    """Yield the names of the nodes that an option refers to."""
    return (part.node for part in _leaves(value) if isinstance(part, ArtefactReference))


def with_references(value: Any, values: Mapping[str, Any]) -> Any:
    """Return ``value`` with the references in it replaced by the values of ``values``, by node."""

    def replaced(part: Any) -> Any:
        return values[part.node] if isinstance(part, ArtefactReference) else part

    return _mapped(value, replaced)


def versions_in(options: Mapping[str, Any]) -> list[Path]:
    """Return the paths of artefacts among the values of options."""
    return [part for part in _leaves(dict(options)) if is_version(part)]


def _leaves(value: Any, depth: int = 0) -> Iterator[Any]:
    if depth < _MAX_DEPTH and type(value) in {list, tuple, dict}:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item, depth + 1)
    else:
        yield value


def _mapped(value: Any, change: Callable[[Any], Any], depth: int = 0) -> Any:
    """Return ``value`` with its leaves changed; the same object if none changes."""
    if depth >= _MAX_DEPTH:
        return value
    if type(value) in {list, tuple}:
        items = [_mapped(item, change, depth + 1) for item in value]
        same = all(item is other for item, other in zip(items, value, strict=True))
        return value if same else type(value)(items)
    if type(value) is dict:
        pairs = {key: _mapped(item, change, depth + 1) for key, item in value.items()}
        return value if all(pairs[key] is value[key] for key in pairs) else pairs
    return change(value)

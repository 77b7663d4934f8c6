"""Compile selectors to Python source that is as fast as hand-written code.

A selector whose paths do not overlap becomes two functions:

 get(item)                resolve each element by checked, nested indexing
 mapper(fn)(item)         resolve; then call fn for each path; then copy along the paths

Values are local variables, one per path: the element, or a list of elements below ``[*]``. A
missing element raises ``LookupError``; `resolver` then finds out which one is missing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import MissingColumnError, SelectedElementError
from dagster_dataops.foundation.selectors.grammar import EVERY, Path, PathStep, path_text
from dagster_dataops.foundation.selectors.resolver import copied, element_failed, rebuilt, resolve

_MOST_NESTED: Final = 8  # nested loops; Python allows 20

Branch: TypeAlias = "dict[PathStep, Branch | int]"
"""The paths of a selector as a tree, so that shared steps are taken once."""


def compiled(paths: Sequence[Path]) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """Return (get, mapper) of paths; ``mapper(fn)`` is a function of an item.

    Both raise `MissingColumnError` for a missing element, before ``fn`` is called. Paths that
    overlap, or are too long or too many, are not compiled: the result is ``None``.
    """
    deep = any(path.count(EVERY) > _MOST_NESTED or len(path) > 4 * _MOST_NESTED for path in paths)
    tree = None if deep or len(paths) > 8 * _MOST_NESTED else _tree_of(paths)
    if tree is None:
        return None
    names: dict[str, Any] = {
        "check": _check_keys,
        "copied": copied,
        "failed": partial(_failed, paths),
        "missing": partial(_missing, paths),
        "rebuilt": rebuilt,
    }
    source = "\n".join(_SourceWriter(paths, tree).lines())
    exec(compile(source, "<selector>", "exec"), names)  # noqa: S102 - keys appear as literals only
    return names["get"], names["mapper"]


def _tree_of(paths: Sequence[Path]) -> "Branch | None":
    """Return the paths as a tree with their numbers as leaves; ``None`` if they overlap."""
    root: Branch = {}
    for number, path in enumerate(paths):
        branch = root
        for step in path[:-1]:
            below = branch.setdefault(step, {})
            if isinstance(below, int) or _has_overlap(branch):
                return None
            branch = below
        if path[-1] in branch:
            return None
        branch[path[-1]] = number
        if _has_overlap(branch):
            return None
    return root


def _has_overlap(branch: Branch) -> bool:
    """Return whether ``[*]`` has siblings, which would overlap with it."""
    return EVERY in branch and len(branch) > 1


def _check_keys(container: Any, keys: Sequence[str]) -> None:
    """Raise ``LookupError`` unless ``container`` is a dict with all keys; defaultdicts add none."""
    if not isinstance(container, dict) or any(key not in container for key in keys):
        raise LookupError


def _missing(paths: Sequence[Path], item: Any) -> MissingColumnError:
    try:
        resolve(item, paths)
    except MissingColumnError as error:
        return error
    return MissingColumnError(",".join(map(path_text, paths)), "it changed while it was read")


def _failed(
    paths: Sequence[Path], item: Any, number: int, position: int, error: Exception
) -> SelectedElementError:
    return element_failed(resolve(item, [paths[number]])[position], error)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)


class _SourceWriter:
    """Generates the source of one selector. Each branch of the path tree has its own variables."""

    def __init__(self, paths: Sequence[Path], tree: Branch) -> None:
        self._paths, self._tree = paths, tree
        self._loops = [path.count(EVERY) for path in paths]
        # The paths whose values are the elements of one list, in order.
        self._whole = {
            at for at, path in enumerate(paths) if EVERY not in path[:-1] and path[-1] is EVERY
        }
        self._variables: dict[int, str] = {}

    def lines(self) -> Iterator[str]:
        """Yield the lines of the source."""
        self._variables[id(self._tree)] = "item"
        yield "def get(item):"
        yield from _indented(self._shortcut())
        yield from _indented(self._resolve())
        values = [f"v{at}" if loops else f"[v{at}]" for at, loops in enumerate(self._loops)]
        alone = len(values) == 1 and not self._loops[0]
        yield f"    return {'v0' if alone else ' + '.join(values)}"
        yield "def mapper(fn):"
        yield "    def mapped(item):"
        yield from _indented(_indented(self._mapped()))
        yield "    return mapped"

    def _mapped(self) -> Iterator[str]:
        yield from self._resolve()
        for number in range(len(self._paths)):
            yield from self._apply(number)
        yield from self._rebuild(self._tree, looped=False)
        yield "return item"

    def _name(self, branch: Branch) -> str:
        return self._variables.setdefault(id(branch), f"c{len(self._variables)}")

    def _shortcut(self) -> Iterator[str]:
        """Yield code that reads a single element in one expression.

        Only dicts can be indexed by texts. Lists need a check, because texts can be indexed by
        integers.
        """
        if len(self._paths) > 1 or self._loops[0]:
            return
        lists, element = [], "item"
        for depth, step in enumerate(self._paths[0]):
            if isinstance(step, int):
                lists.append(f"type(at{depth} := {element}) is list")
                element = f"at{depth}"
            element += f"[{step!r}]"
        yield "try:"
        yield f"    if {' and '.join(lists) or 'True'}:"
        yield f"        return {element}"
        yield "except (LookupError, TypeError):"
        yield "    raise missing(item) from None"

    def _resolve(self) -> Iterator[str]:
        yield from (f"v{at} = []" for at, loops in enumerate(self._loops) if loops)
        yield "try:"
        yield from _indented(self._descend(self._tree))
        yield "except LookupError:"
        yield "    raise missing(item) from None"

    def _descend(self, branch: Branch) -> Iterator[str]:
        name = self._name(branch)
        yield from self._checks(name, branch)
        for step, below in branch.items():
            element = name if step is EVERY else f"{name}[{step!r}]"
            if not isinstance(below, int):
                inner = self._name(below)
                if step is EVERY:
                    yield f"for {inner} in {name}:"
                    yield from _indented(self._descend(below))
                else:
                    yield f"{inner} = {element}"
                    yield from self._descend(below)
            elif step is EVERY:
                yield f"v{below} += {name}"
            else:
                yield (
                    f"v{below}.append({element})" if self._loops[below] else f"v{below} = {element}"
                )

    def _checks(self, name: str, branch: Branch) -> Iterator[str]:
        keys = tuple(step for step in branch if isinstance(step, str))
        if keys:
            yield f"if type({name}) is not dict: check({name}, {keys!r})"
        if len(keys) < len(branch):
            yield f"if type({name}) is not list and type({name}) is not tuple:"
            yield f"    if not isinstance({name}, (list, tuple)): raise LookupError"

    def _apply(self, number: int) -> Iterator[str]:
        """Yield code that calls the function for a path; an error names the element's path."""
        value, position = f"v{number}", "0"
        if self._loops[number]:
            yield "done = []"
            position = "len(done)"
            calls = [f"for value in {value}:", "    done.append(fn(value))"]
        else:
            calls = [f"{value} = fn({value})"]
        yield "try:"
        yield from _indented(calls)
        yield "except Exception as error:"
        yield f"    raise failed(item, {number}, {position}, error) from error"
        if self._loops[number]:
            yield f"{value} = done" if number in self._whole else f"{value} = iter(done)"

    def _rebuild(self, branch: Branch, *, looped: bool) -> Iterator[str]:
        """Yield code that puts values in place, innermost first; each container is copied once."""
        name = self._name(branch)
        if EVERY in branch:
            yield from self._rebuild_every(name, branch[EVERY])
            return
        for step, below in branch.items():
            if not isinstance(below, int):
                if looped:  # the variable still has the value of the last pass
                    yield f"{self._name(below)} = {name}[{step!r}]"
                yield from self._rebuild(below, looped=looped)
        keyed = all(isinstance(step, str) for step in branch)
        if keyed:
            yield f"{name} = {{**{name}}} if type({name}) is dict else copied({name})"
        else:
            yield f"model = {name}"
            yield f"{name} = [*model]"
        for step, below in branch.items():
            yield f"{name}[{step!r}] = {self._value(below)}"
        if not keyed:
            yield f"if type(model) is not list: {name} = rebuilt(model, {name})"

    def _rebuild_every(self, name: str, below: "Branch | int") -> Iterator[str]:
        variable = f"{name}_made"
        if isinstance(below, int):
            whole = below in self._whole
            yield (
                f"{variable} = v{below}"
                if whole
                else f"{variable} = [next(v{below}) for _ in {name}]"
            )
        else:
            inner = self._name(below)
            yield f"{variable} = []"
            yield f"for {inner} in {name}:"
            yield from _indented(self._rebuild(below, looped=True))
            yield f"    {variable}.append({inner})"
        yield f"{name} = {variable} if type({name}) is list else rebuilt({name}, {variable})"

    def _value(self, below: "Branch | int") -> str:
        if not isinstance(below, int):
            return self._name(below)
        return f"next(v{below})" if self._loops[below] else f"v{below}"

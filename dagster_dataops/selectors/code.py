"""Selectors as Python source: as fast as if each had been written out by hand.

A selector whose paths name no element twice becomes two functions:

    get(item)                resolve: every element by nested indexing, checked
    mapper(fn)(item)         resolve; then call fn, path by path; then copy along the paths

Values are local variables, one a path: the element itself, or a list of elements below ``[*]``.
What is missing raises ``LookupError`` in the first part, and `resolving` is asked what it is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import MissingColumnError, SelectedElementError
from dagster_dataops.selectors.grammar import EVERY, Path, Step, written
from dagster_dataops.selectors.resolving import copied, element_failed, rebuilt, resolve

MOST_NESTED: Final = 8  # loops in one another; Python itself allows 20

Branch: TypeAlias = "dict[Step, Branch | int]"


def compilable(paths: Sequence[Path]) -> bool:
    """Whether no two paths can name the same element, or one inside another's."""
    deep = any(path.count(EVERY) > MOST_NESTED or len(path) > 4 * MOST_NESTED for path in paths)
    return not deep and len(paths) <= 8 * MOST_NESTED and _branches(paths) is not None


def _branches(paths: Sequence[Path]) -> "Branch | None":
    """Return the paths as a tree with their numbers as leaves; ``None`` if they overlap."""
    root: Branch = {}
    for number, path in enumerate(paths):
        branch = root
        for step in path[:-1]:
            below = branch.setdefault(step, {})
            if isinstance(below, int) or _mixed(branch):
                return None
            branch = below
        if path[-1] in branch:
            return None
        branch[path[-1]] = number
        if _mixed(branch):
            return None
    return root


def _mixed(branch: Branch) -> bool:
    """Whether ``[*]`` stands beside other steps, whose elements it includes."""
    return EVERY in branch and len(branch) > 1


def compiled(paths: Sequence[Path]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return (get, mapper) of `compilable` paths; ``mapper(fn)`` is a function of an item.

    They raise `MissingColumnError` where an element is missing, before ``fn`` is called.
    """
    names: dict[str, Any] = {
        "check": _check_keys,
        "copied": copied,
        "failed": partial(_failed, paths),
        "missing": partial(_missing, paths),
        "rebuilt": rebuilt,
    }
    source = "\n".join(_Writer(paths).lines())
    exec(compile(source, "<selector>", "exec"), names)  # noqa: S102 - keys stand in it as literals
    return names["get"], names["mapper"]


def _check_keys(container: Any, keys: Sequence[str]) -> None:
    """Refuse what is no dict, or would make the keys up that are missing."""
    if not isinstance(container, dict) or any(key not in container for key in keys):
        raise LookupError


def _missing(paths: Sequence[Path], item: Any) -> MissingColumnError:
    try:
        resolve(item, paths)
    except MissingColumnError as error:
        return error
    return MissingColumnError(",".join(map(written, paths)), "it changed while it was read")


def _failed(
    paths: Sequence[Path], item: Any, number: int, position: int, error: Exception
) -> SelectedElementError:
    return element_failed(resolve(item, [paths[number]])[position], error)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)


class _Writer:
    """Writes the source of one selector. Branches of the tree have variables of their own."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._tree = _branches(paths) or {}
        self._loops = [path.count(EVERY) for path in paths]
        self._made: dict[int, str] = {}
        # One path, one loop that goes on below [*]: the function is called as elements are rebuilt.
        self._at_once = self._loops == [1] and paths[0][-1] is not EVERY

    def lines(self) -> Iterator[str]:
        """Yield the source."""
        self._made[id(self._tree)] = "item"
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
        if not self._at_once:
            for number in range(len(self._paths)):
                yield from self._apply(number)
        yield from self._rebuild(self._tree, looped=False)
        yield "return item"

    def _name(self, branch: Branch) -> str:
        return self._made.setdefault(id(branch), f"c{len(self._made)}")

    def _shortcut(self) -> Iterator[str]:
        """Yield what finds a single element in one expression.

        Nothing but a dict can be indexed by a text; a list must be told from a text.
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
        value = f"v{number}"
        if not self._loops[number]:
            yield from self._guarded([f"{value} = fn({value})"], "0", number)
            return
        yield "done = []"
        loop = [f"for value in {value}:", "    done.append(fn(value))"]
        yield from self._guarded(loop, "len(done)", number)
        yield f"{value} = done" if self._single(number) else f"{value} = iter(done)"

    def _guarded(self, lines: list[str], position: str, number: int = 0) -> Iterator[str]:
        """Yield lines that call the function; what it raises is told with the element's path."""
        yield "try:"
        yield from _indented(lines)
        yield "except Exception as error:"
        yield f"    raise failed(item, {number}, {position}, error) from error"

    def _single(self, number: int) -> bool:
        """Whether the values of a path are one a pass of one loop, which serves no other path."""
        path = self._paths[number]
        shared = path[: path.index(EVERY) + 1]
        others = (other for at, other in enumerate(self._paths) if at != number)
        return self._loops[number] == 1 and all(one[: len(shared)] != shared for one in others)

    def _rebuild(self, branch: Branch, *, looped: bool) -> Iterator[str]:
        """Put values in place, innermost first; each container is copied once, under its name."""
        name = self._name(branch)
        if EVERY in branch:
            yield from self._rebuild_every(name, branch[EVERY])
            return
        for step, below in branch.items():
            if not isinstance(below, int):
                if looped:  # the variable holds what the last pass found
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
        made = f"{name}_made"
        if isinstance(below, int):
            flat = self._loops[below] == 1
            yield f"{made} = v{below}" if flat else f"{made} = [next(v{below}) for _ in {name}]"
        else:
            inner = self._name(below)
            numbers = list(_numbers(below))
            yield f"{made} = []"
            if len(numbers) == 1 and self._single(numbers[0]):
                loop = [f"for {inner}, one in zip({name}, v{numbers[0]}):"]
            else:
                loop = [f"for {inner} in {name}:"]
            loop += ["    one = fn(one)"] if self._at_once else []
            loop += _indented(self._rebuild(below, looped=True))
            loop.append(f"    {made}.append({inner})")
            yield from self._guarded(loop, f"len({made})") if self._at_once else loop
        yield f"{name} = {made} if type({name}) is list else rebuilt({name}, {made})"

    def _value(self, below: "Branch | int") -> str:
        if not isinstance(below, int):
            return self._name(below)
        if not self._loops[below]:
            return f"v{below}"
        return "one" if self._single(below) else f"next(v{below})"


def _numbers(branch: Branch) -> Iterator[int]:
    for below in branch.values():
        if isinstance(below, int):
            yield below
        else:
            yield from _numbers(below)

"""The fingerprint of a stream, and the states that hold it beside a position."""

import types
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from dagster_dataops.errors import StreamStateError
from dagster_dataops.foundation.hashing.code import code_digest, code_facts
from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.streams.core.item_failures import OnError
from dagster_dataops.streams.core.stage import UNNAMED, Stage, State
from dagster_dataops.streams.identity.held_objects import HeldObjects, is_large

_MAX_HELD: Final = 16  # objects that cannot be referred to weakly, such as those with slots alone

_Key: TypeAlias = tuple[int, ...]


class _Change(NamedTuple):
    parts: tuple[Callable[[], Any], ...]
    before: str
    after: str


class ChangedFunctions:
    """The digests of functions before and after a stream of this process called them.

    Another stream of the same functions has the digest from before, as it has in another process;
    unless somebody else has changed them since. The functions are not kept alive, except the last
    ones whose class has no weak references.
    """

    def __init__(self) -> None:
        self._changes: dict[_Key, _Change] = {}
        self._held: deque[_Key] = deque()

    def note(self, functions: Mapping[str, Any], before: str, after: str) -> None:
        """Note that a stream has changed functions."""
        parts = list(_parts(functions.values()))
        key = tuple(map(id, parts))
        references = tuple(self._reference(part, key) for part in parts)
        self._changes[key] = _Change(references, before, after)

    def _reference(self, part: Any, key: _Key) -> Callable[[], Any]:
        try:
            return weakref.ref(part, lambda _: self._forget(key))
        except TypeError:
            self._hold(key)
            return partial(_same, part)

    def _hold(self, key: _Key) -> None:
        if key not in self._held:
            self._held.append(key)
        if len(self._held) > _MAX_HELD:
            self._forget(self._held.popleft())

    def _forget(self, key: _Key) -> None:
        self._changes.pop(key, None)

    def before(self, functions: Mapping[str, Any], present: str) -> str:
        """Return the digest that functions had, given the present one."""
        parts = list(_parts(functions.values()))
        change = self._changes.get(tuple(map(id, parts)))
        if change is None or change.after != present:
            return present
        same = all(reference() is part for reference, part in zip(change.parts, parts, strict=True))
        return change.before if same else present


def _same(part: Any) -> Any:
    return part


def _parts(values: Iterable[Any]) -> Iterator[Any]:
    """Yield functions; a bound method is made anew each time, so its object and its function."""
    for value in values:
        if isinstance(value, tuple):
            yield from _parts(value)
        elif isinstance(value, types.MethodType):
            yield from (value.__self__, value.__func__)
        else:
            yield value


VERSION: Final = 3
READERS: Final[Mapping[int, Callable[[Any], State]]] = {
    2: lambda position: {UNNAMED: position},
    VERSION: lambda position: position,
}
"""For each version of states that is read: returns a position in the form of today."""
_CHANGED: Final = ChangedFunctions()
_WEIGHTED: Final = frozenset({"blend", "sample"})  # their positions do not depend on weights

StageFingerprint: TypeAlias = Mapping[str, str]
"""The fingerprint of a stage: its name (``stage``); digests of ``options``, ``code``, ``data``."""


def fingerprint(stage: Stage, on_error: OnError, held: HeldObjects) -> list[dict[str, str]]:
    """Return the name of each stage with digests of its options, its code and its data.

    Args:
        stage: The last stage.
        on_error: The handling of failed items.
        held: The objects of functions that count as other ones.

    Raises:
        StreamSourceError: A source cannot be read.
    """
    counted = {"stage": "stream", "on_error": "raise" if on_error == "raise" else "skip"}
    return [*(_fingerprint_parts(part, held) for part in _counting(stage)), counted]


def see_code(stage: Stage, held: HeldObjects) -> None:
    """Take the digests of the functions of all stages, before the first of them is called.

    A function may keep something between two calls: a model that the first call loads, a cache, a
    counter, a list of its closure, a dict of its module. If its digest were taken later, no other
    process could load a state. A digest that takes long, because the function holds much, is taken
    with the first state.
    """
    for part in _counting(stage):
        if part.code_seen is None:
            with suppress(Exception):  # the first state raises it again
                functions = _options_and_code(part)[1]
                if functions and not is_large(functions):
                    _code_of(part, functions, held)


def changed_since_seen(stage: Stage, held: HeldObjects) -> list[str]:
    """Return the stages whose functions have changed what they keep since `see_code`."""
    return [
        f"stage {number} ({part.name})"
        for number, part in enumerate(_counting(stage), 1)
        if _has_changed(part, held)
    ]


def _has_changed(stage: Stage, held: HeldObjects) -> bool:
    functions = _options_and_code(stage)[1]
    if stage.code_seen is None or is_large(functions):
        return False
    try:
        present = _present_code(functions, held)
    except Exception:  # noqa: BLE001 - a thread may change it at this moment
        return False
    if present == stage.code_seen:
        return False
    _CHANGED.note(functions, stage.code_seen, present)
    return True


def earlier_codes(stage: Stage, held: HeldObjects) -> list[str]:
    """Return the code of each stage as version 0.2 has compared it.

    It is empty for a stage without code, and if that version left something out, see `code_facts`.
    """
    return [*(_earlier_code(_options_and_code(part)[1], held) for part in _counting(stage)), ""]


def _earlier_code(functions: dict[str, Any], held: HeldObjects) -> str:
    codes: list[str] = []

    def earlier(target: Any) -> str:
        code = code_facts(target, older=True)
        codes.append("" if code.unknown else code.digest)
        return codes[-1]

    combined = digest(held.originals(functions), earlier)
    return combined if functions and all(codes) else ""


def with_present_code(kept: Any, stages: Sequence[StageFingerprint], earlier: Sequence[str]) -> Any:
    """Return stored stages with the present code where version 0.2 would have stored theirs.

    Args:
        kept: The stored stages.
        stages: The present ones.
        earlier: The `earlier_codes` of the present ones.
    """
    if not isinstance(kept, list) or len(kept) != len(stages):
        return kept
    return [
        {**old, "code": new["code"]}
        if code and isinstance(old, Mapping) and old.get("code") == code
        else old
        for old, new, code in zip(kept, stages, earlier, strict=True)
    ]


def definition(stage: Stage) -> dict[str, str]:
    """Return digests of the options and of the code of all stages, without reading any data."""
    parts = [_definition_parts(part, HeldObjects()) for part in _counting(stage)]
    options = [[part["stage"], part["options"]] for part in parts]
    return {"options": digest(options), "code": digest([part.get("code") for part in parts])}


def _counting(stage: Stage) -> Iterator[Stage]:
    """Yield the stages that decide about the items."""
    return (part for part in stage.ordered() if not part.transparent)


def _fingerprint_parts(stage: Stage, held: HeldObjects) -> dict[str, str]:
    parts = _definition_parts(stage, held)
    identity = stage.identity()
    if identity is not None:
        parts["data"] = digest(identity)
    return parts


def _definition_parts(stage: Stage, held: HeldObjects) -> dict[str, str]:
    options, functions = _options_and_code(stage)
    parts = {"stage": stage.name, "options": digest(options)}
    if functions:
        parts["code"] = _code_of(stage, functions, held)
    return parts


def _code_of(stage: Stage, functions: dict[str, Any], held: HeldObjects) -> str:
    """Return the digest of the functions of a stage, as it was when it was first taken."""
    if stage.code_seen is None:
        stage.code_seen = _CHANGED.before(functions, _present_code(functions, held))
    return stage.code_seen


def _present_code(functions: dict[str, Any], held: HeldObjects) -> str:
    return digest(held.originals(functions), code_digest)


def _options_and_code(stage: Stage) -> tuple[dict[str, Any], dict[str, Any]]:
    options: dict[str, Any] = {}
    functions: dict[str, Any] = {}
    for name, value in stage.options().items():
        (functions if _is_code(value) else options)[name] = value
    return options, functions


def _is_code(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_code, value))
    return callable(value) and not isinstance(value, type)


def _as_stored(stages: Any) -> Any:
    return stages


def unwrap_state(
    state: Any,
    stages: Sequence[StageFingerprint],
    *,
    across_weights: bool = False,
    present: Callable[[Any], Any] = _as_stored,
) -> dict[str, Any]:
    """Check that a state belongs to ``stages`` and return its content.

    Args:
        state: The state.
        stages: The fingerprint of each stage, sources first.
        across_weights: Whether stages that draw by weight may have other options.
        present: Returns stored stages in the form of this version.
    """
    if not isinstance(state, Mapping) or not {"version", "stages", "position"} <= set(state):
        msg = "this is not the state of a stream; pass the result of state_dict()"
        raise StreamStateError(msg)
    reader = READERS.get(version) if type(version := state["version"]) is int else None
    if reader is None:
        known = " and ".join(map(str, READERS))
        msg = f"it has version {version!r}; this package reads versions {known}"
        raise StreamStateError(msg)
    kept = present(state["stages"])
    kept = _with_weights(kept, stages) if across_weights else kept
    fault = difference(kept, stages)
    if fault:
        msg = f"it belongs to another stream: {fault}. Start afresh, or undo the change"
        raise StreamStateError(msg)
    return {**state, "position": reader(state["position"])}


def _with_weights(kept: Any, stages: Sequence[StageFingerprint]) -> Any:
    """Return stored stages with the current options of those that draw by weight."""
    if not isinstance(kept, list) or len(kept) != len(stages):
        return kept
    return [
        {**old, "options": new.get("options")}
        if isinstance(old, Mapping) and old.get("stage") == new["stage"] in _WEIGHTED
        else old
        for old, new in zip(kept, stages, strict=True)
    ]


def difference(kept: Any, stages: Sequence[StageFingerprint]) -> str:
    """Describe the first difference between stored and current stages; empty if there is none."""
    if not isinstance(kept, list) or not all(isinstance(parts, Mapping) for parts in kept):
        return "its description of the stages is damaged"
    names = [[str(parts.get("stage")) for parts in description] for description in (kept, stages)]
    if names[0] != names[1]:
        return f"its stages are {' > '.join(names[0])}, here they are {' > '.join(names[1])}"
    for number, (old, new) in enumerate(zip(kept, stages, strict=True), 1):
        different = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
        if different:
            aspects = " and ".join(different)
            return f"stage {number} ({new['stage']}) differs in its {aspects}"
    return ""

"""The state of a stream as a whole: a version, what it belongs to, and the position."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import StreamStateError

VERSION: Final = 1

Parts: TypeAlias = Mapping[str, str]
"""What a stage is, by aspect: ``stage``, ``options``, ``code``, ``data``."""


def enveloped(stages: Sequence[Parts], position: Any, **more: Any) -> dict[str, Any]:
    """Return a state.

    Args:
        stages: What the stream consists of, sources first.
        position: Where it stands.
        more: What else to keep.
    """
    return {
        "version": VERSION,
        "stages": [dict(parts) for parts in stages],
        "position": position,
        **more,
    }


def opened(state: Any, stages: Sequence[Parts]) -> dict[str, Any]:
    """Return the content of a state that belongs to ``stages``.

    Raises:
        StreamStateError: It is no state, of another version, or of another stream.
    """
    if not isinstance(state, Mapping) or not {"version", "stages", "position"} <= set(state):
        msg = "this is no state of a stream; give what state_dict() returned"
        raise StreamStateError(msg)
    if state["version"] != VERSION:
        msg = f"it has version {state['version']!r}; this package reads version {VERSION}"
        raise StreamStateError(msg)
    found = difference(state["stages"], stages)
    if found:
        msg = f"it belongs to another stream: {found}. Start anew, or restore what was changed"
        raise StreamStateError(msg)
    return dict(state)


def difference(kept: Any, stages: Sequence[Parts]) -> str:
    """Return in what a stream differs from the one of ``kept`` stages; empty if in nothing."""
    if not isinstance(kept, list) or not all(isinstance(parts, Mapping) for parts in kept):
        return "what it says of its stages is damaged"
    names = [[str(parts.get("stage")) for parts in one] for one in (kept, stages)]
    if names[0] != names[1]:
        return f"its stages are {' > '.join(names[0])}, here they are {' > '.join(names[1])}"
    for number, (old, new) in enumerate(zip(kept, stages, strict=True), 1):
        different = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
        if different:
            aspects = " and ".join(different)
            return f"stage {number} ({new['stage']}) differs in its {aspects}"
    return ""

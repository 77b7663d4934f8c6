"""The state of a whole stream: a version, the fingerprint of its stages, and the position."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import StreamStateError

VERSION: Final = 2

StageFingerprint: TypeAlias = Mapping[str, str]
"""The fingerprint of a stage: its name (``stage``); digests of ``options``, ``code``, ``data``."""


def wrap_state(stages: Sequence[StageFingerprint], position: Any, **more: Any) -> dict[str, Any]:
    """Return the state of a stream as a JSON object.

    Args:
        stages: The fingerprint of each stage, sources first.
        position: The position of the last stage.
        more: Further entries.
    """
    return {
        "version": VERSION,
        "stages": [dict(parts) for parts in stages],
        "position": position,
        **more,
    }


_WEIGHTED: Final = frozenset({"blend", "sample"})  # their positions do not depend on weights


def unwrap_state(
    state: Any, stages: Sequence[StageFingerprint], *, across_weights: bool = False
) -> dict[str, Any]:
    """Check that a state belongs to ``stages`` and return its content.

    Args:
        state: The state.
        stages: The fingerprint of each stage, sources first.
        across_weights: Whether stages that draw by weight may have other options.

    Raises:
        StreamStateError: It is not a stream state, has another version or belongs to another
            stream.
    """
    if not isinstance(state, Mapping) or not {"version", "stages", "position"} <= set(state):
        msg = "this is not the state of a stream; pass the result of state_dict()"
        raise StreamStateError(msg)
    if state["version"] != VERSION:
        msg = f"it has version {state['version']!r}; this package reads version {VERSION}"
        raise StreamStateError(msg)
    kept = _with_weights(state["stages"], stages) if across_weights else state["stages"]
    found = difference(kept, stages)
    if found:
        msg = f"it belongs to another stream: {found}. Start afresh, or undo the change"
        raise StreamStateError(msg)
    return dict(state)


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
    names = [[str(parts.get("stage")) for parts in one] for one in (kept, stages)]
    if names[0] != names[1]:
        return f"its stages are {' > '.join(names[0])}, here they are {' > '.join(names[1])}"
    for number, (old, new) in enumerate(zip(kept, stages, strict=True), 1):
        different = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
        if different:
            aspects = " and ".join(different)
            return f"stage {number} ({new['stage']}) differs in its {aspects}"
    return ""

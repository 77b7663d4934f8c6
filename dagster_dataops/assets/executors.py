"""Which executor runs the steps: in the run's process, or each in a process that starts warm."""

from typing import Any, Final, Literal, TypeAlias

import dagster as dg

Executor: TypeAlias = Literal["in_process", "multiprocess"] | dg.ExecutorDefinition

_FORKSERVER: Final = {
    "start_method": {"forkserver": {"preload_modules": ["dagster_dataops.assets.preload"]}}
}


def executor_of(chosen: Executor) -> dg.ExecutorDefinition:
    """Return the executor by its name, or one of the user's own as it is.

    Raises:
        dg.DagsterInvalidDefinitionError: There is none of that name.
    """
    if isinstance(chosen, dg.ExecutorDefinition):
        return chosen
    known: dict[str, Any] = {"in_process": dg.in_process_executor, "multiprocess": _warm}
    if chosen not in known:
        text = f"executor {chosen!r} is neither {' nor '.join(known)} nor an ExecutorDefinition"
        raise dg.DagsterInvalidDefinitionError(text)
    executor: dg.ExecutorDefinition = known[chosen]
    return executor


# One object for all definitions: those that are merged need the very same.
_warm: Final = dg.multiprocess_executor.configured(_FORKSERVER, name="multiprocess")

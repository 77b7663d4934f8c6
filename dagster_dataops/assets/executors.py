"""Executors of steps: the process of the run, or a preloaded process per step."""

from typing import Any, Final, Literal, TypeAlias

import dagster as dg

Executor: TypeAlias = Literal["in_process", "multiprocess"] | dg.ExecutorDefinition

_FORKSERVER: Final = {
    "start_method": {"forkserver": {"preload_modules": ["dagster_dataops.assets.preload"]}}
}


def executor_of(chosen: Executor) -> dg.ExecutorDefinition:
    """Return the executor of a name; an executor definition is returned unchanged.

    Raises:
        dg.DagsterInvalidDefinitionError: The name is unknown.
    """
    if isinstance(chosen, dg.ExecutorDefinition):
        return chosen
    known: dict[str, Any] = {"in_process": dg.in_process_executor, "multiprocess": _warm}
    if chosen not in known:
        text = f"executor {chosen!r} is neither {' nor '.join(known)} nor an ExecutorDefinition"
        raise dg.DagsterInvalidDefinitionError(text)
    executor: dg.ExecutorDefinition = known[chosen]
    return executor


# One object for all definitions: merged definitions need the same executor object.
_warm: Final = dg.multiprocess_executor.configured(_FORKSERVER, name="multiprocess")

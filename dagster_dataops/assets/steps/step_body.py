"""The body of a step: `DataOpsTranslator.execute`, or a function of the user, around its operators.

What a body yields is checked: a result that it leaves out would be on disk, but Dagster would show
the assets downstream as up to date with an older one.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, Final, TypeAlias

import dagster as dg

from dagster_dataops.assets.metadata.result_metadata import written_once
from dagster_dataops.assets.planning.execute_hook import ExecuteHook
from dagster_dataops.assets.runtime.resource import DataOpsResource, resource_of
from dagster_dataops.assets.runtime.step_context import (
    StepContext,
    StepEvent,
    Work,
    assign,
    is_direct,
)
from dagster_dataops.assets.runtime.termination import ended_by_interrupts

Body: TypeAlias = Callable[..., Any]
_NAMED: Final = Parameter.POSITIONAL_OR_KEYWORD
_EVENTS: Final = (
    dg.MaterializeResult,
    dg.AssetCheckResult,
    dg.AssetMaterialization,
    dg.AssetObservation,
    dg.ExpectationResult,
    dg.Output,
)
_RESOURCE: Final[Any] = dg.ResourceParam[Any]  # type: ignore[misc]  # an alias of Annotated
_SHOWN: Final = 200  # characters of a value in an error
_UNNAMED: Final = "unnamed"  # stands for an event that may be the result of any asset
_WRITE: Final = "write `yield from dataops.run(context)`"


def body_of(resource_key: str, hook: ExecuteHook | None, *, held: bool = False) -> Body:
    """Return the body of a step that the package makes: it calls the hook, or runs the operators.

    Its arguments after the context are resources, by key.

    With ``held``, the `DataOpsResource` is no argument: the IO manager of the step has it.
    """

    def body(context: Any, **resources: Any) -> Any:
        dataops = resource_of(context, resource_key) if held else resources.pop(resource_key)
        return dataops.run(context) if hook is None else hook(context, dataops, **resources)

    others = () if hook is None else hook.resource_keys
    resource_parameter = (
        [] if held else [Parameter(resource_key, _NAMED, annotation=DataOpsResource)]
    )
    parameters = [
        Parameter("context", _NAMED),
        *resource_parameter,
        *(Parameter(key, _NAMED, annotation=_RESOURCE) for key in others),
    ]
    body.__name__ = "run" if hook is None else "execute"
    body.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return body


def with_resource(function: Callable[[Any, DataOpsResource], Any], resource_key: str) -> Body:
    """Return a function of a context and the resource; the resource is an argument by its key.

    Dagster then takes it from the context, or from the caller in a unit test.
    """

    def step(context: Any, **resources: Any) -> Iterator[Any]:
        yield from function(context, resources[resource_key])

    parameters = [
        Parameter("context", _NAMED),
        Parameter(resource_key, _NAMED, annotation=DataOpsResource),
    ]
    step.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return step


def step_function(
    body: Body,
    work_of: Callable[[Mapping[str, Any], Mapping[str, Any]], Work],
    inputs: Sequence[str] = (),
    annotation: Any = Parameter.empty,
) -> Body:
    """Return the function of a step for Dagster: ``body``, with the work of the step assigned.

    Its signature is that of ``body`` plus the inputs that IO managers load.

    ``work_of`` returns the work, given the launch config and the loaded inputs.
    """

    def step(context: Any, **arguments: Any) -> Iterator[Any]:
        loaded = {name: arguments.pop(name) for name in inputs if name in arguments}
        asset = isinstance(context, dg.AssetExecutionContext)
        config = (context.op_execution_context if asset else context).op_config
        events = body_events(body, context, work_of(config, loaded), arguments)
        yield from written_once(context, events, direct=is_direct(context))

    context, *resources = inspect.signature(body).parameters.values()
    loaded = [Parameter(name, _NAMED, annotation=annotation) for name in inputs]
    step.__name__, step.__doc__ = body.__name__, body.__doc__
    step.__signature__ = Signature([context, *loaded, *resources])  # type: ignore[attr-defined]
    return step


def body_events(
    body: Body, context: StepContext, work: Work, resources: Mapping[str, Any]
) -> Iterator[Any]:
    """Yield the events of a body, which runs the work of its step.

    Raises:
        Failure: The body yields something else than events, did not run all operators, or left out
            results. Or the run is being terminated, and the step has a retry policy.
    """
    watched = _WatchedWork(work)
    assign(context, watched)
    yielded: list[Any] = []
    with ended_by_interrupts(context):
        for event in _each(body(context, **resources)):
            if not isinstance(event, _EVENTS):
                known = ", ".join(kind.__name__ for kind in _EVENTS)
                text = f"yielded a value of type {type(event).__name__}, {event!r}"[:_SHOWN]
                raise _failure(body, f"{text}; it yields {known}: {_WRITE}")
            yielded.append(_facts(event))
            yield event
    _check_run(body, context, watched, yielded)


def _each(returned: Any) -> Iterable[Any]:
    """Return the events that a body returned: many, one or none."""
    if returned is None:
        return ()
    single = isinstance(returned, (*_EVENTS, str, Mapping)) or not isinstance(returned, Iterable)
    return [returned] if single else returned


class _WatchedWork:
    """The work of a step, and how far it was run.

    Attributes:
        begun: Whether the body asked for its events.
        ended: Whether the body took all of them.
        error: The error that ended them.
        events: What identifies each of them, as `_facts` returns it.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self.begun = False
        self.ended = False
        self.error: Exception | None = None
        self.events: list[Any] = []

    def run(self, context: StepContext, dataops: Any) -> Iterator[StepEvent]:
        """Run the operators, as `Work.run`."""
        self.begun = True
        return self._events(context, dataops)

    def _events(self, context: StepContext, dataops: Any) -> Iterator[StepEvent]:
        try:
            for event in self._work.run(context, dataops):
                self.events.append(_facts(event))
                yield event
        except Exception as error:
            self.error = error
            raise
        self.ended = True


def _facts(event: Any) -> Any:
    """Return what identifies a result or the result of a check; ``None`` for another event."""
    if isinstance(event, dg.MaterializeResult):
        return event.asset_key or _UNNAMED
    if isinstance(event, dg.Output):
        return _UNNAMED
    if isinstance(event, dg.AssetCheckResult):
        return (event.asset_key, event.check_name)
    return None


def _check_run(
    body: Body, context: StepContext, watched: _WatchedWork, yielded: Sequence[Any]
) -> None:
    if watched.error is not None:
        error = watched.error
        text = f"caught {type(error).__name__}: {error}; raise it again, because its assets have no"
        raise _failure(body, f"{text} new result") from error
    if watched.begun and not watched.ended:
        raise _failure(body, f"did not run all operators of its step; {_WRITE}")
    if not watched.begun and not yielded:
        text = f"{body.__name__} ran no operator: nothing is materialized"
        context.log.warning(text)
    if not isinstance(context, dg.AssetExecutionContext) or _UNNAMED in yielded:
        return  # an op has no results of assets
    left_out = [
        _said(event) for event in watched.events if event is not None and event not in yielded
    ]
    if left_out:
        text = f"ran the operators, but did not yield {', '.join(left_out)}; {_WRITE}"
        raise _failure(body, text)


def _said(facts: Any) -> str:
    if isinstance(facts, dg.AssetKey):
        return f"the result of {facts.to_user_string()}"
    key, name = facts
    return f"the check {name} of {key.to_user_string()}"


def _failure(body: Body, text: str) -> dg.Failure:
    return dg.Failure(f"{body.__name__} {text}", allow_retries=False)

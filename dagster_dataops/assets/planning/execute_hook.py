"""ExecuteHook: the method `execute` of a translator or component, checked when definitions load."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, Final

from dagster_dataops.assets.planning.asset_options import AssetOptions, resource_key_of
from dagster_dataops.assets.planning.translator import DataOpsTranslator
from dagster_dataops.errors import PipelineDefinitionError

_ARGUMENTS: Final = 2  # context and dataops
_TAKES: Final = (
    "define it as `def execute(self, context, dataops)` with "
    "`yield from dataops.run(context)`; further arguments without a default are keys of resources"
)
_NAMED: Final = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class ExecuteHook:
    """A method around the operators of each step.

    Attributes:
        call: The bound method.
        resource_keys: Its arguments after ``context`` and ``dataops``: keys of resources.
    """

    call: Callable[..., Any]
    resource_keys: tuple[str, ...] = ()

    def __call__(self, context: Any, dataops: Any, **resources: Any) -> Any:
        """Return the events of a step, or what else the method returns."""
        return self.call(context, dataops, **resources)


def execute_hook(options: AssetOptions, pipeline: str) -> ExecuteHook | None:
    """Return the method `execute` of the translator; ``None`` if it is that of the base class.

    Raises:
        PipelineDefinitionError: The method cannot be the body of a step.
    """
    translator = options.get("dagster_dataops_translator")
    call: Any = getattr(translator, "execute", None)
    if call is None or getattr(call, "__func__", None) is DataOpsTranslator.execute:
        return None
    name = f"execute of {type(translator).__name__}"
    if not callable(call):
        raise PipelineDefinitionError(pipeline, f"{name} is {call!r}, not a method; {_TAKES}")
    if inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call):
        raise PipelineDefinitionError(pipeline, f"{name} is asynchronous; {_TAKES}")
    signature = inspect.signature(call)
    first, others = _divided(list(signature.parameters.values()))
    keys = tuple(
        parameter.name
        for parameter in others
        if parameter.kind in _NAMED and parameter.default is Parameter.empty
    )
    wrong = [key for key in keys if key in {resource_key_of(options), "config", "context"}]
    if not first or wrong or len(keys) < sum(_is_required(parameter) for parameter in others):
        raise PipelineDefinitionError(pipeline, f"{name} takes {signature}; {_TAKES}")
    return ExecuteHook(call, keys)


def _divided(parameters: list[Parameter]) -> tuple[bool, list[Parameter]]:
    """Return whether a method takes context and resource by position, and its other parameters."""
    leading = parameters[:_ARGUMENTS]
    if any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in leading):
        return True, [parameter for parameter in parameters if parameter.kind not in _POSITIONAL]
    fits = len(leading) == _ARGUMENTS and all(
        parameter.kind in _POSITIONAL for parameter in leading
    )
    return fits, parameters[_ARGUMENTS:]


def _is_required(parameter: Parameter) -> bool:
    collects = parameter.kind in {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}
    return parameter.default is Parameter.empty and not collects

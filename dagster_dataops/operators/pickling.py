"""Send an operator to a worker process that does not share memory with this process.

An operator is pickled by reference if the worker can import its module cheaply. It is pickled by
value (cloudpickle) if it comes from ``__main__``, a notebook, a local scope, a file outside the
import path, or a module that has imported Dagster, because workers never import Dagster.
"""

import sys
from contextlib import ExitStack
from dataclasses import replace
from types import ModuleType
from typing import Any, Final

import cloudpickle

from dagster_dataops.errors import WorkerError
from dagster_dataops.foundation.concurrency.sent_code import pickled
from dagster_dataops.foundation.hashing.code_origins import searched_spec
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.definition.decorated_function import named_as
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.definition.spec import Invocation
from dagster_dataops.operators.options.declared_columns import sent_declarations
from dagster_dataops.operators.options.settings import ExecutionSettings
from dagster_dataops.operators.outcomes.record_context import RunLink

_PACKAGE: Final = __name__.partition(".")[0]


def ship(operator: Operator) -> bytes:
    """Return ``operator`` as bytes for `receive`.

    Raises:
        WorkerError: An option or attribute of the operator cannot be pickled.
    """
    spec = operator.__dataops__.spec
    modules = {target.__module__: sys.modules.get(target.__module__) for target in spec.targets}
    with ExitStack() as stack:
        for module in filter(None, modules.values()):
            if module.__name__ != "__main__" and not _importable(module):
                cloudpickle.register_pickle_by_value(module)
                stack.callback(cloudpickle.unregister_pickle_by_value, module)
        try:
            return pickled(_PickledOperator(operator))
        except Exception as error:
            reason = (
                f"it cannot be sent to another process ({type(error).__name__}: {error}); create "
                "locks, clients and open files inside forward, or use _concurrency_mode='thread'"
            )
            raise WorkerError(spec.qualified_name, reason) from error


def receive(payload: bytes) -> Operator:
    """Return the operator from the bytes that `ship` returned."""
    operator: Operator = cloudpickle.loads(payload)
    return operator


class _PickledOperator:
    """Pickles an operator. The generated class of a function operator is left out."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    @override
    def __reduce__(self) -> Any:
        invocation = self.operator.__dataops__
        if invocation.spec.parts:
            parts = [(name, _PickledOperator(part)) for name, part in invocation.spec.parts]
            return _rebuild_chain, (
                invocation.spec.name,
                parts,
                invocation.settings,
                invocation.link,
            )
        spec = replace(
            invocation.spec,
            target=_importable_target(invocation.spec.target),
            options=tuple(option._replace(annotation=Any) for option in invocation.spec.options),
            declared=sent_declarations(invocation.spec.declared, invocation.names_read),
        )
        state = {name: v for name, v in vars(self.operator).items() if name != "__dataops__"}
        cls = type(self.operator) if isinstance(spec.target, type) else None
        sent = replace(invocation, spec=spec, output=None, keeper=None)
        return _rebuild, (cls, sent, state)


def _importable_target(target: Any) -> Any:
    """Return the `RegisteredFunction` that replaces ``target`` in its module; else ``target``."""
    attribute = named_as(target)
    return attribute if getattr(attribute, "function", None) is target else target


def _rebuild(cls: type[Operator] | None, invocation: Invocation, state: dict[str, Any]) -> Operator:
    spec = invocation.spec
    spec = replace(spec, target=getattr(spec.target, "function", spec.target))
    operator = object.__new__(cls or Operator)
    vars(operator).update(state)
    operator.__dataops__ = replace(invocation, spec=spec)
    return operator


def _rebuild_chain(
    name: str,
    parts: list[tuple[str, Operator]],
    settings: ExecutionSettings,
    link: RunLink | None,
) -> Operator:
    from dagster_dataops.operators.chains.chain import Part, chain_of  # only for chains

    chain = chain_of(name, [Part(*part) for part in parts], settings)
    chain.__dataops__ = replace(chain.__dataops__, link=link)
    return chain


def _importable(module: ModuleType) -> bool:
    """Return whether a new process can import ``module`` by name without importing Dagster."""
    parts = module.__name__.split(".")
    if parts[0] == _PACKAGE:  # which holds names of its layer for Dagster once they were used
        return parts[:2] != [_PACKAGE, "assets"]
    names = [".".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
    loaded = [sys.modules.get(name) for name in names]
    return all(
        module is not None and _resolves_to_same_file(module) and not _uses_dagster(module)
        for module in loaded
    )


def _resolves_to_same_file(module: ModuleType) -> bool:
    """Return whether the import system resolves the module to the same file.

    ``importlib.util.find_spec`` cannot be used: it returns the spec of the loaded module.
    """
    package = sys.modules.get(module.__name__.rpartition(".")[0])
    path = getattr(package, "__path__", None)
    spec = searched_spec(module.__name__, path)
    return spec is not None and spec.origin == getattr(module, "__file__", None)


def _uses_dagster(module: ModuleType) -> bool:
    for value in list(vars(module).values()):
        if isinstance(value, ModuleType):
            owner = value.__name__
        else:
            owner = f"{getattr(value, '__module__', None) or type(value).__module__}"
        if owner.split(".")[0] == "dagster" or owner.startswith("dagster_dataops.assets"):
            return True
    return False

"""Attempt: an operator with its settings, as a workplace runs it."""

from contextlib import ExitStack
from dataclasses import field
from functools import cached_property

from dagster_dataops.foundation.frozen import changeable
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.settings import ResolvedSettings


@changeable
class Attempt:
    """An operator with its settings, as a workplace runs it.

    Attributes:
        operator: The operator.
        interrupts: Exceptions that signals raise in the main thread. They end the attempt, and no
            record is blamed for them.
        gpus: `CUDA_VISIBLE_DEVICES` of each worker process, if they share the GPUs of the machine.
        resources: Closed some time after a complete run, or when the attempt fails.
    """

    operator: Operator
    interrupts: tuple[type[BaseException], ...] = (KeyboardInterrupt,)
    gpus: tuple[str, ...] = ()
    resources: ExitStack = field(default_factory=ExitStack)

    @property
    def name(self) -> str:
        """Qualified name of the operator."""
        return self.operator.__dataops__.spec.qualified_name

    @cached_property
    def settings(self) -> ResolvedSettings:
        """How the operator is run."""
        return self.operator.__dataops__.resolved

    def log(self, text: str) -> None:
        """Show a line in the log of the run, if this process has one."""

"""Run generators that yield steps and receive the result of each step.

One generator so serves plain calls and coroutines.
"""

import inspect
from collections.abc import Callable, Generator
from types import CoroutineType
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
# Yields steps; is sent what each step returned, or thrown `StepError`.
Steps: TypeAlias = Generator[Any, Any, T]
IsInterrupt: TypeAlias = Callable[[BaseException], bool]


class EndsCall:
    """Marks exceptions that end a whole call from outside, such as those of its time limit."""


class StepError(Exception):
    """Thrown to a generator when a step raised an exception of any class."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def run_steps(steps: Steps[T], do: Callable[[Any], Any], is_interrupt: IsInterrupt) -> T:
    """Run the steps in this thread; return the value of the generator."""
    try:
        step = next(steps)
        while True:
            try:
                returned = do(step)
            except BaseException as error:
                if is_interrupt(error):
                    raise
                step = steps.throw(StepError(error))
            else:
                step = steps.send(returned)
    except StopIteration as end:
        value: T = end.value
        return value


async def run_steps_async(
    steps: Steps[T], do: Callable[[Any], Any], is_interrupt: IsInterrupt
) -> T:
    """Run steps in an event loop, like `run_steps`; ``do`` may return an awaitable."""
    try:
        step = next(steps)
        while True:
            try:
                returned = do(step)
                if type(returned) is CoroutineType or inspect.isawaitable(returned):
                    returned = await returned
            except BaseException as error:
                if is_interrupt(error):
                    raise
                step = steps.throw(StepError(error))
            else:
                step = steps.send(returned)
    except StopIteration as end:
        value: T = end.value
        return value

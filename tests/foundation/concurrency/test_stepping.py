"""Tests of dagster_dataops.foundation.concurrency.stepping."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dagster_dataops.foundation.concurrency.stepping import (
    StepError,
    Steps,
    run_steps,
    run_steps_async,
)


class Interrupt(BaseException):
    """Ends a run."""


def _is_interrupt(error: BaseException) -> bool:
    return isinstance(error, Interrupt)


def _answers(*steps: Any) -> Steps[list[Any]]:
    """Return what each step returned, or the name of the exception that it raised."""
    found: list[Any] = []
    for step in steps:
        try:
            found.append((yield step))
        except StepError as failed:
            found.append(type(failed.error).__name__)
    return found


def _raise(error: BaseException) -> Any:
    raise error


def _run_async(steps: Steps[Any], do: Callable[[Any], Any]) -> Any:
    async def awaited(step: Any) -> Any:
        await asyncio.sleep(0)
        return do(step)

    return asyncio.run(run_steps_async(steps, awaited, _is_interrupt))


def _run(steps: Steps[Any], do: Callable[[Any], Any]) -> Any:
    return run_steps(steps, do, _is_interrupt)


@pytest.mark.parametrize("run", [_run, _run_async])
def test_steps_are_sent_what_they_returned(run: Any) -> None:
    assert run(_answers(1, 2, 3), lambda number: 10 * number) == [10, 20, 30]


@pytest.mark.parametrize("run", [_run, _run_async])
def test_a_generator_without_steps_returns_at_once(run: Any) -> None:
    assert run(_answers(), _raise) == []


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), GeneratorExit()])
@pytest.mark.parametrize("run", [_run, _run_async])
def test_a_step_that_raises_is_thrown_and_the_run_goes_on(run: Any, error: BaseException) -> None:
    def do(step: Any) -> Any:
        return _raise(error) if step == "bad" else step

    found = run(_answers("bad", "good", "bad"), do)
    assert found == [type(error).__name__, "good", type(error).__name__]


def test_a_step_that_raises_stop_iteration_is_thrown_like_any_other() -> None:
    assert _run(_answers(StopIteration()), _raise) == ["StopIteration"]


@pytest.mark.parametrize("run", [_run, _run_async])
def test_an_interrupt_ends_the_run(run: Any) -> None:
    with pytest.raises(Interrupt):
        run(_answers(1), lambda _: _raise(Interrupt()))

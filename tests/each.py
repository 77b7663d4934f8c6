"""One test for many quick cases: a test for each would cost more than the case."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def each(argument: str, cases: Iterable[Any]) -> Callable[[Callable[..., None]], Any]:
    """Run a test with each case as an argument; a failure names all cases that failed.

    The cases share the fixtures of the test.

    Args:
        argument: Name of the argument of the test.
        cases: Its values.
    """
    values = list(cases)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run_all(**others: Any) -> None:
            failures = [_failure(test, {argument: value, **others}, argument) for value in values]
            failed = [one for one in failures if one is not None]
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(values)} cases", failed)

        signature = inspect.signature(test)
        fixtures = [one for name, one in signature.parameters.items() if name != argument]
        run_all.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return run_all

    return decorate


def slow_but(quick: Any, cases: Iterable[Any]) -> list[Any]:
    """Return the cases, of which all but one are slow tests."""
    return [case if case == quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]


def _failure(
    test: Callable[..., None], arguments: dict[str, Any], argument: str
) -> BaseException | None:
    try:
        test(**arguments)
    except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - raised after all cases
        failure.add_note(f"{argument} = {arguments[argument]!r}")
        return failure
    return None

"""Hide the secrets of operators in errors: in their texts, notes and causes."""

from collections.abc import Iterator
from typing import Any, Final

from dagster_dataops.operators.secrets.secret_texts import Secrets

_MOST: Final = 100  # exceptions of a chain that are looked at


def holds_secrets(error: BaseException, secrets: Secrets) -> bool:
    """Return whether an exception, or one that led to it, has a secret in its texts."""
    return bool(secrets) and any(
        secrets.are_in(text) for member in exceptions_of(error) for text in texts_of(member)
    )


def hide_secrets(error: BaseException, secrets: Secrets) -> None:
    """Hide secrets in the texts and notes of an exception, and drop what led to it.

    Nothing changes if neither it nor what led to it has any.
    """
    if not holds_secrets(error, secrets):
        return
    error.args = tuple(hidden(value, secrets) for value in error.args)
    for name, value in list(vars(error).items()):  # facts, notes and details
        setattr(error, name, hidden(value, secrets))
    error.__cause__, error.__context__ = None, None


def hidden(value: Any, secrets: Secrets) -> Any:
    """Return a fact of an error without secrets; others than texts only if they have some."""
    if isinstance(value, str):
        return secrets.hide(value)
    if isinstance(value, (tuple, list)):
        return type(value)([hidden(item, secrets) for item in value])
    if isinstance(value, dict):
        return {hidden(key, secrets): hidden(item, secrets) for key, item in value.items()}
    if isinstance(value, (bytes, set)) and secrets.are_in(repr(value)):
        return secrets.hide(repr(value))
    return value


def exceptions_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, those that led to it, and the members of groups; at most a hundred."""
    errors = {id(error): error}
    waiting = [error]
    while waiting:
        current = waiting.pop()
        yield current
        members = current.exceptions if isinstance(current, BaseExceptionGroup) else ()
        for other in (current.__cause__, current.__context__, *members):
            if other is not None and id(other) not in errors and len(errors) < _MOST:
                errors[id(other)] = other
                waiting.append(other)


def texts_of(error: BaseException) -> Iterator[str]:
    """Yield the texts of an exception that a traceback shows, and its arguments."""
    yield type(error).__name__
    try:
        yield str(error)
        yield repr(error.args)
    except Exception:  # noqa: BLE001 - the text of an exception is code of the user
        return
    yield from map(str, getattr(error, "__notes__", ()))

"""Failures of records, and their texts."""

import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from dagster_dataops.errors import ModelError, UnencodableError
from dagster_dataops.execution.timeouts.record_timeout import RecordTimeout
from dagster_dataops.foundation.concurrency import stepping
from dagster_dataops.operators import chains
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.outcomes import record_context
from dagster_dataops.operators.outcomes.dispositions import USUAL, Disposition, disposition
from dagster_dataops.operators.outcomes.return_contract import FAILED_PART, ContractError
from dagster_dataops.operators.secrets.hidden_errors import hidden
from dagster_dataops.operators.secrets.secret_texts import Secrets, without_logins_in_trace
from dagster_dataops.records import decode

INVALID_LINE: Final = "InvalidLine"  # the exception of a line that is not a record
_INVALID_RESULT: Final = "InvalidResult"
_MAX_RAW_BYTES: Final = 64 << 10
_MAX_TEXT: Final = 64 << 10
_MOST_FRAMES: Final = 200  # frames of one exception: the innermost
_MOST_EXCEPTIONS: Final = 100  # exceptions in one chain
_ODD: Final = (Exception, SystemExit, GeneratorExit)  # signals raise other exceptions
# Files above the operator in a traceback.
_ENGINE: Final = (
    str(Path(__file__).parents[1]),
    str(Path(chains.__file__).parent),
    str(record_context.__file__),
    str(stepping.__file__),
)


class Failure(NamedTuple):
    """The failure of a record.

    Attributes:
        exception: Class name of the exception.
        message: Its text.
        traceback_text: The operator's part of the traceback; empty for a bad line.
        error: The exception, if it was raised in this process.
        attempts: Number of tries.
        offset: Byte position of the record's line in the input, once the record is settled.
        part: Name of the part of a chain that failed; empty for no chain.
        details: Of a `ModelError`: further keys of the error line.
        disposition: Of the record; empty if it is only that it failed.
    """

    exception: str
    message: str
    traceback_text: str
    error: BaseException | None = None
    attempts: int = 1
    offset: int = 0
    part: str = ""
    details: dict[str, object] | None = None
    disposition: Disposition = b""


# The outcome of a line: encoded records (empty for a dropped one), a failure, or None if blank.
Outcome: TypeAlias = bytes | Failure | None


def raised(error: BaseException) -> Failure:
    """Return the failure for an exception, without its texts.

    `in_full` adds them. They take some hundred microseconds, and a record that is tried again does
    not need them.
    """
    odd_result = isinstance(error, (ContractError, UnencodableError))
    name = _INVALID_RESULT if odd_result else type(error).__name__
    part, disposition = getattr(error, FAILED_PART, ("", b""))
    return Failure(name, "", "", error, part=part, disposition=disposition)


def in_part(failure: Failure, operator: Operator) -> Failure:
    """Return ``failure``; if JSON cannot hold the result of a chain, as one of its last part."""
    parts = operator.__dataops__.spec.parts
    unencodable = failure.exception == _INVALID_RESULT and not failure.part
    if not unencodable or not parts:
        return failure
    last = len(parts) - 1
    fields = {**orjson.loads(failure.disposition or USUAL), "failed": last}
    fields.pop("emitted", None)
    return failure._replace(part=parts[last][0], disposition=disposition(**fields))


def in_full(failure: Failure, operator: Operator | None = None) -> Failure:
    """Return ``failure`` with the texts of its exception, if it has one.

    The texts are without secrets of the operator's options. An exception that has some is left out.

    Args:
        failure: The failure.
        operator: The operator that failed; ``None`` for the engine.
    """
    error = failure.error
    if error is None:
        return failure
    secrets = Secrets(()) if operator is None else operator.__dataops__.secrets
    odd_result = isinstance(error, (ContractError, UnencodableError))
    said, trace = _message(error), "" if odd_result else _traceback_text(error)
    message = secrets.hide(said)
    text = without_logins_in_trace(secrets.hide_values(trace))
    return failure._replace(
        exception=secrets.hide_values(failure.exception),
        message=_printable(message[:_MAX_TEXT]),
        traceback_text=_printable(text[-_MAX_TEXT:]),
        details=hidden(error.details, secrets) if isinstance(error, ModelError) else None,
        error=error if (message, text) == (said, trace) else None,
    )


def failure_of(error: BaseException, operator: Operator | None = None) -> Failure:
    """Return the failure for an exception of user code, with its texts; see `in_full`."""
    return in_full(raised(error), operator)


def text_and_traceback(error: BaseException, operator: Operator) -> tuple[str, str]:
    """Return class and message of an exception of an operator, and the text of its traceback."""
    failure = failure_of(error, operator)
    return f"{failure.exception}: {failure.message}", failure.traceback_text


def _printable(text: str) -> str:
    """Return a text that UTF-8 can hold."""
    return text.encode(errors="backslashreplace").decode()


def _traceback_text(error: BaseException) -> str:
    trace = _operators_part(error)
    try:
        if _are_many(error):
            lines = [
                f"(More than {_MOST_EXCEPTIONS} exceptions led to this one; they are left out.)\n",
                "Traceback (most recent call last):\n",
                *traceback.format_tb(trace, -_MOST_FRAMES),
                f"{type(error).__name__}: {_message(error)}\n",
            ]
        else:
            lines = traceback.format_exception(type(error), error, trace, limit=-_MOST_FRAMES)
        return "".join(lines)
    except _ODD:  # the text of the exception raises one itself
        return f"{type(error).__name__} (its text cannot be shown)\n"


def _are_many(error: BaseException) -> bool:
    """Return whether the chain of exceptions that led to ``error`` is too long to be formatted.

    A loop that catches errors and continues makes a chain of one exception per iteration.
    Formatting a chain of 20,000 took half a minute.
    """
    errors = {id(error): error}
    waiting = [error]
    while waiting and len(errors) <= _MOST_EXCEPTIONS:
        current = waiting.pop()
        members = current.exceptions if isinstance(current, BaseExceptionGroup) else ()
        for other in (current.__cause__, current.__context__, *members):
            if other is not None and id(other) not in errors:
                errors[id(other)] = other
                waiting.append(other)
    return len(errors) > _MOST_EXCEPTIONS


def _operators_part(error: BaseException) -> TracebackType | None:
    """Return the traceback without the engine's frames above the operator."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_ENGINE):
        trace = trace.tb_next
    return trace


def timed_out(seconds: float) -> Failure:
    """Return the failure of a record whose call took longer than ``seconds``."""
    return failure_of(RecordTimeout(seconds))


def _message(error: BaseException) -> str:
    try:
        return str.__str__(str(error))
    except _ODD:  # __str__ is user code as well
        return "its message cannot be shown"


def failure_text(exception: str, message: str, traceback_text: str) -> str:
    """Return the text of a failure for another error: exception, message, traceback."""
    return f"{exception}: {message}\n{traceback_text}".rstrip()


def error_row(failure: Failure, line: bytes, operator: str) -> dict[str, Any]:
    """Return the fields of a failed record in the error file.

    They are operator, part (of a chain only), exception, message, traceback, attempts, those of its
    details, and input (the record; the raw text, cut at 64 KB, where it is none).
    """
    return {
        "operator": operator,
        **({"part": failure.part} if failure.part else {}),
        "exception": failure.exception,
        "message": failure.message,
        "traceback": failure.traceback_text,
        "attempts": failure.attempts,
        **(failure.details or {}),
        "input": _input_of(line),
    }


def _input_of(line: bytes) -> object:
    try:
        return decode(line)
    except ValueError:
        return line[:_MAX_RAW_BYTES].decode(errors="backslashreplace")


def failure_of_line(line: bytes) -> Failure | None:
    """Return the failure of a line that is not a record; ``None`` for a blank line."""
    line = line.removesuffix(b"\n")
    if not line or line.isspace():
        return None
    try:
        decode(line)
    except ValueError as error:
        return Failure(INVALID_LINE, str(error), "")
    return Failure(INVALID_LINE, "no record", "")  # pragma: no cover - decode() refused it before

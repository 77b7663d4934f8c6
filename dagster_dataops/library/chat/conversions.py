"""``chat.Detect``, ``ToMessages``, ``ToShareGPT`` and ``ToAlpaca``."""

from typing import Any

from dagster_dataops.library.chat.conversation_formats import (
    FORMATS,
    format_of,
    to_alpaca,
    to_messages,
    to_sharegpt,
)
from dagster_dataops.library.chat.turns import chat
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.records import Record


class Detect(chat):
    """Write the format of a conversation.

    Writes ``output_key="format"``: ``messages`` (a list in ``messages``), ``sharegpt`` (a list in
    ``conversations``), ``alpaca`` (a text in ``instruction``), ``prompt_completion``,
    ``prompt_response``, ``question_answer`` or ``query_response`` (two texts), the first that fits;
    ``null`` if none does.

    Args:
        output_key: Column of the name of the format.
    """

    def __init__(self, output_key: str = "format", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._written = output_key

    def forward(self, record: Record) -> Record:
        record[self._written] = format_of(record)
        return record


class ToMessages(chat):
    """Convert a conversation to ``messages``, a list of dicts with ``role`` and ``content``.

    Reads any format of ``chat.Detect``, or only that of the option ``format``; writes ``messages``
    and removes the keys that it was made of. The roles are ``system``, ``user``, ``assistant`` and
    ``tool``. In ShareGPT they are ``system``, ``human`` (or ``user``), ``gpt`` (``assistant``,
    ``function_call``) and ``observation`` (``tool``); a name in brackets is kept as ``from`` of the
    message. Further keys of a turn stay. ``system`` of the record becomes the first message.

    Of Alpaca, ``history`` comes first; the last turn of the user is the instruction, an empty line
    and the input. An empty ``input`` is left out. The columns ``input`` and ``system`` stay in the
    record, so that ``chat.ToAlpaca`` and ``chat.ToShareGPT`` give exactly the same record back.

    A record is an error if it has no conversation, a text is missing, a role is unknown, or the
    turns are out of order: ``user`` and ``assistant`` must take turns after an optional ``system``,
    and ``tool`` follows ``assistant``. No record depends on another; LazyLLM's normalizer takes
    system prompts from earlier records.

    Args:
        format: The only format that is read; ``None`` for any.
    """

    def __init__(self, format: str | None = None, **kwargs: Any) -> None:  # noqa: A002 - the word users know
        super().__init__(**kwargs)
        if format is not None:
            check_choice("format", format, FORMATS)
        self._format = format

    def forward(self, record: Record) -> Record:
        return to_messages(record, self._format)


class ToShareGPT(chat):
    """Convert a conversation to ShareGPT: ``conversations``, dicts with ``from`` and ``value``.

    Reads any format of ``chat.Detect``; writes ``conversations`` and removes the keys that it was
    made of. ``user`` becomes ``human``, ``assistant`` ``gpt``, ``tool`` ``observation``, ``system``
    stays; a message with ``from`` has that name. Further keys of a message stay.
    ``chat.ToMessages`` gives exactly the same messages back. Errors are as there.
    """

    def forward(self, record: Record) -> Record:
        return to_sharegpt(to_messages(record))


class ToAlpaca(chat):
    """Convert a conversation to Alpaca: ``instruction``, ``output``, ``system`` and ``history``.

    Reads any format of ``chat.Detect`` and removes the keys that it was made of. Writes
    ``instruction`` (the last turn of the user), ``output`` (the answer to it), ``system`` and
    ``history`` (pairs of earlier turns); those of which there are none are left out. If the
    record has a column ``input`` and the last turn of the user ends with it, the instruction is
    what stands before. ``chat.ToMessages`` gives exactly the same messages back.

    Turns of tools, further keys of a message and an empty system prompt are errors of the record:
    Alpaca has no place for them. Other errors are as in ``chat.ToMessages``.
    """

    def forward(self, record: Record) -> Record:
        return to_alpaca(to_messages(record))

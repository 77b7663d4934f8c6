"""``chat.Detect``, ``ToMessages``, ``ToOpenAI``, ``ToAnthropic``, ``ToShareGPT``, ``ToAlpaca``."""

from typing import Any, ClassVar, Final, Literal

from dagster_dataops.datasets.chats.chat_record import ChatRules
from dagster_dataops.datasets.chats.losses import Losses, OnLoss
from dagster_dataops.foundation.override import override
from dagster_dataops.library.chat.alpaca import write_alpaca
from dagster_dataops.library.chat.anthropic_turns import write_anthropic
from dagster_dataops.library.chat.conversation_formats import (
    FORMATS,
    FROM_VALUE,
    format_of,
    to_messages,
    write_openai,
)
from dagster_dataops.library.chat.sharegpt import write_sharegpt
from dagster_dataops.library.chat.turns import chat
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.operators.outcomes.record_context import OperatorContext
from dagster_dataops.records import Record

_TEXT: Final = ChatRules(arguments="text", order="any")
_ANY: Final = ChatRules(order="any")


class Detect(chat):
    """Write the format of a conversation.

    Writes ``output_key="format"``, the first that fits: ``anthropic`` (``messages`` with its
    blocks, its tools or the column ``system``), ``openai`` (``messages`` with arguments as texts,
    or with ``function_call``, ``refusal``, ``audio``), ``messages``, ``sharegpt`` (a list in
    ``conversations``), ``alpaca`` (a text in ``instruction``), ``prompt_completion``,
    ``prompt_response``, ``question_answer`` or ``query_response`` (two texts), ``agent_trace`` (a
    line of a session file, see `read_agent_traces`); ``null`` if none does.

    Args:
        output_key: Column of the name of the format.
    """

    def __init__(self, output_key: str = "format", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._written = output_key

    def forward(self, record: Record) -> Record:
        record[self._written] = format_of(record)
        return record


class _Conversion:
    """Converts records, and counts what is left out in the table ``lost`` of the asset page."""

    _form: ClassVar[str]
    _context: OperatorContext | None = None
    added_later = frozenset({"on_loss"})

    def __init__(self, on_loss: OnLoss = "error", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._on_loss = on_loss

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def forward(self, record: Record) -> Record:
        losses = Losses(self._form, self._on_loss)
        converted = self._converted(record, losses)
        if losses.counts and self._context is not None:
            self._context.count(**{f"lost/{reason}": n for reason, n in losses.counts.items()})
        return converted

    def _converted(self, record: Record, losses: Losses) -> Record:
        raise NotImplementedError


class ToMessages(_Conversion, chat):
    """Convert a conversation to a chat record: ``messages``, and ``tools`` if it has some.

    Reads any format of ``chat.Detect``, or only that of the option ``format``; writes ``messages``
    and removes the keys that it was made of. The roles are ``system``, ``developer``, ``user``,
    ``assistant`` and ``tool``; a content is a text, null or a list of parts; ``tool_calls``,
    ``tool_call_id`` and ``reasoning_content`` are as in the page on conversations.

    In ShareGPT the roles are ``system``, ``human`` (or ``user``), ``gpt`` (``assistant``),
    ``function_call`` and ``observation`` (``tool``); a name in brackets is kept as ``from`` of the
    message. Further keys of a turn stay. Calls get the ids ``call_1``, ``call_2``. ``system`` of
    the record becomes the first message.

    Of Alpaca, ``history`` comes first; the last turn of the user is the instruction, an empty line
    and the input. An empty ``input`` is left out. The columns ``input`` and ``system`` stay in the
    record, so that ``chat.ToAlpaca`` and ``chat.ToShareGPT`` give exactly the same record back.

    ``format="from_value"`` renames ``from`` and ``value`` of turns to ``role`` and ``content``, in
    the columns ``conversations``, ``prompt``, ``completion``, ``chosen`` and ``rejected``, and
    changes nothing else.

    A record is an error if it breaks a rule of chat records; the error names the path. With
    ``order="turns"``, ``user`` and ``assistant`` must take turns after an optional ``system`` or
    ``developer``, and ``tool`` follows ``assistant``. No record depends on another; LazyLLM's
    normalizer takes system prompts from earlier records.

    Args:
        format: The only format that is read; ``None`` for any.
        arguments: The form of the arguments of calls: an ``object``, JSON ``text``, or ``keep``.
        on_loss: Whether what a chat record cannot hold, such as citations of Anthropic, is an
            ``error`` of the record, or is left out and counted (``drop``).
        nulls: With ``arrow``, keys with null in arguments and in schemas of tools are left out: an
            Arrow table gives each object the keys of all.
        order: Whether roles must take ``turns``, or stand in ``any`` order.
        unanswered: Whether calls without a result before a later turn are an ``error``, or are
            kept (``keep``).
        flatten_text: Whether a content of exactly one text part becomes that text.
    """

    _form = "a chat record"
    added_later = frozenset(
        {"arguments", "on_loss", "nulls", "order", "unanswered", "flatten_text"}
    )

    def __init__(
        self,
        format: str | None = None,  # noqa: A002 - the word users know
        arguments: Literal["object", "text", "keep"] = "object",
        on_loss: OnLoss = "error",
        *,
        nulls: Literal["keep", "arrow"] = "keep",
        order: Literal["turns", "any"] = "turns",
        unanswered: Literal["error", "keep"] = "error",
        flatten_text: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(on_loss, **kwargs)
        if format is not None:
            check_choice("format", format, [*FORMATS, FROM_VALUE])
        self._format = format
        self._rules = ChatRules(
            arguments=arguments,
            order=order,
            unanswered=unanswered,
            nulls=nulls,
            flatten_text=flatten_text,
        )

    @override
    def _converted(self, record: Record, losses: Losses) -> Record:
        return to_messages(record, self._format, self._rules, losses)


class ToOpenAI(_Conversion, chat):
    """Convert a conversation to the messages of OpenAI's chat completions.

    Reads any format of ``chat.Detect``, in any order of turns. Writes a chat record whose arguments
    are JSON texts; ``reasoning_content`` and ``weight`` stay. A part ``image`` with nothing but
    ``url`` becomes ``image_url``; other parts of Hugging Face templates cannot be held.
    ``chat.ToMessages`` gives the same messages back.

    Args:
        on_loss: Whether what cannot be held is an ``error`` of the record, or is left out and
            counted (``drop``).
    """

    _form = "OpenAI"

    @override
    def _converted(self, record: Record, losses: Losses) -> Record:
        return write_openai(to_messages(record, None, _TEXT, losses), losses)


class ToAnthropic(_Conversion, chat):
    """Convert a conversation to ``system``, ``messages`` and ``tools`` of Anthropic's Messages API.

    Reads any format of ``chat.Detect``, in any order of turns. The first messages of the system
    become the column ``system``; results in a row, and a text of the user after them, one turn of
    ``tool_result`` blocks; ``reasoning_content`` a ``thinking`` block without a signature.
    ``chat.ToMessages`` gives the same messages back.

    It cannot hold: audio and files without content, the detail of an image, ``developer``, a
    system message after the start, ``name``, ``weight`` and further keys of messages, results
    that answer no call.

    Args:
        on_loss: Whether what cannot be held is an ``error`` of the record, or is left out and
            counted (``drop``).
    """

    _form = "Anthropic"

    @override
    def _converted(self, record: Record, losses: Losses) -> Record:
        if format_of(record) == "anthropic":
            to_messages(record, "anthropic", _ANY, Losses(self._form, "drop"))  # checks it alone
            return record
        return write_anthropic(to_messages(record, None, _ANY, losses), losses)


class ToShareGPT(_Conversion, chat):
    """Convert a conversation to ShareGPT: ``conversations``, dicts with ``from`` and ``value``.

    Reads any format of ``chat.Detect``; writes ``conversations`` and removes the keys that it was
    made of. ``user`` becomes ``human``, ``assistant`` ``gpt``, ``tool`` ``observation``, ``system``
    stays; a message with ``from`` has that name. A turn with calls becomes ``function_call``, the
    JSON text of ``name`` and ``arguments``, or of a list of these; ``tools`` becomes JSON text.
    Further keys of a message stay. ``chat.ToMessages`` gives exactly the same messages back, with
    the ids ``call_1``, ``call_2``; other ids are counted as lost. Errors are as there.

    It cannot hold: a turn with text and calls, other parts than text, several texts in one turn,
    reasoning, ``is_error``, audio, ``developer``. Trainers differ in what they accept, and
    LLaMA-Factory skips a conversation with two results in a row, as parallel calls have. With
    ``separator``, such as a newline, they are one turn, and cannot be separated again.

    Args:
        on_loss: Whether what cannot be held is an ``error`` of the record, or is left out and
            counted (``drop``).
        split_system: Whether the first message of the system becomes the column ``system`` instead
            of a turn. One that is a column already stays there.
        separator: Text between the results of parallel calls, which become one turn;
            ``None`` for a turn of each.
    """

    _form = "ShareGPT"
    added_later = frozenset({"on_loss", "split_system", "separator"})

    def __init__(
        self,
        on_loss: OnLoss = "error",
        *,
        split_system: bool = False,
        separator: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(on_loss, **kwargs)
        self._split_system, self._separator = split_system, separator

    @override
    def _converted(self, record: Record, losses: Losses) -> Record:
        converted = to_messages(record, losses=losses)
        return write_sharegpt(
            converted,
            losses,
            split_system=self._split_system,
            separator=self._separator,
        )


class ToAlpaca(_Conversion, chat):
    """Convert a conversation to Alpaca: ``instruction``, ``output``, ``system`` and ``history``.

    Reads any format of ``chat.Detect`` and removes the keys that it was made of. Writes
    ``instruction`` (the last turn of the user), ``output`` (the answer to it), ``system`` and
    ``history`` (pairs of earlier turns); empty ones are left out. If the
    record has a column ``input`` and the last turn of the user ends with it, the instruction is
    what stands before. ``chat.ToMessages`` gives exactly the same messages back.

    It cannot hold: calls and turns of tools, parts, reasoning, ``developer``, further keys of a
    message. An empty system prompt is an error, too. Other errors are as in ``chat.ToMessages``.

    Args:
        on_loss: Whether what cannot be held is an ``error`` of the record, or is left out and
            counted (``drop``).
    """

    _form = "Alpaca"

    @override
    def _converted(self, record: Record, losses: Losses) -> Record:
        return write_alpaca(to_messages(record, losses=losses), losses)

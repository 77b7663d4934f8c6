"""`LLMOperator`: the base class of operators that ask a language model."""

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

import orjson

from dagster_dataops.datasets.chats.tool_calls import with_text_arguments
from dagster_dataops.errors import (
    ContentFilteredError,
    EmptyReplyError,
    InvalidOutputError,
    ModelError,
    OperatorOptionError,
    RefusedError,
    TruncatedError,
)
from dagster_dataops.foundation.hashing.operational import Operational
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.models.attached_files import (
    DETAILS,
    MAX_BYTES,
    SENDINGS,
    Attachments,
    Detail,
    Sending,
    identified,
)
from dagster_dataops.models.batch_round import deliver_in_batches
from dagster_dataops.models.batches.cancellation import cancel_batches
from dagster_dataops.models.model_operator import DEFAULT_CLIENT, ModelOperator
from dagster_dataops.models.output_format import OutputFormat, output_format, plain
from dagster_dataops.models.prompt_templates import (
    compiled,
    needed_names,
    rendered,
    rendered_prompt,
)
from dagster_dataops.models.replies.message_parts import without_thinking
from dagster_dataops.models.replies.reply import Reply, check_text, offers_tools, reply_of
from dagster_dataops.operators.options.ranges import AtLeastZero, AtLeastZeroFloat, PositiveInt
from dagster_dataops.operators.options.read_columns import ReadName, texts_in
from dagster_dataops.operators.outcomes.record_context import OperatorContext, StopRun
from dagster_dataops.records import Record

Messages: TypeAlias = str | Sequence[Mapping[str, Any]]

_REPLY: Final = "reply"  # the key of an example with the answer
_MAX_TEXT: Final = 2000
_CHOICES: Final = ("fail", "keep")
_THINKING: Final = ("keep", "cut")
_OF_NO_USE: Final = (
    ContentFilteredError,
    EmptyReplyError,
    InvalidOutputError,
    RefusedError,
    TruncatedError,
)
_DELIVERIES: Final = ("online", "batch")
_WAITS: Final = ("sensor", "step")
FILE_OPTIONS: Final = ("images", "audio", "files")


class LLMOperator(ModelOperator):
    """An operator that asks a language model about each record.

    A subclass has a ``prompt``, or defines ``messages``; or it defines ``forward`` and calls `ask`
    as often as it needs. ``parse`` makes the result of a reply. Register it with
    ``@data_register``::

        @data_register("data.demo")
        class Topics(LLMOperator):
            prompt = "Which topic does this text have? {{ text }}"

    A reply that was paid for is stored before it is parsed, and is not asked for again: not after a
    kill, and not when ``parse`` changes.

    Attributes:
        prompt: The template of the message, see `rendered`; an option of the same name replaces it.
        system: The template of the system message; empty for none.
        response_format: A pydantic model or a JSON Schema; replies that do not have this form are
            asked for again.
    """

    prompt: str = ""
    system: str = ""
    response_format: Any = None
    _publishes_text: bool = False  # so that replies that call tools are of no use

    added_later = frozenset(
        {
            "empty",
            "thinking",
            "images",
            "audio",
            "files",
            "send_files",
            "image_detail",
            "max_side",
            "max_bytes",
        }
    )

    def __init__(  # noqa: PLR0913 - the options of an operator
        self,
        model: str = "gpt-5-mini",
        *,
        prompt: str | None = None,
        system: str | None = None,
        response_format: Any = None,
        examples: Sequence[Mapping[str, Any]] = (),
        output_key: str = "answer",
        temperature: AtLeastZeroFloat | None = None,
        max_tokens: PositiveInt | None = None,
        params: Mapping[str, Any] | None = None,
        reasks: AtLeastZero = 2,
        truncated: Literal["fail", "keep"] = "fail",
        empty: Literal["fail", "keep"] = "fail",
        thinking: Literal["keep", "cut"] = "keep",
        images: str | Sequence[str] = (),
        audio: str | Sequence[str] = (),
        files: str | Sequence[str] = (),
        send_files: Sending = "data",
        image_detail: Detail | None = None,
        max_side: PositiveInt | None = None,
        max_bytes: PositiveInt = MAX_BYTES,
        delivery: Annotated[Literal["online", "batch"], Operational] = "online",
        wait: Annotated[Literal["sensor", "step"], Operational] = "sensor",
        cancel: Annotated[bool, Operational] = False,
        client: Annotated[Any, Operational] = DEFAULT_CLIENT,
        **kwargs: Any,
    ) -> None:
        """Check the options.

        Args:
            model: Name of the model.
            prompt: Template of the message.
            system: Template of the system message.
            response_format: A pydantic model, a JSON Schema, or the field of a request.
            examples: Records with their answer under the key ``reply``, a text or JSON. Each
                becomes a message and an answer before the prompt.
            output_key: The key to which the reply is written.
            temperature: Of the sampling; that of the server by default.
            max_tokens: Most tokens of a reply.
            params: Further fields of the request.
            reasks: How often a reply of the wrong form is asked for again.
            truncated: Whether a reply that was cut at ``max_tokens`` fails or is kept.
            empty: Whether a reply without a text, or with nothing but white space, fails or is
                kept.
            thinking: With ``cut``, the text of a reply is what follows its last ``</think>``; the
                rest is its ``reasoning``.
            images: Columns that name images: paths, URLs, references ``{"file": ...}``, or lists
                of these. They stand before the prompt in the order of the columns; then come the
                files of ``audio`` and ``files``.
            audio: Columns that name sounds.
            files: Columns that name documents, or files that the server has, as
                ``{"file_id": ...}``.
            send_files: With ``data`` a request holds the files, whose digests belong to its stored
                reply; with ``url`` the addresses of images and sounds, which the server reads: a
                changed file is not noticed.
            image_detail: The detail at which the server looks at images; its own by default.
            max_side: Pixels of the longer side of an image; larger ones are made smaller, with the
                extra ``images``. By default none is.
            max_bytes: The largest file; a larger one is an error of the record.
            delivery: ``batch`` submits the requests of all records as batches, which the server
                answers within a day for less. Not part of the operator's identity.
            wait: With ``sensor`` a run ends while the server works on batches, and a later one
                collects the replies; with ``step`` it waits. Not part of the operator's identity.
            cancel: Whether a run cancels the batches that the server has not answered, and ends;
                give it to one run, in the launchpad. Not part of the operator's identity.
            client: Name of a client of the run, or a `ModelClient`, or an object that
                `ModelClient` takes as ``complete``. Not part of the operator's identity, but its
                address is part of that of results.
            **kwargs: ``keep_replies`` of `ModelOperator`, and execution settings.
        """
        super().__init__(model, client, **kwargs)
        self.output_key = output_key
        self.prompt = self.prompt if prompt is None else prompt
        self.system = self.system if system is None else system
        self.response_format = response_format or self.response_format
        self.delivery, self.wait, self.cancel = delivery, wait, cancel
        self.examples, self.reasks, self.truncated = list(examples), reasks, truncated
        self.empty, self.thinking = empty, thinking
        self._attachments = Attachments(
            {"image": texts_in(images), "audio": texts_in(audio), "file": texts_in(files)},
            send_files,
            image_detail,
            max_side,
            max_bytes,
        )
        options = {"temperature": temperature, "max_tokens": max_tokens}
        options = {name: value for name, value in options.items() if value is not None}
        self.params: dict[str, Any] = {**(params or {}), **options}
        self._check()

    @classmethod
    def reads_of_options(cls, **options: Any) -> list[str]:
        """Return the columns that the templates need, if they see no other values.

        Args:
            **options: The options of the operator.
        """
        base = LLMOperator
        if any(
            getattr(cls, name) is not getattr(base, name)
            for name in ("forward", "messages", "values")
        ):
            return []
        texts = [options.get(name) or getattr(cls, name) for name in ("prompt", "system")]
        columns = [column for name in FILE_OPTIONS for column in texts_in(options.get(name))]
        names = dict.fromkeys([*(name for text in texts for name in needed_names(text)), *columns])
        return [ReadName(name, plain=True) for name in names if name != "record"]

    async def forward(self, record: Record) -> Any:
        """Ask about a record, and `parse` the reply."""
        reply = await self.ask(self.messages(record))
        parsed = self.parse(record, reply)
        return await parsed if inspect.isawaitable(parsed) else parsed

    def messages(self, record: Record) -> Messages:
        """Return the messages for a record: system, examples, prompt.

        The prompt follows the files of the record, if an option names some.
        """
        values = self.values(record)
        prompts: list[dict[str, Any]] = []
        if self.system:
            prompts.append({"role": "system", "content": rendered(self.system, values)})
        for example in self.examples:
            answer = example[_REPLY]
            text = answer if isinstance(answer, str) else orjson.dumps(answer).decode()
            shown = {name: value for name, value in example.items() if name != _REPLY}
            prompts.append({"role": "user", "content": rendered(self.prompt, self.values(shown))})
            prompts.append({"role": "assistant", "content": text})
        asked = rendered_prompt(self.prompt, values)
        return [*prompts, {"role": "user", "content": self.with_files(asked, record)}]

    def with_files(self, text: str, record: Record) -> str | list[dict[str, Any]]:
        """Return the content of a message: the files of a record, then a text.

        It is the text alone if no option names files.
        """
        if not any(self._attachments.columns.values()):
            return text
        return [*self._attachments.parts(record), {"type": "text", "text": text}]

    def values(self, record: Record) -> Mapping[str, Any]:
        """Return the values that the templates see by name: by default the columns."""
        return record | {"record": record}

    def parse(self, record: Record, reply: Reply) -> Any:
        """Return the result for a record, as ``forward`` of a record operator returns it.

        By default the text of the reply is written to ``output_key``; with a ``response_format``
        the value; and of a reply that calls tools, which ``params`` must offer, its message.
        """
        value = reply.text if reply.parsed is None else plain(reply.parsed)
        if reply.tool_calls:
            value = reply.message
        return record | {self.output_key: value}

    async def ask(
        self, messages: Messages, *, response_format: Any = None, sample: int = 0, **fields: Any
    ) -> Reply:
        """Return the reply of the model.

        Args:
            messages: The prompt, or a list of messages, also of a chat record: arguments of calls
                that are objects are sent as JSON text.
            response_format: A pydantic model or a JSON Schema; that of the operator by default.
            sample: Equal questions with other numbers get replies of their own.
            **fields: Further fields of the request, such as ``temperature`` or ``tools``.

        Raises:
            ModelError: There is no usable reply. The record fails.
            StopRun: No request would succeed. The run stops resumably.
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        wanted = response_format or self.response_format
        form = output_format(wanted) if wanted is not None else None
        sent = await identified(
            [with_text_arguments(message) for message in messages], self._attachments
        )
        request = {"model": self.model, "messages": sent, **self.params, **fields}
        if type(request.get("seed")) is int:  # samples of one seed would be equal
            request["seed"] += sample
        if form is not None:
            request["response_format"] = form.field
        asked: list[dict[str, Any]] = []
        try:
            return await self._asked(request, form, sample, asked)
        except _OF_NO_USE:
            for reask, reply in enumerate(asked):
                self.session.reject(reply, sample, reask)
            raise

    async def asks(self, messages: Messages, n: int, **fields: Any) -> list[Reply]:
        """Return several replies to one question. Each is requested and stored separately.

        Args:
            messages: The prompt, or a list of messages.
            n: The number of replies.
            **fields: As of `ask`.
        """
        if not isinstance(messages, str):  # each file is read once for its digest
            messages = await identified(messages, self._attachments)
        calls = [self.ask(messages, sample=number, **fields) for number in range(n)]
        replies = await asyncio.gather(*calls, return_exceptions=True)
        failed = [reply for reply in replies if isinstance(reply, BaseException)]
        for error in sorted(
            failed, key=lambda failure: isinstance(failure, Exception)
        ):  # StopRun first
            raise error
        return [reply for reply in replies if isinstance(reply, Reply)]

    @override
    async def open(self, context: OperatorContext) -> None:
        """Open the connections of a run."""
        if self.response_format is not None:
            output_format(self.response_format)
        await super().open(context)
        if self.delivery == "batch":
            try:
                if self.cancel:
                    await self._cancel_batches(context)
                await deliver_in_batches(self, context)
            except BaseException:  # of an operator that is not open, nothing is closed
                await self.close()
                raise

    async def _cancel_batches(self, context: OperatorContext) -> None:
        """Cancel the batches that the server has not answered, and end the run."""
        _, client = self._client_in(context)
        cancelled = await cancel_batches(context.folder, client)
        done = f"cancelled {', '.join(cancelled)}" if cancelled else "no batch to cancel"
        raise StopRun(f"{done}, because of the option cancel", waits=True)

    async def _asked(
        self,
        request: dict[str, Any],
        form: OutputFormat | None,
        sample: int,
        asked: list[dict[str, Any]],
    ) -> Reply:
        """Ask, and ask again while the reply does not have its form; note the requests."""
        first = request["messages"]
        fault = ""
        reply: Reply | None = None
        for reask in range(self.reasks + 1):
            asked.append(request)
            raw, replayed = await self.call(request, sample, reask)
            offered = offers_tools(request)
            reply = reply_of(raw, replayed=replayed, offers_tools=offered, empty=True)
            reply = self._usable(reply)
            if form is None or reply.tool_calls:
                return reply
            try:
                reply.parsed = form.parse(reply.text)
            except ValueError as error:
                fault = str(error)
                request = {**request, "messages": [*first, *_correction(reply, fault)]}
            else:
                return reply
        assert reply is not None  # noqa: S101 - of the last try
        reason = f"after {len(asked)} tries: {fault}; the last reply: {reply.text[:_MAX_TEXT]}"
        raise _unusable(InvalidOutputError(reason), reply, len(asked))

    def _usable(self, reply: Reply) -> Reply:
        """Return a reply that is complete; raise an error with its facts if it is not."""
        if reply.refusal:
            raise _unusable(RefusedError(reply.refusal[:_MAX_TEXT]), reply)
        if reply.filtered:
            reason = "a filter of the server stopped the reply"
            raise _unusable(ContentFilteredError(reason), reply)
        if reply.cut and self.truncated == "fail":
            raise _unusable(_truncated(reply), reply)
        if self.thinking == "cut":
            reply.text, thought = without_thinking(reply.text)
            reply.reasoning = "\n".join(text for text in (reply.reasoning, thought) if text)
        if self.empty == "fail":
            try:
                check_text(reply)
            except EmptyReplyError as error:
                raise _unusable(error, reply) from None
        return reply

    def _check(self) -> None:
        """Raise an `OperatorOptionError` for an invalid option."""
        spec = self.__dataops__.spec
        cls = type(self)
        is_custom = (
            cls.messages is not LLMOperator.messages or cls.forward is not LLMOperator.forward
        )
        self.require("prompt", fits=bool(self.prompt) or is_custom, reason="is missing")
        for name in ("prompt", "system"):
            try:
                compiled(getattr(self, name))
            except ValueError as error:
                raise OperatorOptionError(spec.qualified_name, name, f"{error}") from None
        fits = not (self._publishes_text and offers_tools(self.params))
        reason = "has tools, but this operator takes the text of replies; use llm.Generate"
        self.require("params", fits=fits, reason=reason)
        reason = "asks for a stream, but replies are read whole; leave out 'stream'"
        self.require("params", fits=not self.params.get("stream"), reason=reason)
        self.require("delivery", fits=self.delivery in _DELIVERIES, reason="is online or batch")
        self.require("wait", fits=self.wait in _WAITS, reason="is sensor or step")
        fits = self.delivery == "batch" or not self.cancel
        self.require("cancel", fits=fits, reason="needs delivery='batch'")
        self.require("reasks", fits=self.reasks >= 0, reason="must be 0 or more")
        for name in ("truncated", "empty"):
            self.require(name, fits=getattr(self, name) in _CHOICES, reason="is 'fail' or 'keep'")
        self.require("thinking", fits=self.thinking in _THINKING, reason="is 'keep' or 'cut'")
        complete = all(_REPLY in example for example in self.examples)
        self.require("examples", fits=complete, reason=f"need the key {_REPLY!r}")
        self._check_files()

    def _check_files(self) -> None:
        """Raise an `OperatorOptionError` for an invalid option about files."""
        files = self._attachments
        self.require("send_files", fits=files.send in SENDINGS, reason="is 'data' or 'url'")
        fits = files.detail in DETAILS
        self.require("image_detail", fits=fits, reason="is 'auto', 'low' or 'high'")
        if files.send == "url":
            fits, reason = not files.columns["file"], "is 'data' for files=, or give their file_id"
            self.require("send_files", fits=fits, reason=reason)
            reason = "needs send_files='data': the server reads the images at their addresses"
            self.require("max_side", fits=files.max_side is None, reason=reason)


def _correction(reply: Reply, fault: str) -> list[dict[str, str]]:
    """Return the messages that ask again; they show the last wrong reply only, for the cost."""
    wanted = f"That is not valid: {fault}\nReply again, with nothing but JSON as asked for."
    return [{"role": "assistant", "content": reply.text}, {"role": "user", "content": wanted}]


def _unusable(error: ModelError, reply: Reply, attempts: int = 1) -> ModelError:
    """Return an error to which the facts of the reply were added."""
    details = {
        "attempts": attempts,
        "request_id": reply.raw.get("id"),
        "reply": reply.text[:_MAX_TEXT],
        "finish_reason": reply.finish_reason,
        "usage": None if reply.usage is None else reply.usage._asdict(),
    }
    error.details = {name: value for name, value in details.items() if value is not None}
    return error


def _truncated(reply: Reply) -> ModelError:
    usage = reply.usage
    used = f" after {counted(usage.tokens_out, 'tokens')}" if usage else ""
    if usage and usage.tokens_reasoning:
        used += f", {usage.tokens_reasoning} of them for reasoning that is not shown"
    reason = (
        f"the reply was cut{used}; raise max_tokens, or set truncated='keep' to use what "
        f"there is: {reply.text[:_MAX_TEXT]}"
    )
    return TruncatedError(reason)

"""``llm.Generate``, ``Continue``, ``Rewrite`` and ``Translate``: texts that a model writes."""

from collections.abc import Mapping
from typing import Any, Final

from dagster_dataops.datasets.chats.chat_record import (
    ASSISTANT,
    DEVELOPER,
    MESSAGES,
    REASONING,
    SYSTEM,
    TOOLS,
    USER,
    ChatRules,
)
from dagster_dataops.datasets.chats.tool_calls import checked_calls
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.chat.conversation_formats import to_messages
from dagster_dataops.library.llm.text_prompts import TextPrompt, llm
from dagster_dataops.models.llm_operator import LLMOperator
from dagster_dataops.models.prompt_templates import rendered, rendered_prompt
from dagster_dataops.models.replies.reply import Reply
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record

_ANY_ORDER: Final = ChatRules(order="any")


class Generate(LLMOperator, llm):
    """Write the reply to ``prompt`` to ``output_key="answer"``.

    ``prompt`` is a Jinja template that sees the columns of the record by name, the whole record as
    ``record``, and the filter ``tojson``. With ``response_format``, a pydantic model or a JSON
    Schema, the reply is JSON of that form.
    """


class Continue(LLMOperator, llm):
    """Continue a conversation: add the reply of the model to it.

    Reads any format of ``chat.Detect`` and writes a chat record, see ``chat.ToMessages``, with the
    messages in ``output_key="messages"``. The request has the messages, with ``system`` before them
    if they begin with none, and ``tools`` of the record. With ``prompt``, a further message of the
    user is asked and added first. The reply is a message with its text, ``reasoning_content`` and
    ``tool_calls``, as far as it has them. To go on after calls, add their results as messages of
    the role ``tool``.

    A conversation that ends with a message of the assistant, and no ``prompt``, is an error of the
    record; so are calls whose arguments are no JSON object.

    Args:
        model: Name of the model.
        output_key: Column of the messages.
    """

    def __init__(
        self, model: str = "gpt-5-mini", *, output_key: str = MESSAGES, **kwargs: Any
    ) -> None:
        super().__init__(model, output_key=output_key, **kwargs)
        self.require("examples", fits=not self.examples, reason="are none of a conversation")

    @override
    def messages(self, record: Record) -> list[dict[str, Any]]:
        conversation = to_messages(record, rules=_ANY_ORDER)
        return self._with_system(self._asked_messages(conversation, record), record)

    @override
    async def forward(self, record: Record) -> Record:
        conversation: dict[str, Any] = to_messages(record, rules=_ANY_ORDER)
        asked = self._asked_messages(conversation, record)
        tools = {TOOLS: conversation[TOOLS]} if conversation.get(TOOLS) else {}
        reply = await self.ask(self._with_system(asked, record), **tools)
        return conversation | {self.output_key: [*asked, _message_of(reply, len(asked))]}

    def _asked_messages(
        self, conversation: Mapping[str, Any], record: Record
    ) -> list[dict[str, Any]]:
        """Return the messages up to the one that is answered."""
        messages: list[dict[str, Any]] = conversation[MESSAGES]
        if self.prompt:
            return [
                *messages,
                {"role": USER, "content": rendered_prompt(self.prompt, self.values(record))},
            ]
        if messages[-1]["role"] == ASSISTANT:
            msg = f"{MESSAGES}[{len(messages) - 1}] is of the assistant; there is nothing to answer"
            raise UnfitRecordError(msg)
        return messages

    def _with_system(self, asked: list[dict[str, Any]], record: Record) -> list[dict[str, Any]]:
        """Return the messages of the request: ``system`` is not in the record that is written."""
        if not self.system or asked[0]["role"] in {SYSTEM, DEVELOPER}:
            return asked
        prompt = rendered(self.system, self.values(record))
        return [{"role": SYSTEM, "content": prompt}, *asked]


def _message_of(reply: Reply, position: int) -> dict[str, Any]:
    """Return the message of a reply, in the form of a chat record."""
    message = reply.message
    if reply.reasoning:
        message[REASONING] = reply.reasoning
    if "tool_calls" in message:
        place = f"{MESSAGES}[{position}].tool_calls"
        message["tool_calls"] = checked_calls(message["tool_calls"], place, "object")
    return message


class Rewrite(TextPrompt, llm):
    """Rewrite a text as ``instruction`` says: a record for each of ``count`` rewritings.

    Reads ``input_key="text"`` and writes the rewriting to ``output_key``, by default the same key,
    and its number, counted from 1, to ``variant``. With ``keep_original=True`` the record itself
    comes first, with the number 0. The template ``prompt`` sees ``instruction`` and ``text``.

    Source: rephrased texts beside the originals, Maini et al. 2024, arXiv:2401.16380.

    Args:
        instruction: What is to be done with the text, in words.
        count: Number of rewritings of a text.
        keep_original: Whether the record itself comes first.
    """

    prompt = "{{ instruction }} Reply with the new text alone.\n\n{{ text }}"
    shown = ("instruction",)

    def __init__(
        self,
        instruction: str,
        input_key: str = "text",
        output_key: str | None = None,
        *,
        count: PositiveInt = 1,
        keep_original: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key, output_key=output_key or input_key, **kwargs)
        self.instruction, self.count, self.keep_original = instruction, count, keep_original

    @override
    async def forward(self, record: Record) -> list[Record]:
        replies = await self.asks(self.messages(record), self.count)
        written: list[Record] = [
            record | {self.output_key: reply.text, "variant": number}
            for number, reply in enumerate(replies, 1)
        ]
        return [record | {"variant": 0}, *written] if self.keep_original else written


class Translate(TextPrompt, llm):
    """Translate a text into the language ``to``, such as ``"German"``.

    Reads ``input_key="text"`` and writes ``output_key="translation"``. The template ``prompt`` sees
    ``to`` and ``text``.

    Args:
        to: Name of the language.
    """

    prompt = (
        "Translate the text into {{ to }}. Keep markup, code and numbers. Reply with the "
        "translation alone.\n\n{{ text }}"
    )
    shown = ("to",)

    def __init__(
        self, to: str, input_key: str = "text", output_key: str = "translation", **kwargs: Any
    ) -> None:
        super().__init__(input_key, output_key=output_key, **kwargs)
        self.to = to

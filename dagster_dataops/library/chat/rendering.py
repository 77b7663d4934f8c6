"""``chat.Render``: write a conversation as one text for training."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, Literal

from dagster_dataops.datasets.chats.chat_record import MESSAGES, Message
from dagster_dataops.datasets.chats.losses import OnLoss
from dagster_dataops.errors import DefinitionError, UnfitRecordError
from dagster_dataops.library.chat.rendering_calls import lost
from dagster_dataops.library.chat.rendering_record import ChatRenderer
from dagster_dataops.library.chat.turns import chat
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.outcomes.record_context import OperatorContext
from dagster_dataops.records import Record


class Render(chat):
    """Write a conversation as one text, by a chat template.

    Reads any format of ``chat.Detect`` and writes ``output_key="text"``; the conversation stays.

    ``template="chatml"`` is ChatML, ``"llama-3"`` the headers of Llama 3 (contents stripped),
    ``"alpaca"`` the text with ``### Instruction:``, ``### Input:`` and ``### Response:``, where a
    system prompt replaces the first lines. They hold texts alone: tools, calls, reasoning, parts
    and documents are errors of the record.

    Any other value is a template of Hugging Face: a Jinja text, Jinja texts by name, or ``"@"``
    and the path of a Jinja file, of a ``tokenizer_config.json`` or of the folder of a tokenizer.
    The text of a file counts for the identity of the operator, not its path. Templates render as
    ``apply_chat_template`` of transformers 5 does, byte for byte, and cannot reach anything else.
    They know ``messages``, ``tools`` and ``documents`` of the record, ``add_generation_prompt``,
    the special tokens of the files, ``chat_template_kwargs`` of the record, ``template_kwargs``,
    and, as ``record``, the record. What a template raises is an error of the record, with the line.
    A template that calls ``strftime_now`` needs ``now``. ``now="run"`` is the same in all attempts
    of a run; another run has another time, also for the records that it adds to a result.

    Templates differ in the form of the arguments of calls that they take. ``arguments="keep"``
    leaves them as they are, as transformers does. Then some templates fail, and others encode a
    text once more, which is counted in the table ``lost`` as ``encoded_twice``. ``"auto"`` gives
    them the form that the template shows: ``object`` or ``text``.

    A call that is not in the text, or the text of a part, is an error of the record unless
    ``on_loss="drop"``. What else a template leaves out is counted in the table ``lost``: in a
    prompt it may leave out whole turns, and reasoning of earlier ones. ``tokens.EncodeChat``, which
    trains on the text, also refuses a content that is not in it.

    ``add_generation_prompt=True`` adds the beginning of an answer (always there in ``"alpaca"``).
    ``continue_final_message=True``, or a key, ends the text within the last message.
    ``bos_token`` stands before and ``eos_token`` behind the texts of ``"chatml"`` and ``"alpaca"``;
    ``"llama-3"`` begins with its own token unless ``bos_token`` is given. In other templates they
    replace those of the files.

    Args:
        template: ``chatml``, ``llama-3``, ``alpaca``, a Jinja text, ``@`` and a path, or Jinja
            texts by name.
        output_key: Column of the text.
        add_generation_prompt: Whether the text ends with the beginning of an answer.
        continue_final_message: Whether the text ends within the last message, or the key of that
            message in which it ends.
        bos_token: Text before the conversation; ``None`` for that of the template.
        eos_token: Text behind the conversation.
        template_name: Which of several templates; ``None`` for ``tool_use`` if the record has
            tools, else ``default``.
        template_kwargs: Further names of the template, such as ``enable_thinking``.
        special_tokens: Texts of special tokens by name, such as ``pad_token``.
        tools: Tools of records that have none.
        documents: Documents of records that have none.
        now: The time of ``strftime_now``, such as ``2026-01-02T03:04:05``, or ``run`` for the start
            of the first attempt of the run.
        arguments: Form of the arguments of calls in a Jinja template.
        undefined: Whether an unknown name prints nothing, as in transformers (``lenient``), or is
            an error of the record (``strict``).
        on_loss: Whether a call or part that the template leaves out is an error of the record.
    """

    added_later: ClassVar = frozenset(
        {
            "arguments",
            "continue_final_message",
            "documents",
            "now",
            "on_loss",
            "special_tokens",
            "template_kwargs",
            "template_name",
            "tools",
            "undefined",
        }
    )

    def __init__(
        self,
        template: str | Mapping[str, str] = "chatml",
        output_key: str = "text",
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        bos_token: str | None = None,
        eos_token: str = "",
        template_name: str | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
        special_tokens: Mapping[str, Any] | None = None,
        tools: Sequence[Any] | None = None,
        documents: Sequence[Any] | None = None,
        now: str | None = None,
        arguments: Literal["auto", "object", "text", "keep"] = "keep",
        undefined: Literal["lenient", "strict"] = "lenient",
        on_loss: OnLoss = "error",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if continue_final_message and add_generation_prompt:
            msg = "continue_final_message goes on with the last turn, and add_generation_prompt"
            raise DefinitionError(f"{msg} begins another; give one of them")
        self._written = output_key
        self._prompt, self._continued = add_generation_prompt, continue_final_message
        self._renderer = ChatRenderer(
            template,
            template_name=template_name,
            template_kwargs=template_kwargs,
            special_tokens=special_tokens,
            bos_token=bos_token,
            eos_token=eos_token,
            tools=tools,
            documents=documents,
            now=now,
            strict=undefined == "strict",
            arguments=arguments,
        )
        self._refused = _NEVER_LOST if on_loss == "error" else frozenset()
        self._context: OperatorContext | None = None
        keep_texts(self, self._renderer)

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._renderer.begin(context.started)

    def forward(self, record: Record) -> Record:
        conversation = self._renderer.with_messages(record)
        text = self._renderer.render(
            conversation,
            add_generation_prompt=self._prompt,
            continue_final_message=self._continued,
        ).text
        check_lost(conversation[MESSAGES], text, self._context, self._refused)
        return record | {self._written: text}


def keep_texts(operator: Operator, renderer: ChatRenderer) -> None:
    """Keep the texts of files as options of an operator, in place of their path.

    So the text counts for the identity of the operator, and a process that constructs it again
    has the same text.
    """
    options = operator.__dataops__.options
    template = options["template"]
    if isinstance(template, str) and template.startswith("@"):
        tokens = renderer.special_tokens or options["special_tokens"]
        texts = {**options, "template": renderer.texts, "special_tokens": tokens}
        operator.__dataops__ = replace(operator.__dataops__, options=texts)


_NEVER_LOST: Final = frozenset({"tool_calls", "parts"})


def check_lost(
    messages: list[Message], text: str, context: OperatorContext | None, refused: Collection[str]
) -> None:
    """Check that a template showed what messages say, and count what it left out."""
    losses = lost(messages, text)
    if not losses:
        return
    if paths := [path for kind, path in losses if kind in refused]:
        msg = f"the template does not show {', '.join(paths[:3])}; use another template, or"
        raise UnfitRecordError(f"{msg} on_loss='drop' to leave it out")
    if context is not None:
        counts = Counter(kind for kind, _ in losses)
        context.count(**{f"lost/{kind}": number for kind, number in counts.items()})

"""``chat.Render``: write a conversation as one text for training."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final

from dagster_dataops.chats.chat_record import MESSAGES
from dagster_dataops.chats.losses import Losses
from dagster_dataops.errors import DefinitionError, UnfitRecordError
from dagster_dataops.library.chat.alpaca import write_alpaca
from dagster_dataops.library.chat.conversation_formats import to_messages
from dagster_dataops.library.chat.turns import chat, check_no_tools, check_texts
from dagster_dataops.records import Record

# The prompts that the Alpaca model was trained with: constants of the format.
_TASK: Final = "Below is an instruction that describes a task"
_WITH_INPUT: Final = f"{_TASK}, paired with an input that provides further context. "
_WITHOUT_INPUT: Final = f"{_TASK}. "
_REMEDY: Final = "use a Hugging Face template"
_WRITE: Final = "Write a response that appropriately completes the request."


class Render(chat):
    """Write a conversation as one text, by a chat template.

    Reads any format of ``chat.Detect`` and writes ``output_key="text"``; the conversation stays.

    ``template="chatml"`` is ChatML, ``"llama-3"`` the headers of Llama 3 (contents stripped),
    ``"alpaca"`` the text with ``### Instruction:``, ``### Input:`` and ``### Response:``, where a
    system prompt replaces the first lines. These three show texts alone: tools, calls, parts and
    reasoning are errors of the record. Any other value is a Jinja template, as of Hugging Face
    tokenizers: it knows ``messages``, ``add_generation_prompt``, ``bos_token=""``,
    ``eos_token=""``, ``raise_exception``, ``tojson`` and, as ``record``, the record; block lines
    leave no white space. It is sandboxed, and an unknown name is an error of the record.

    ``add_generation_prompt=True`` adds the beginning of an answer (always there in ``"alpaca"``).
    ``bos_token`` stands before and ``eos_token`` behind the texts of ``"chatml"`` and ``"alpaca"``;
    ``"llama-3"`` begins with its own token unless ``bos_token`` is given.

    Args:
        template: ``chatml``, ``llama-3``, ``alpaca`` or a Jinja template.
        output_key: Column of the text.
        add_generation_prompt: Whether the text ends with the beginning of an answer.
        bos_token: Text before the conversation; ``None`` for that of the template.
        eos_token: Text behind the conversation.
    """

    def __init__(
        self,
        template: str = "chatml",
        output_key: str = "text",
        *,
        add_generation_prompt: bool = False,
        bos_token: str | None = None,
        eos_token: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._written = output_key
        self._more = {
            "add_generation_prompt": add_generation_prompt,
            "bos_token": bos_token,
            "eos_token": eos_token,
        }
        self._plain = f"the template {template}" if template in _RENDERERS else ""
        self._render = _RENDERERS.get(template) or partial(_jinja, template)
        if template not in _RENDERERS:
            _compiled(template)  # refuses a malformed one

    def forward(self, record: Record) -> Record:
        with_messages: dict[str, Any] = to_messages(record)
        if self._plain:
            check_texts(with_messages[MESSAGES], self._plain, _REMEDY)
            check_no_tools(with_messages, self._plain, _REMEDY)
        return {**record, self._written: self._render(with_messages, self._more)}


def _chatml(record: dict[str, Any], more: Mapping[str, Any]) -> str:
    parts = [f"<|im_start|>{one['role']}\n{one['content']}<|im_end|>\n" for one in record[MESSAGES]]
    if more["add_generation_prompt"]:
        parts.append("<|im_start|>assistant\n")
    return f"{more['bos_token'] or ''}{''.join(parts)}{more['eos_token']}"


def _llama_3(record: dict[str, Any], more: Mapping[str, Any]) -> str:
    head = "<|start_header_id|>{}<|end_header_id|>\n\n"
    # The role of the results of tools in Llama 3.
    roles = {"tool": "ipython"}
    parts = [
        f"{head.format(roles.get(one['role'], one['role']))}{one['content'].strip()}<|eot_id|>"
        for one in record[MESSAGES]
    ]
    if more["add_generation_prompt"]:
        parts.append(head.format("assistant"))
    bos = "<|begin_of_text|>" if more["bos_token"] is None else more["bos_token"]
    return f"{bos}{''.join(parts)}{more['eos_token']}"


def _alpaca(record: dict[str, Any], more: Mapping[str, Any]) -> str:
    made: dict[str, Any] = write_alpaca(record, Losses("the template alpaca"))
    added = made.get("input") or ""
    task = made.get("system") or (_WITH_INPUT if added else _WITHOUT_INPUT) + _WRITE
    parts = [task]
    for user, assistant in made.get("history") or []:
        parts += [f"### Instruction:\n{user}", f"### Response:\n{assistant}"]
    parts.append(f"### Instruction:\n{made['instruction']}")
    if added:
        parts.append(f"### Input:\n{added}")
    parts.append(f"### Response:\n{made.get('output') or ''}")
    whole = "\n\n".join(parts)
    return f"{more['bos_token'] or ''}{whole}{more['eos_token']}"


_RENDERERS: Final[dict[str, Callable[[dict[str, Any], Mapping[str, Any]], str]]] = {
    "chatml": _chatml,
    "llama-3": _llama_3,
    "alpaca": _alpaca,
}


@cache
def _compiled(source: str) -> Any:
    """Return a sandboxed Jinja template.

    Raises:
        DefinitionError: It is malformed.
    """
    from jinja2 import TemplateSyntaxError

    try:
        template = _environment().from_string(source)
    except TemplateSyntaxError as error:
        known = ", ".join(_RENDERERS)
        msg = (
            f"template is neither one of {known} nor a Jinja template: line {error.lineno}: "
            f"{error.message}"
        )
        raise DefinitionError(msg) from None
    if "{{" not in source and "{%" not in source:
        msg = f"template {source[:80]!r} is none of {', '.join(_RENDERERS)}, and no Jinja"
        raise DefinitionError(msg)
    return template


def _jinja(source: str, record: dict[str, Any], more: Mapping[str, Any]) -> str:
    """Return the text of a record with ``messages`` by a Jinja template.

    Raises:
        UnfitRecordError: The template failed, or called ``raise_exception``.
    """
    from jinja2 import TemplateError

    names = {**more, "bos_token": more["bos_token"] or "", "record": record}
    try:
        text: str = _compiled(source).render(
            names, messages=record[MESSAGES], raise_exception=_raise_exception
        )
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        if isinstance(error, UnfitRecordError):
            raise
        raise UnfitRecordError(f"the template failed: {error}") from None
    return text


def _raise_exception(message: object) -> None:
    raise UnfitRecordError(f"the template refused the conversation: {message}")


@cache
def _environment() -> Any:
    import json

    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.loopcontrols"],
        autoescape=False,  # the text is not HTML
    )

    def tojson(value: Any, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    environment.filters["tojson"] = tojson
    return environment

"""The chat templates of this package: ChatML, the headers of Llama 3, and Alpaca."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dagster_dataops.datasets.chats.chat_record import ASSISTANT, MESSAGES
from dagster_dataops.datasets.chats.losses import Losses
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.library.chat.alpaca import write_alpaca
from dagster_dataops.library.chat.rendering_jinja import Part, Rendered
from dagster_dataops.library.chat.turns import check_no_tools, check_texts

# The prompts that the Alpaca model was trained with: constants of the format.
_TASK: Final = "Below is an instruction that describes a task"
_WITH_INPUT: Final = f"{_TASK}, paired with an input that provides further context. "
_WITHOUT_INPUT: Final = f"{_TASK}. "
_WRITE: Final = "Write a response that appropriately completes the request."
_REMEDY: Final = "use a Hugging Face template"


def builtin(template: str, record: dict[str, Any], names: Mapping[str, Any]) -> Rendered:
    """Return the text of a record with ``messages``, and its parts that the assistant wrote.

    Args:
        template: One of `BUILTIN`.
        record: The record.
        names: ``add_generation_prompt``, ``bos_token`` and ``eos_token``.
    """
    name = f"the template {template}"
    check_texts(record[MESSAGES], name, _REMEDY)
    check_no_tools(record, name, _REMEDY)
    if record.get("documents"):
        raise UnfitRecordError(f"the record has documents, which {name} cannot show; {_REMEDY}")
    output = _Text()
    BUILTIN[template](record, names, output)
    return Rendered("".join(output.texts), output.parts)


class _Text:
    """Collects a text, and where in it the turns of the assistant are."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.parts: list[Part] = []
        self._length = 0

    def add(self, text: str) -> None:
        """Add a text."""
        self.texts.append(text)
        self._length += len(text)

    def add_turn(self, message: Mapping[str, Any], number: int, text: str) -> None:
        """Add the text of a message, which is a part if the assistant wrote it."""
        if message["role"] == ASSISTANT:
            self.parts.append(Part(self._length, self._length + len(text), number))
        self.add(text)


def _chatml(record: dict[str, Any], names: Mapping[str, Any], output: _Text) -> None:
    output.add(names["bos_token"] or "")
    for number, message in enumerate(record[MESSAGES]):
        output.add(f"<|im_start|>{message['role']}\n")
        output.add_turn(message, number, f"{message['content']}<|im_end|>")
        output.add("\n")
    if names["add_generation_prompt"]:
        output.add("<|im_start|>assistant\n")
    output.add(names["eos_token"])


def _llama_3(record: dict[str, Any], names: Mapping[str, Any], output: _Text) -> None:
    head = "<|start_header_id|>{}<|end_header_id|>\n\n"
    # The role of the results of tools in Llama 3.
    roles = {"tool": "ipython"}
    output.add("<|begin_of_text|>" if names["bos_token"] is None else names["bos_token"])
    for number, message in enumerate(record[MESSAGES]):
        role = message["role"]
        output.add(head.format(roles.get(role, role)))
        output.add_turn(message, number, f"{message['content'].strip()}<|eot_id|>")
    if names["add_generation_prompt"]:
        output.add(head.format("assistant"))
    output.add(names["eos_token"])


def _alpaca(record: dict[str, Any], names: Mapping[str, Any], output: _Text) -> None:
    messages = [{**message, "weight": None} for message in record[MESSAGES]]  # is not shown
    losses = Losses("the template alpaca")
    columns: dict[str, Any] = write_alpaca(record | {MESSAGES: messages}, losses)
    added = columns.get("input") or ""
    task = columns.get("system") or (_WITH_INPUT if added else _WITHOUT_INPUT) + _WRITE
    output.add(f"{names['bos_token'] or ''}{task}\n\n")
    numbered = enumerate(record[MESSAGES])
    answers = iter(
        [(number, message) for number, message in numbered if message["role"] == ASSISTANT]
    )
    for user, assistant in columns.get("history") or []:
        output.add(f"### Instruction:\n{user}\n\n### Response:\n")
        number, message = next(answers)
        output.add_turn(message, number, assistant)
        output.add("\n\n")
    output.add(f"### Instruction:\n{columns['instruction']}\n\n")
    if added:
        output.add(f"### Input:\n{added}\n\n")
    output.add("### Response:\n")
    for number, message in answers:
        output.add_turn(message, number, f"{columns['output']}{names['eos_token']}")
    if columns.get("output") is None:
        output.add(names["eos_token"])


BUILTIN: Final[dict[str, Callable[[dict[str, Any], Mapping[str, Any], _Text], None]]] = {
    "chatml": _chatml,
    "llama-3": _llama_3,
    "alpaca": _alpaca,
}

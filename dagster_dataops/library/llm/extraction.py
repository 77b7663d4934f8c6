"""``llm.Extract`` and ``llm.Classify``: values that a model reads from texts."""

from collections.abc import Mapping, Sequence
from typing import Any

from dagster_dataops.foundation.override import override
from dagster_dataops.library.llm.text_prompts import TextPrompt, llm
from dagster_dataops.models.output_format import plain
from dagster_dataops.models.replies.reply import Reply
from dagster_dataops.records import Record


class Extract(TextPrompt, llm):
    """Extract the fields of ``response_format`` from a text; they become columns.

    Reads ``input_key="text"``. ``response_format`` is a pydantic model or a JSON Schema of an
    object. With ``output_key``, the fields become one column with an object. The template
    ``prompt`` sees ``text``.
    """

    prompt = "Extract the fields from the text. Use only what the text says.\n\n{{ text }}"

    def __init__(
        self,
        response_format: Any,
        input_key: str = "text",
        output_key: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            input_key, response_format=response_format, output_key=output_key or "", **kwargs
        )

    @override
    def parse(self, record: Record, reply: Reply) -> Record:
        value = plain(reply.parsed)
        return record | ({self.output_key: value} if self.output_key else value)


class Classify(TextPrompt, llm):
    """Choose one of ``labels`` for a text.

    Reads ``input_key="text"`` and writes ``output_key="label"``. ``labels`` is a list, or a mapping
    from labels to their descriptions. With ``multiple=True``, the value is the list of all labels
    that apply. The template ``prompt`` sees ``text``, ``labels``, a mapping, and ``multiple``.

    Args:
        labels: Labels, or their descriptions by label.
        multiple: Whether several labels may apply.
    """

    prompt = (
        "{% if multiple %}Choose all labels that apply to the text; none if none does."
        "{% else %}Choose the label that fits the text best.{% endif %}\n\nLabels:\n"
        "{% for label, description in labels.items() %}"
        "- {{ label }}{% if description %}: {{ description }}{% endif %}\n"
        "{% endfor %}\nText:\n{{ text }}"
    )
    shown = ("labels", "multiple")

    def __init__(
        self,
        labels: Sequence[str] | Mapping[str, str],
        input_key: str = "text",
        output_key: str = "label",
        *,
        multiple: bool = False,
        **kwargs: Any,
    ) -> None:
        described = dict(labels) if isinstance(labels, Mapping) else dict.fromkeys(labels, "")
        super().__init__(input_key, output_key=output_key, **kwargs)
        self.set_format(_schema(list(described), multiple=multiple))
        self.labels, self.multiple = described, multiple
        self.require("labels", fits=len(described) >= 1 + (not multiple), reason="are too few")

    @override
    def parse(self, record: Record, reply: Reply) -> Record:
        labels = reply.parsed["label"]
        return record | {self.output_key: sorted(set(labels)) if self.multiple else labels}


def _schema(labels: list[str], *, multiple: bool) -> dict[str, Any]:
    item = {"type": "string", "enum": labels}
    label = {"type": "array", "items": item} if multiple else item
    return {"type": "object", "properties": {"label": label}, "required": ["label"]}

"""Metadata of operators that ask a language model: the prompt of the first record."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.markdown import cell, fenced, in_window
from dagster_dataops.assets.metadata.metadata_keys import PROMPT
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.foundation.parts import has_model_operators
from dagster_dataops.operators.definition.operator import Operator

_MAX_CHARACTERS: Final = 4000


def prompt_metadata(
    operator: Operator, inputs: Sequence[JsonlDataset], key: str = PROMPT
) -> dict[str, Any]:
    """Return the messages to the model for the first record, as Markdown.

    Returns:
        Nothing if the operator asks no model, has no template or cannot make a prompt of the
        record.
    """
    if not has_model_operators():
        return {}
    from dagster_dataops.models.llm_operator import LLMOperator  # only in pipelines with models

    if not isinstance(operator, LLMOperator):
        return {}
    try:
        records = inputs[0].head(1)
        messages = operator.messages(records[0]) if records else ""
    except Exception:  # noqa: BLE001 - user code; the error file has the error of the record
        return {}
    turns = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    if not any(message.get("content") for message in turns):
        return {}
    text = "\n\n".join(
        f"**{cell(message.get('role'))}**\n\n{_content_of(message)}" for message in turns
    )
    return {key: dg.MetadataValue.md(in_window(text))}


def _content_of(message: Mapping[str, Any]) -> str:
    """Return the content of a message so that Markdown shows it as it is."""
    from dagster_dataops.models.attached_files import shown_content

    return fenced(shown_content(message.get("content"))[:_MAX_CHARACTERS])

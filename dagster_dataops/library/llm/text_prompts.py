"""`TextPrompt`: base class of operators that ask a model about one text."""

from collections.abc import Mapping
from typing import Any, ClassVar

from dagster_dataops.data import data_register
from dagster_dataops.foundation.override import override
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.models.llm_operator import LLMOperator
from dagster_dataops.models.prompt_templates import with_values
from dagster_dataops.records import Record

llm: Any = data_register.new_group("llm")


class TextPrompt(LLMOperator):
    """An operator that asks about the text of ``input_key``.

    Its templates see the text as ``text``, the columns by name, and the further `values`.

    Args:
        input_key: Column name, or a selector.
        **kwargs: As of `LLMOperator`.
    """

    _publishes_text = True
    shown: ClassVar[tuple[str, ...]] = ()
    """The attributes that the templates see, too, by name."""

    def __init__(self, input_key: str = "text", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._column = FieldKey(input_key)

    def set_format(self, form: dict[str, Any]) -> None:
        """Set the form of the replies, which the operator itself decides."""
        reason = "is decided by the operator; use llm.Extract for another one"
        self.require("response_format", fits=self.response_format is None, reason=reason)
        self.response_format = form

    @override
    def values(self, record: Record) -> Mapping[str, Any]:
        shown = {name: getattr(self, name) for name in self.shown}
        return with_values(super().values(record), {"text": self._column.text(record), **shown})

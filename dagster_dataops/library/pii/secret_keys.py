"""``pii.Secrets``: mask or report keys and tokens."""

from itertools import repeat
from typing import Any, Literal

from dagster_dataops.data import data_register
from dagster_dataops.library.analysis.text_spans import Spans, replaced
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.text_mapping import TextMapping
from dagster_dataops.operators.options.token_forms import secrets
from dagster_dataops.records import Record

pii: Any = data_register.new_group("pii")


class Secrets(pii):
    """Mask or report keys and tokens of well-known forms.

    Keys of AWS, Google and Stripe, tokens of GitHub, GitLab and Slack, JSON web tokens, and blocks
    of private keys. Reads ``input_key`` and writes ``output_key``. The kinds have the names that
    detect-secrets gives them.

    Args:
        input_key: The key of the text.
        output_key: Where the masked text is written; by default, ``input_key``.
        mode: ``"mask"`` replaces the secrets. ``"tag"`` leaves the text and writes the list of
            their kinds to ``secrets_key``, each once, empty for none. ``"both"`` does both.
        replacement: The text that replaces a secret.
        secrets_key: The key of the list of kinds.
    """

    def __init__(
        self,
        input_key: str = "text",
        output_key: str | None = None,
        *,
        mode: Literal["mask", "tag", "both"] = "mask",
        replacement: str = "<SECRET>",
        secrets_key: str = "secrets",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._replacement, self._masks = replacement, mode != "tag"
        self._secrets_key = secrets_key if mode != "mask" else None
        self._column = FieldKey(input_key)
        if self._secrets_key:
            self._column.checked_single("secrets_key takes those of one text")
        self._mapping = TextMapping(self._masked, input_key, output_key)

    def forward(self, record: Record) -> Record:
        if self._secrets_key:
            kinds = (secret.kind for secret in secrets(self._column.text(record)))
            record[self._secrets_key] = list(dict.fromkeys(kinds))
        return self._mapping(record) if self._masks else record

    def _masked(self, value: str) -> str:
        return replaced(value, secret_spans(value), repeat(self._replacement))


def secret_spans(text: str) -> Spans:
    """Yield the secrets in a text as spans."""
    return ((secret.start, secret.end) for secret in secrets(text))

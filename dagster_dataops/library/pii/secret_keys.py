"""``pii.Secrets``: mask or report keys and tokens."""

import re
from itertools import repeat
from typing import Any, Final, Literal

from dagster_dataops.data import data_register
from dagster_dataops.library.analysis.text_spans import Spans, replaced
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.text_mapping import TextMapping
from dagster_dataops.operators.secrets.token_forms import Form, secrets
from dagster_dataops.records import Record

pii: Any = data_register.new_group("pii")

# Known by what stands before them, not by their own form.
_IN_CONTEXT: Final = (
    Form(
        "Basic Auth Credentials",
        ("://",),
        re.compile(
            r"(?<=://)[^\s:/?#@\"'<>{}$]{0,80}:(?!(?i:pass(?:word|wd)?|pw|pwd|secret|token|x+)@)"
            r"([^\s:/?#@\"'<>{}()\[\]$%*]{3,120})@(?=[\w\[])"
        ),
    ),
    Form(
        "Secret Keyword",
        ("=", ":"),
        re.compile(
            r"(?i:passw(?:or)?d|passwd|pwd|passphrase|secret|api_?key|auth_?key|access_?key"
            r"|private_?key|access_?token|auth_?token|refresh_?token|client_?secret)"
            r"[\"']?\s{0,5}(?::=|=>|[:=])\s{0,5}"
            r"(?P<quote>[\"'])(?!(?i:pass|test|example|your|change|dummy|fake|secret\b|none|null|true"
            r"|false|todo|enter|invalid|x{3}|redacted))(?=[^\"']{0,80}[0-9!#%&*+/^~])"
            r"([^\s\"'<>{}$%\\]{6,120})(?P=quote)"
        ),
    ),
)


class Secrets(pii):
    """Mask or report keys and tokens of well-known forms.

    Keys of AWS, Azure, Google, OpenAI, Anthropic, Stripe, Twilio, SendGrid and other services,
    tokens of GitHub, GitLab, Hugging Face, npm, PyPI and Slack, JSON web tokens, blocks of private
    keys, passwords in URLs, and texts in quotes behind names such as ``password =``, if they are no
    placeholders. Reads ``input_key`` and writes ``output_key``. The kinds have the names that
    detect-secrets gives them, where it knows them.

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
            keys = secrets(self._column.text(record), _IN_CONTEXT)
            kinds = (secret.kind for secret in keys)
            record[self._secrets_key] = list(dict.fromkeys(kinds))
        return self._mapping(record) if self._masks else record

    def _masked(self, value: str) -> str:
        return replaced(value, secret_spans(value), repeat(self._replacement))


def secret_spans(text: str) -> Spans:
    """Yield the secrets in a text as spans."""
    return ((secret.start, secret.end) for secret in secrets(text, _IN_CONTEXT))

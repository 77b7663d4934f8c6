"""``pii.Secrets``: mask or report keys and tokens."""

import re
from collections.abc import Iterator
from itertools import repeat
from typing import Any, Final, Literal, NamedTuple

from dagster_dataops.data import data_register
from dagster_dataops.library.analysis.text_spans import Spans, replaced
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.text_mapping import TextMapping
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


class Secret(NamedTuple):
    """A secret in a text.

    Attributes:
        start: Position of its first character.
        end: Position after its last character.
        kind: The name that detect-secrets gives to it.
    """

    start: int
    end: int
    kind: str


class _Form(NamedTuple):
    """A form of secrets: one of ``needles`` is in each."""

    kind: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]


_FORMS: Final = (
    _Form(
        "AWS Access Key",
        ("A3T", "ABIA", "ACCA", "AKIA", "ASIA"),
        re.compile(r"(?<!\w)(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16}(?!\w)"),
    ),
    _Form(
        "GitHub Token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        re.compile(r"(?<!\w)(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_\w{22,255})(?!\w)"),
    ),
    _Form("GitLab Token", ("glpat-",), re.compile(r"(?<!\w)glpat-[\w-]{20,64}(?![\w-])")),
    _Form("Google API Key", ("AIza",), re.compile(r"(?<!\w)AIza[\w-]{35}(?![\w-])")),
    _Form(
        "Slack Token",
        ("xox", "hooks.slack.com"),
        re.compile(
            r"(?<!\w)xox[abeoprs]-[A-Za-z0-9-]{10,250}"
            r"|https://hooks\.slack\.com/services/T\w{8,20}/B\w{8,20}/\w{20,40}"
        ),
    ),
    _Form("Stripe Access Key", ("k_live_",), re.compile(r"(?<!\w)[rs]k_live_[A-Za-z0-9]{24,247}")),
    _Form(
        "JSON Web Token",
        ("eyJ",),
        re.compile(r"(?<![\w-])eyJ[\w-]{5,}+\.eyJ[\w-]{5,}+\.[\w-]++", re.ASCII),
    ),
)
_KEY_BEGIN: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")


def secrets(text: str) -> list[Secret]:
    """Return the secrets in a text, in order, without overlaps."""
    found = [*_tokens(text), *_private_keys(text)]
    if len(found) < 2:
        return found
    kept: list[Secret] = []
    for secret in sorted(found):
        if not kept or secret.start >= kept[-1].end:
            kept.append(secret)
    return kept


def secret_spans(text: str) -> Spans:
    """Yield the secrets in a text as spans."""
    return ((secret.start, secret.end) for secret in secrets(text))


def _tokens(text: str) -> Iterator[Secret]:
    for form in _FORMS:
        if any(needle in text for needle in form.needles):
            for match in form.pattern.finditer(text):
                yield Secret(*match.span(), form.kind)


def _private_keys(text: str) -> Iterator[Secret]:
    """Yield blocks of private keys; without an end, the first line alone."""
    if "PRIVATE KEY" not in text:
        return
    ends = [match.end() for match in _KEY_END.finditer(text)][::-1]
    for begin in _KEY_BEGIN.finditer(text):
        while ends and ends[-1] < begin.end():
            ends.pop()
        yield Secret(begin.start(), ends[-1] if ends else begin.end(), "Private Key")

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
    _Form("Stripe Access Key", ("whsec_",), re.compile(r"(?<!\w)whsec_[A-Za-z0-9+/]{32,64}={0,2}")),
    _Form(
        "OpenAI Token",
        ("sk-",),
        re.compile(
            r"(?<![\w-])sk-(?:(?:proj|svcacct|admin|None|service)-[\w-]{20,250}"
            r"|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}|[A-Za-z0-9]{40,64})(?![\w-])"
        ),
    ),
    _Form(
        "Anthropic API Key",
        ("sk-ant-",),
        re.compile(r"(?<![\w-])sk-ant-[a-z0-9]{2,10}-[\w-]{24,250}(?![\w-])"),
    ),
    _Form("OpenRouter API Key", ("sk-or-",), re.compile(r"(?<![\w-])sk-or-v\d-[a-f0-9]{40,80}")),
    _Form(
        "Hugging Face Token",
        ("hf_", "api_org_"),
        re.compile(r"(?<!\w)(?:hf_[A-Za-z]{34}|hf_[A-Za-z0-9]{34,40}|api_org_[A-Za-z]{34})(?!\w)"),
    ),
    _Form("NPM tokens", ("npm_",), re.compile(r"(?<!\w)npm_[A-Za-z0-9]{36}(?!\w)")),
    _Form("NPM tokens", ("_authToken",), re.compile(r"(?<=_authToken=)[\w+/=-]{20,100}")),
    _Form("PyPI Token", ("pypi-",), re.compile(r"(?<!\w)pypi-AgE[\w-]{50,1000}(?![\w-])")),
    _Form(
        "SendGrid API Key",
        ("SG.",),
        re.compile(r"(?<!\w)SG\.[\w-]{16,32}\.[\w-]{16,64}(?![\w-])"),
    ),
    _Form(
        "Twilio API Key",
        ("AC", "SK"),
        re.compile(r"(?<!\w)(?:AC|SK)(?=[0-9a-f]{0,31}[a-f])[0-9a-f]{32}(?!\w)"),
    ),
    _Form(
        "Azure Storage Account access key",
        ("AccountKey=", "SharedAccessKey="),
        re.compile(r"(?<=AccountKey=)[A-Za-z0-9+/]{86}==|(?<=SharedAccessKey=)[A-Za-z0-9+/]{43}="),
    ),
    _Form(
        "Azure AD Client Secret",
        ("Q~",),
        re.compile(r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])"),
    ),
    _Form(
        "AWS Access Key",
        ("AWS", "aws", "Aws"),
        re.compile(
            r"(?i:aws).{0,30}?(?i:secret|key).{0,20}?[:=]\s{0,3}[\"']?([A-Za-z0-9/+]{40})(?![\w/+=])"
        ),
    ),
    _Form("Mailchimp Access Key", ("-us",), re.compile(r"(?<!\w)[0-9a-f]{32}-us[0-9]{1,2}(?!\w)")),
    _Form(
        "Telegram Bot Token",
        (":AA",),
        re.compile(r"(?<![\w:])[0-9]{8,10}:AA[\w-]{33}(?![\w-])"),
    ),
    _Form(
        "Discord Bot Token",
        ("M", "N", "O"),
        re.compile(r"(?<![\w-])[MNO][A-Za-z0-9]{23,27}\.[\w-]{6,7}\.[\w-]{27,38}(?![\w-])"),
    ),
    _Form(
        "Square OAuth Secret",
        ("sq0", "EAAA"),
        re.compile(r"(?<!\w)(?:sq0(?:atp|csp)-[\w-]{22,43}|EAAA[\w-]{60})(?![\w-])"),
    ),
    _Form(
        "Shopify Token", ("shp",), re.compile(r"(?<!\w)shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}(?!\w)")
    ),
    _Form("DigitalOcean Token", ("_v1_",), re.compile(r"(?<!\w)do[opr]_v1_[a-f0-9]{64}(?!\w)")),
    _Form("Databricks Token", ("dapi",), re.compile(r"(?<!\w)dapi[a-f0-9]{32}(?:-\d)?(?!\w)")),
    _Form("Groq API Key", ("gsk_",), re.compile(r"(?<!\w)gsk_[A-Za-z0-9]{48,56}(?!\w)")),
    _Form("Replicate Token", ("r8_",), re.compile(r"(?<!\w)r8_[A-Za-z0-9]{37,40}(?!\w)")),
    _Form("xAI API Key", ("xai-",), re.compile(r"(?<!\w)xai-[A-Za-z0-9]{60,100}(?!\w)")),
    _Form("Google OAuth Secret", ("GOCSPX-",), re.compile(r"(?<!\w)GOCSPX-[\w-]{28}(?![\w-])")),
    _Form("Linear API Key", ("lin_api_",), re.compile(r"(?<!\w)lin_api_[A-Za-z0-9]{40}(?!\w)")),
    _Form("Vault Token", ("hvs.", "hvb."), re.compile(r"(?<!\w)hv[sb]\.[\w-]{24,300}(?![\w-])")),
    _Form(
        "Basic Auth Credentials",
        ("://",),
        re.compile(
            r"(?<=://)[^\s:/?#@\"'<>{}$]{0,80}:(?!(?i:pass(?:word|wd)?|pw|pwd|secret|token|x+)@)"
            r"([^\s:/?#@\"'<>{}()\[\]$%*]{3,120})@(?=[\w\[])"
        ),
    ),
    _Form(
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
                yield Secret(*match.span(match.lastindex or 0), form.kind)


def _private_keys(text: str) -> Iterator[Secret]:
    """Yield blocks of private keys; without an end, the first line alone."""
    if "PRIVATE KEY" not in text:
        return
    ends = [match.end() for match in _KEY_END.finditer(text)][::-1]
    for begin in _KEY_BEGIN.finditer(text):
        while ends and ends[-1] < begin.end():
            ends.pop()
        yield Secret(begin.start(), ends[-1] if ends else begin.end(), "Private Key")

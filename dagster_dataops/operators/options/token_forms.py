"""Keys and tokens that are known by their form, such as those of clouds, and private keys."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple


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

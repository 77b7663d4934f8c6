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


class Form(NamedTuple):
    """A form of secrets.

    Attributes:
        kind: The name that detect-secrets gives to it, where it knows it.
        needles: One of them is in or before each.
        pattern: Its last group is the secret, or the whole of it if it has none.
    """

    kind: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]


_FORMS: Final = (
    Form(
        "AWS Access Key",
        ("A3T", "ABIA", "ACCA", "AKIA", "ASIA"),
        re.compile(r"(?<!\w)(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16}(?!\w)"),
    ),
    Form(
        "GitHub Token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        re.compile(r"(?<!\w)(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_\w{22,255})(?!\w)"),
    ),
    Form("GitLab Token", ("glpat-",), re.compile(r"(?<!\w)glpat-[\w-]{20,64}(?![\w-])")),
    Form("Google API Key", ("AIza",), re.compile(r"(?<!\w)AIza[\w-]{35}(?![\w-])")),
    Form(
        "Slack Token",
        ("xox", "hooks.slack.com"),
        re.compile(
            r"(?<!\w)xox[abeoprs]-[A-Za-z0-9-]{10,250}"
            r"|https://hooks\.slack\.com/services/T\w{8,20}/B\w{8,20}/\w{20,40}"
        ),
    ),
    Form("Stripe Access Key", ("k_live_",), re.compile(r"(?<!\w)[rs]k_live_[A-Za-z0-9]{24,247}")),
    Form("Stripe Access Key", ("whsec_",), re.compile(r"(?<!\w)whsec_[A-Za-z0-9+/]{32,64}={0,2}")),
    Form(
        "OpenAI Token",
        ("sk-",),
        re.compile(
            r"(?<![\w-])sk-(?:(?:proj|svcacct|admin|None|service)-[\w-]{20,250}"
            r"|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}|[A-Za-z0-9]{40,64})(?![\w-])"
        ),
    ),
    Form(
        "Anthropic API Key",
        ("sk-ant-",),
        re.compile(r"(?<![\w-])sk-ant-[a-z0-9]{2,10}-[\w-]{24,250}(?![\w-])"),
    ),
    Form("OpenRouter API Key", ("sk-or-",), re.compile(r"(?<![\w-])sk-or-v\d-[a-f0-9]{40,80}")),
    Form(
        "Hugging Face Token",
        ("hf_", "api_org_"),
        re.compile(r"(?<!\w)(?:hf_[A-Za-z]{34}|hf_[A-Za-z0-9]{34,40}|api_org_[A-Za-z]{34})(?!\w)"),
    ),
    Form("NPM tokens", ("npm_",), re.compile(r"(?<!\w)npm_[A-Za-z0-9]{36}(?!\w)")),
    Form("NPM tokens", ("_authToken",), re.compile(r"(?<=_authToken=)[\w+/=-]{20,100}")),
    Form("PyPI Token", ("pypi-",), re.compile(r"(?<!\w)pypi-AgE[\w-]{50,1000}(?![\w-])")),
    Form(
        "SendGrid API Key",
        ("SG.",),
        re.compile(r"(?<!\w)SG\.[\w-]{16,32}\.[\w-]{16,64}(?![\w-])"),
    ),
    Form(
        "Twilio API Key",
        ("AC", "SK"),
        re.compile(r"(?<!\w)(?:AC|SK)(?=[0-9a-f]{0,31}[a-f])[0-9a-f]{32}(?!\w)"),
    ),
    Form(
        "Azure Storage Account access key",
        ("AccountKey=", "SharedAccessKey="),
        re.compile(r"(?<=AccountKey=)[A-Za-z0-9+/]{86}==|(?<=SharedAccessKey=)[A-Za-z0-9+/]{43}="),
    ),
    Form(
        "Azure AD Client Secret",
        ("Q~",),
        re.compile(r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])"),
    ),
    Form(
        "AWS Access Key",
        ("AWS", "aws", "Aws"),
        re.compile(
            r"(?i:aws).{0,30}?(?i:secret|key).{0,20}?[:=]\s{0,3}[\"']?([A-Za-z0-9/+]{40})(?![\w/+=])"
        ),
    ),
    Form("Mailchimp Access Key", ("-us",), re.compile(r"(?<!\w)[0-9a-f]{32}-us[0-9]{1,2}(?!\w)")),
    Form(
        "Telegram Bot Token",
        (":AA",),
        re.compile(r"(?<![\w:])[0-9]{8,10}:AA[\w-]{33}(?![\w-])"),
    ),
    Form(
        "Discord Bot Token",
        ("M", "N", "O"),
        re.compile(r"(?<![\w-])[MNO][A-Za-z0-9]{23,27}\.[\w-]{6,7}\.[\w-]{27,38}(?![\w-])"),
    ),
    Form(
        "Square OAuth Secret",
        ("sq0", "EAAA"),
        re.compile(r"(?<!\w)(?:sq0(?:atp|csp)-[\w-]{22,43}|EAAA[\w-]{60})(?![\w-])"),
    ),
    Form("Shopify Token", ("shp",), re.compile(r"(?<!\w)shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}(?!\w)")),
    Form("DigitalOcean Token", ("_v1_",), re.compile(r"(?<!\w)do[opr]_v1_[a-f0-9]{64}(?!\w)")),
    Form("Databricks Token", ("dapi",), re.compile(r"(?<!\w)dapi[a-f0-9]{32}(?:-\d)?(?!\w)")),
    Form("Groq API Key", ("gsk_",), re.compile(r"(?<!\w)gsk_[A-Za-z0-9]{48,56}(?!\w)")),
    Form("Replicate Token", ("r8_",), re.compile(r"(?<!\w)r8_[A-Za-z0-9]{37,40}(?!\w)")),
    Form("xAI API Key", ("xai-",), re.compile(r"(?<!\w)xai-[A-Za-z0-9]{60,100}(?!\w)")),
    Form("Google OAuth Secret", ("GOCSPX-",), re.compile(r"(?<!\w)GOCSPX-[\w-]{28}(?![\w-])")),
    Form("Linear API Key", ("lin_api_",), re.compile(r"(?<!\w)lin_api_[A-Za-z0-9]{40}(?!\w)")),
    Form("Vault Token", ("hvs.", "hvb."), re.compile(r"(?<!\w)hv[sb]\.[\w-]{24,300}(?![\w-])")),
    Form(
        "JSON Web Token",
        ("eyJ",),
        re.compile(r"(?<![\w-])eyJ[\w-]{5,}+\.eyJ[\w-]{5,}+\.[\w-]++", re.ASCII),
    ),
)
_KEY_BEGIN: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")


def secrets(text: str, more: tuple[Form, ...] = ()) -> list[Secret]:
    """Return the secrets in a text, in order, without overlaps.

    Args:
        text: The text.
        more: Forms to look for beside the known ones.
    """
    matches = [*_tokens(text, _FORMS + more), *_private_keys(text)]
    if len(matches) < 2:
        return matches
    kept: list[Secret] = []
    for secret in sorted(matches):
        if not kept or secret.start >= kept[-1].end:
            kept.append(secret)
    return kept


def _tokens(text: str, forms: tuple[Form, ...]) -> Iterator[Secret]:
    for form in forms:
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

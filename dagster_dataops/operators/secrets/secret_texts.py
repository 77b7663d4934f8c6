"""Find and hide secrets in texts: by their value in all forms, and by the words beside them."""

import binascii
import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from dagster_dataops.operators.secrets.secret_names import is_secret, names_password

if TYPE_CHECKING:
    from dagster_dataops.operators.secrets.token_forms import Secret

HIDDEN: Final = "(hidden)"
MIN_LENGTH: Final = 4  # characters; shorter texts also occur by chance
_MIN_ENCODED: Final = 8  # characters of a part of a base64 text
_MIN_LINE: Final = 16  # characters of a line of a secret with several lines
_PLAIN: Final = r"[^:= ]*"  # no name with a value
_STEMS: Final = (  # one of these is in each name of a secret
    *("pass", "pwd", "secret", "token", "key", "auth", "cred", "bearer", "cookie", "jwt", "dsn"),
    *("url", "uri", "database", "db", "conn", "redis", "mongo", "postgres", "webhook", "amqp"),
)
_LONGEST_TOKEN_FREE: Final = 16  # characters; no token of a known form is that short

# Patterns that most runs do not need: `re` compiles each on its first use.
_LOGIN_IN_URL: Final = r"(?i)((?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,40}+://)([^\s/?#'\"]+)@"
_IN_QUERY: Final = r"([?&;]([\w.-]+)=)([^\s&#'\"]+)"
_IN_YAML: Final = r"(([\w.-]+)[\"']?\s*:\s+)(?![\[{|>&*!\s]|\{\{)[^,}\]\n]+"
_SCHEMES: Final = r"(?:Bearer|Basic|Token|ApiKey|Api-Key|Digest|Negotiate)"
_IN_HEADER: Final = r"\b((?:Bearer|Basic) )([\w.~+/=-]{6,})"
# A name and its value: a header, a variable, an entry of JSON or of a connection string.
_NAMED: Final = r"""(?<![\w.-])(-{0,2}[A-Za-z_][\w.-]{0,63}+)\\*["']?\s*(?::|=>?)\s*"""
_VALUE: Final = (
    r"""(?i)(?P<quote>\\*["'])(?P<quoted>.+?)(?<!\\)(?P=quote)"""
    rf"""|(?P<bare>(?:{_SCHEMES}\s+)?[^\s,;&"'<>{{}}\[\]()$\\][^\s,;&"'<>{{}}\[\]()]*)"""
)
_COOKIES: Final = r"(?i)(?P<before>\b(?:Set-)?Cookie\s*:\s*)(?P<value>\S.*)"
_FLAG: Final = r"(?P<before>(?<!\S)--?(?P<name>[A-Za-z][\w-]*)[ ]+)(?P<value>[^\s-]\S*)"
_NO_SECRETS: Final = frozenset({"none", "null", "true", "false", "...", HIDDEN, "hidden", "str"})


class Secrets:
    """Texts that are hidden in other texts.

    A text is found as it is, quoted in a URL, escaped as in ``repr`` or JSON, as the name of a
    variable, in base64 (also behind a user name, as in a Basic header) and in hexadecimal digits.

    Args:
        texts: The texts. Those of fewer than 4 characters are not hidden: they also occur by
            chance.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        known = {text.strip() for text in texts}
        known = {text for text in known if len(text) >= MIN_LENGTH}
        self._forms = sorted(
            {form for text in known for form in _forms(text)}, key=len, reverse=True
        )
        self._escaped = [_Escaped.of(text) for text in sorted(known, key=len, reverse=True)]

    def __bool__(self) -> bool:
        return bool(self._forms)

    def are_in(self, text: str) -> bool:
        """Return whether one of them is in a text."""
        return self.hide_values(text) != text

    def hide(self, text: str) -> str:
        """Return a text without them, and without logins, keys and tokens that their form tells."""
        return without_logins(self.hide_values(text))

    def hide_values(self, text: str) -> str:
        """Return a text without them."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN)
        for secret in self._escaped:
            if secret.needle in text:
                text = secret.pattern.sub(HIDDEN, text)
        return text


class _Escaped(NamedTuple):
    """A secret with any of its characters quoted in a URL, or escaped.

    Attributes:
        needle: Its longest part that is never escaped.
        pattern: What finds it.
    """

    needle: str
    pattern: re.Pattern[str]

    @classmethod
    def of(cls, secret: str) -> "_Escaped":
        """Return the forms of a secret."""
        needle = max(re.findall(r"[A-Za-z0-9]*", secret), key=len)
        return cls(needle, re.compile("".join(map(_any_form, secret))))


def _any_form(character: str) -> str:
    """Return a pattern of a character as it is, and as URLs, Python, JSON and HTML escape it.

    In the name of a variable or a class it is an underscore.
    """
    if character.isascii() and character.isalnum():
        return character
    if character == "\\":
        return r"\\{1,4}"
    from html import escape  # slow to import

    data = character.encode(errors="surrogateescape")
    percents = "".join(f"%{byte:02x}" for byte in data)
    hexes = "".join(rf"\\+x{byte:02x}" for byte in data)
    plain = ascii(character)[1:-1].lstrip("\\")
    entities = re.escape(escape(character))
    space = r"|\+" if character == " " else ""
    forms = rf"{re.escape(character)}|_|{percents}|{hexes}|{re.escape(plain)}|{entities}{space}"
    return rf"\\*(?i:{forms})"


def _forms(text: str) -> Iterator[str]:
    """Yield the forms in which messages have a secret."""
    data = text.encode(errors="surrogateescape")
    yield text
    yield from (repr(text)[1:-1], repr(data)[2:-1], json.dumps(text)[1:-1])
    yield data.hex()
    yield from _in_base64(data)
    lines = text.splitlines()
    yield from (line for line in lines if len(lines) > 1 and len(line) >= _MIN_LINE)


def _in_base64(data: bytes) -> Iterator[str]:
    """Yield the characters of base64 texts that depend on ``data`` alone, at each position."""
    for before in range(3):
        encoded = binascii.b2a_base64(bytes(before) + data, newline=False).decode()
        first = (before * 8 + 5) // 6
        last = (before + len(data)) * 8 // 6
        for part in (encoded[first:last], encoded.rstrip("=")[first:]):
            if len(part) >= _MIN_ENCODED:
                yield from (part, part.replace("+", "-").replace("/", "_"))


def without_logins(text: str) -> str:
    """Return a text without logins in URLs, values of secret names, and tokens of known forms.

    Names are those of query strings, HTTP headers, variables, flags and connection strings.
    """
    if "://" in text:
        text = re.sub(_LOGIN_IN_URL, rf"\g<1>{HIDDEN}@", text)
    if "=" in text and re.search(_IN_QUERY, text):
        text = re.sub(_IN_QUERY, lambda m: m[1] + HIDDEN if _is_in_query(m[2]) else m[0], text)
    if _may_name(text):
        text = re.sub(_COOKIES, rf"\g<before>{HIDDEN}", text) if "ookie" in text else text
        text = _without(text, _named_values(text))
        text = re.sub(_FLAG, _without_flag, text) if "-" in text else text
    if "Bearer" in text or "Basic" in text:
        text = re.sub(_IN_HEADER, rf"\g<1>{HIDDEN}", text)
    return _without_tokens(text) if len(text) > _LONGEST_TOKEN_FREE else text


def _without_flag(match: re.Match[str]) -> str:
    return match["before"] + HIDDEN if is_secret(match["name"]) else match[0]


def without_logins_in_trace(text: str) -> str:
    """Return a traceback without logins, as `without_logins`, in the lines that are no code."""
    lines = text.splitlines(keepends=True)
    return "".join(line if _is_code(line) else without_logins(line) for line in lines)


def _is_code(line: str) -> bool:
    """Return whether a line of a traceback is that of a frame, and of no exception of a group."""
    return line.startswith("  ") and line.lstrip()[:1] not in {"|", "+"}


def _may_name(text: str) -> bool:
    """Return whether a text may have the name of a secret before its value."""
    if re.fullmatch(_PLAIN, text):
        return False
    lower = text.lower()
    return any(stem in lower for stem in _STEMS)


def without_named(text: str) -> str:
    """Return an excerpt of a YAML file without the values of secret keys."""
    return re.sub(
        _IN_YAML, lambda m: m[1] + HIDDEN if is_secret(m[2]) else m[0], without_logins(text)
    )


def _known_tokens(text: str) -> list["Secret"]:
    from dagster_dataops.operators.secrets.token_forms import secrets  # many patterns

    return secrets(text)


def secrets_in(text: str) -> Iterator[str]:
    """Yield the secrets in a text, as `without_logins` finds them."""
    if "://" in text:
        for login in re.finditer(_LOGIN_IN_URL, text):
            yield from password_of(login[2])
    for query in re.finditer(_IN_QUERY, text) if "=" in text else ():
        if _is_in_query(query[2]):
            yield from (query[3], unquote(query[3]))
    if _may_name(text):
        yield from _named_in(text)
    if "Bearer" in text or "Basic" in text:
        yield from (match[2] for match in re.finditer(_IN_HEADER, text))
    if len(text) > _LONGEST_TOKEN_FREE:
        yield from (text[token.start : token.end] for token in _known_tokens(text))


def _named_in(text: str) -> Iterator[str]:
    """Yield the values of secret names, cookies and flags; of a header also without its scheme."""
    for start, end in _named_values(text):
        yield from (text[start:end], text[start:end].rpartition(" ")[2])
    for cookies in re.finditer(_COOKIES, text):
        yield from (cookie.partition("=")[2].strip() for cookie in cookies["value"].split(";"))
    yield from (match["value"] for match in re.finditer(_FLAG, text) if is_secret(match["name"]))


def password_of(login: str) -> Iterator[str]:
    """Yield the password of the login in a URL, as it is there and unquoted.

    A login without a user name is a token.
    """
    user, mark, password = login.partition(":")
    yield from (password, unquote(password)) if mark and password else (user, unquote(user))


def _is_in_query(name: str) -> bool:
    return is_secret(name) or name.lower() in {"sig", "signature", "x-amz-signature"}


def _named_values(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the values of secret names."""
    end, value = 0, re.compile(_VALUE)
    for named in re.finditer(_NAMED, text):
        if named.end() < end or not is_secret(named[1]):
            continue
        match = value.match(text, named.end())
        if match is not None and not _is_harmless(match, named[1]):
            start, end = match.span("bare" if match["quote"] is None else "quoted")
            yield start, end


def _is_harmless(match: re.Match[str], name: str) -> bool:
    """Return whether the value of a secret name is no secret: nothing, or the number of tokens."""
    value = match["quoted"] or match["bare"]
    if value.lower() in _NO_SECRETS or HIDDEN in value:
        return True
    return value.replace(".", "", 1).isdigit() and not match["quote"] and not names_password(name)


def _without_tokens(text: str) -> str:
    return _without(text, ((token.start, token.end) for token in _known_tokens(text)))


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    at, parts = 0, []
    for start, end in spans:
        parts += [text[at:start], HIDDEN]
        at = end
    return "".join([*parts, text[at:]]) if parts else text

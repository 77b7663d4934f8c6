"""Find phone numbers, payment cards and bank accounts in a text."""

import re
from functools import partial
from typing import Final

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.text_spans import Finder, Spans
from dagster_dataops.library.option_values import needs_extra

# A pattern that begins with a set of characters is fast, so look-behinds follow its first one.
_PHONE: Final = re.compile(
    r"[+(0-9](?<![\w+].)(?:"
    r"(?<=\+)[0-9]{1,3}[ .-]?(?:\([0-9]{1,4}\)[ .-]?)?[0-9]{1,4}(?:[ .-]?[0-9]{2,4}){1,4}"
    r"|(?:(?<=\()[0-9]{3}\) ?|(?<=[0-9])[0-9]{2}[ .-])[0-9]{3}[ .-][0-9]{4}"  # North American
    r")(?![\w-])"
)
_CARD: Final = re.compile(r"[2-6](?<![\w.-].)(?:[ -]?[0-9]){12,18}(?![\w-]|\.[0-9])")
# The groups in which card numbers are written, and how those of the networks begin.
_CARD_GROUPS: Final = re.compile(
    r"[0-9]+|[0-9]{4}([ -])[0-9]{4}\1[0-9]{4}\1[0-9]{1,4}(?:\1[0-9]{1,3})?"
    r"|[0-9]{4}([ -])[0-9]{6}\2[0-9]{4,5}"
)
_NETWORK: Final = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|5[1-5][0-9]{14}"
    r"|(?:222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[689][0-9])[0-9]{11}|35(?:2[89]|[3-8][0-9])[0-9]{12,15}"
    r"|6(?:011|4[4-9][0-9]|5[0-9]{2}|2[0-9]{2})[0-9]{12,15}|(?:50|5[6-9]|6[0-9])[0-9]{11,17}"
)
_GROUP_BEFORE: Final = re.compile(r"(?:\b|x)[0-9A-Fa-f]{4}[ \n]\Z")
_GROUP_AFTER: Final = re.compile(r"[ \n](?:0x)?[0-9A-Fa-f]{4}\b")
_IBAN_START: Final = re.compile(r"[A-Z](?<!\w.)[A-Z][0-9]{2}(?=[ A-Z0-9])")
_NO_DIGIT: Final = re.compile(r"\D+")
# Characters of an account number, and the countries (ISO 13616).
_COUNTRIES: Final = (
    "15:NO 16:BE 18:DK,FI,FK,FO,GL,NL,SD 19:MK,SI 20:AT,BA,EE,KZ,LT,LU,MN,XK 21:CH,HR,LI,LV "
    "22:BG,BH,CR,DE,GB,GE,IE,ME,RS,VA 23:AE,GI,IL,IQ,OM,SO,TL 24:AD,CZ,ES,MD,PK,RO,SA,SE,SK,TN,VG "
    "25:LY,PT,ST 26:IS,TR 27:BI,DJ,FR,GR,IT,MC,MR,SM 28:AL,AZ,BY,CY,DO,GT,HU,LB,NI,PL,SV "
    "29:BR,EG,PS,QA,UA 30:JO,KW,MU,YE 31:MT,SC 32:LC 33:RU"
)


def _pattern(length: int) -> re.Pattern[str]:
    return re.compile(rf"[A-Z0-9]{{4}}(?: ?[A-Z0-9]){{{length - 4}}}(?![A-Za-z0-9])")


_IBANS: Final = {
    country: _pattern(int(item[:2]))
    for item in _COUNTRIES.split(" ")
    for country in item[3:].split(",")
}


def phones(text: str) -> Spans:
    """Yield phone numbers: international ones with a plus, and ten digits in American groups."""
    for match in _PHONE.finditer(text):
        if 8 <= len(_NO_DIGIT.sub("", match[0])) <= 15:
            yield match.span()


def phones_of(region: str) -> Finder:
    """Return a function that finds phone numbers by the plans of all countries.

    National forms are those of ``region``, the ISO 3166-1 code of a country.
    """
    with needs_extra("pii.Replace with phone_region", "phone"):
        import phonenumbers
    if region not in phonenumbers.SUPPORTED_REGIONS:
        msg = f"phone_region is {region!r}; use an ISO 3166-1 code of a country such as 'DE'"
        raise DefinitionError(msg)
    return partial(_phones_in, region)


def _phones_in(region: str, text: str) -> Spans:
    import phonenumbers

    if _DIGITS.search(text):
        for match in phonenumbers.PhoneNumberMatcher(text, region):
            yield match.start, match.end


_DIGITS: Final = re.compile(r"\d\D{0,4}\d\D{0,4}\d")


def cards(text: str) -> Spans:
    """Yield numbers of payment cards: of a network, in usual groups, with a valid check digit."""
    for match in _CARD.finditer(text):
        digits = _NO_DIGIT.sub("", match[0])
        if (
            _CARD_GROUPS.fullmatch(match[0])
            and _NETWORK.fullmatch(digits)
            and len(set(digits)) > 1
            and not _is_in_table(text, *match.span())
            and _has_check_digit(digits)
        ):
            yield match.span()


def _is_in_table(text: str, start: int, end: int) -> bool:
    """Return whether groups of four characters come before or after in the same way."""
    before = _GROUP_BEFORE.search(text, max(0, start - 6), start)
    return before is not None or _GROUP_AFTER.match(text, end) is not None


def _has_check_digit(digits: str) -> bool:
    values = [int(digit) for digit in reversed(digits)]
    doubled = (sum(divmod(2 * value, 10)) for value in values[1::2])
    return (sum(values[::2]) + sum(doubled)) % 10 == 0


def ibans(text: str) -> Spans:
    """Yield international bank account numbers with the length of their country, checked."""
    place = 0
    for start in _IBAN_START.finditer(text):
        pattern = _IBANS.get(start[0][:2]) if start.start() >= place else None
        match = pattern.match(text, start.start()) if pattern else None
        if match and _has_remainder_one(match[0].replace(" ", "")):
            place = match.end()
            yield match.span()


def _has_remainder_one(number: str) -> bool:
    """Return whether the check digits of an account number are right (ISO 7064, mod 97)."""
    return int("".join(str(int(char, 36)) for char in number[4:] + number[:4])) % 97 == 1

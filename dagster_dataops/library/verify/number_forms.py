r"""Numbers in their usual forms, exactly, and answers without marks that do not change them."""

import re
from fractions import Fraction
from typing import Final, NamedTuple

_LONGEST_NUMBER: Final = 100  # characters; longer ones are compared as texts
_LARGEST_EXPONENT: Final = 1000
_MARKS: Final = str.maketrans(
    {
        **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # of full width
        **dict.fromkeys("−\u2013", "-"),
        **dict.fromkeys("\u00a0\u2009\u202f", " "),
        **dict.fromkeys("。．", "."),
        "∅": r"\emptyset ",
        "×": r"\times ",
        "·": r"\cdot ",
        "π": r"\pi ",
        "∈": r"\in ",
        "∪": r"\cup ",
        "∞": r"\infty ",
        "≤": r"\leq ",
        "≥": r"\geq ",
        "≠": r"\neq ",
        "±": r"\pm ",
        "÷": r"\div ",
        "\x00": None,
    }
)
_JOINT: Final = re.compile(r"\\text\{\s*(?:or|and)\s*\}")
_TEXT: Final = re.compile(r"\\(?:text|mathrm|textbf|mathbf|mbox)\{([^{}]*)\}")
_ESCAPED: Final = re.compile(r"\\([%{}])")
_DROPPED: Final = re.compile(
    r"(\\\\)|\\(?:left|right|displaystyle)(?![A-Za-z])|\\[,;:! ()\[\]]"
    r"|\^\{?\\circ(?![A-Za-z])\}?|°"
)
_SPACES: Final = re.compile(r"(\\[A-Za-z]+)?\s+")
_COMMAND: Final = re.compile(r"\\[A-Za-z]+|[^\\]+|\\")
_PLUS: Final = re.compile(r"(?:^|(?<=[(\[{,]))\+")
_DOLLARS: Final = re.compile(r"\s*\$([^$]*[^$\\])\$\s*")
_OTHER_NAMES: Final = {
    r"\dfrac": r"\frac",
    r"\tfrac": r"\frac",
    r"\le": r"\leq",
    r"\ge": r"\geq",
    r"\ne": r"\neq",
    r"\emptyset": "{}",
    r"\varnothing": "{}",
}

_FRACTION: Final = re.compile(
    r"([+-]?[0-9]*)(?:\\frac\{?(-?[0-9.]+)\}?\{?(-?[0-9.]+)\}?| ([0-9]+)/([0-9]+))"
)
_SHORT_FRACTION: Final = re.compile(r"(-?)\\frac([0-9])([0-9])")
_THOUSANDS: Final = re.compile(
    r"[+-]?[0-9]{1,3}(?:(?:,[0-9]{3})+|(?: [0-9]{3})+|(?:'[0-9]{3})+)(?:\.[0-9]+)?"
)
# As in most of Europe: 1.234.567, or with a comma before one, two or many decimals.
_EUROPEAN: Final = re.compile(
    r"[+-]?[0-9]{1,3}(?:(?:\.[0-9]{3}){2,}(?:,[0-9]+)?|(?:\.[0-9]{3})+,[0-9]{1,2})"
)
_GROUPING: Final = str.maketrans("", "", ",' ")
_NUMBER: Final = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?([0-9]{1,5}))?", re.ASCII
)
_POWER: Final = re.compile(
    r"([+-]?)(?:([0-9]*\.?[0-9]+)(?:\\times|\\cdot|\*) ?)?"
    r"([0-9]*\.?[0-9]+)\^(?:\{([+-]?[0-9]{1,4})\}|([0-9]|-[0-9]{1,4}))"
)
_REPEATING: Final = re.compile(
    r"([+-]?)([0-9]*)\.([0-9]*)(?:\\overline\{([0-9]+)\}|\(([0-9]+)\)"
    r"|(\\dot\{?[0-9]\}?(?:[0-9]*\\dot\{?[0-9]\}?)?))"
)
_NO_DIGIT: Final = re.compile("[^0-9]")
_BOLD: Final = re.compile(r"\s*\*\*([^*]+)\*\*\s*")

# Units by their usual names, with the others that mean the same.
_UNITS: Final = (
    "mm=millimeter,millimetre cm=centimeter,centimetre m=meter,metre km=kilometer,kilometre "
    "in=inch,inche ft=foot,feet yd=yard mi=mile mg=milligram g=gram kg=kilogram,kilo t=tonne,ton "
    "lb=pound,lbs oz=ounce ml=milliliter,millilitre l=liter,litre s=sec,second min=minute "
    "h=hr,hour day week month year n=newton j=joule w=watt kw=kilowatt v=volt a=ampere,amp "
    "k=kelvin pa=pascal hz=hertz mol=mole rad=radian deg=degree $=dollar,usd ct=cent €=euro,eur "
    "£=gbp unit"
)
_SIGNS: Final = {"\\$": "$", "$": "$", "€": "€", "£": "£"}


def _unit_names() -> dict[str, str]:
    names = {}
    for item in _UNITS.split():
        name, _, others = item.partition("=")
        for spelling in (name, *filter(None, others.split(","))):
            names[spelling] = name
            if len(spelling) > 1:
                names[f"{spelling}s"] = name
    return names


_NAMES: Final = _unit_names()
_NAME: Final = "|".join(sorted((re.escape(name) for name in _NAMES), key=len, reverse=True))
_UNIT: Final = re.compile(
    rf"(square|cubic|sq)?\.?({_NAME})\.?(?:\^?\{{?([23])\}}?)?"
    rf"(?:(?:/|per)({_NAME})(?:\^?\{{?([23])\}}?)?)?",
)
_UNIT_STARTS: Final = re.compile(r"\x00|(?<=[0-9})!%]) ?(?=[A-Za-z€£])")
_DEGREES: Final = re.compile(r"(?:\^\{?\\circ\}?|°)\s*\Z")
_SHAPES: Final = {"square": "2", "sq": "2", "cubic": "3"}
_LONGEST_UNIT: Final = 40


class PlainAnswer(NamedTuple):
    """An answer without marks that do not change its value, and the usual name of its unit."""

    text: str
    unit: str


def plain_answer(answer: str) -> PlainAnswer:
    """Return an answer without marks that do not change its value, and its unit."""
    for marks in (_BOLD, _DOLLARS):
        if whole := marks.fullmatch(answer):
            answer = whole[1]
    answer = _JOINT.sub(",", answer.translate(_MARKS)).replace("{,}", ",").strip()
    sign = next((sign for sign in _SIGNS if answer.startswith(sign)), "")
    answer = answer.removeprefix(sign)
    marked = _without_marks(_TEXT.sub("\x00\\1", answer))
    text = marked.replace("\x00", "")
    if sign:
        return PlainAnswer(text, _SIGNS[sign])
    for match in _UNIT_STARTS.finditer(marked, max(0, len(marked) - _LONGEST_UNIT)):
        value, unit = marked[: match.start()].replace("\x00", ""), marked[match.end() :]
        name = _unit(unit)
        named = match[0] == "\x00" or len(unit) > 1
        if name and named and value and (match[0] == "\x00" or number_of(value) is not None):
            return PlainAnswer(value, name)
    return PlainAnswer(text, "deg" if _DEGREES.search(answer) else "")


def _unit(text: str) -> str:
    match = _UNIT.fullmatch(text)
    if match is None:
        return ""
    shape, name, power, below, lower = match.groups()
    power = _SHAPES.get(shape or "", power or "")
    return _NAMES[name] + power + (f"/{_NAMES[below]}{lower or ''}" if below else "")


def _without_marks(text: str) -> str:
    text = _DROPPED.sub(r"\1", _ESCAPED.sub(r"\1", text))
    text = _SPACES.sub(_space, text.strip().replace("\\$", "").replace("$", ""))
    lowered = "".join(map(_lowered, _COMMAND.findall(text.rstrip("."))))
    return _PLUS.sub("", lowered)


def _space(match: re.Match[str]) -> str:
    """Return the space that is needed: between digits, and behind a command before a letter."""
    before = match.string[match.start() - 1 : match.start()] if match.start() else ""
    after = match.string[match.end() : match.end() + 1]
    if match[1]:
        return f"{match[1]} " if after.isalpha() else match[1]
    return " " if before.isdigit() and after.isdigit() else ""


def _lowered(part: str) -> str:
    return _OTHER_NAMES.get(part, part) if part.startswith("\\") else part.casefold()


def number_of(text: str) -> Fraction | None:
    """Return the number that a plain text is, exactly; ``None`` if it is none."""
    if not text or len(text) > _LONGEST_NUMBER:
        return None
    if text.endswith("%"):
        value = number_of(text.removesuffix("%").removesuffix("\\"))
        return None if value is None else value / 100
    if text.startswith("-\\"):
        value = number_of(text[1:])
        return None if value is None else -value
    if _THOUSANDS.fullmatch(text):
        text = text.translate(_GROUPING)
    elif _EUROPEAN.fullmatch(text):
        text = text.replace(".", "").replace(",", ".")
    for pattern, value_of in _FORMS:
        if match := pattern.fullmatch(text):
            return value_of(match)
    upper, slash, lower = text.partition("/")
    value, divisor = _decimal(upper), _decimal(lower) if slash else Fraction(1)
    return None if value is None or not divisor else value / divisor


def _fraction(match: re.Match[str]) -> Fraction | None:
    """Return the value of a fraction, or of a mixed number, whose fraction is below 1."""
    whole, upper, lower, above, below = match.groups()
    value, divisor = _decimal(upper or above), _decimal(lower or below)
    if value is None or not divisor:
        return None
    value /= divisor
    if whole in {"", "+", "-"}:
        return -value if whole == "-" else value
    if not 0 < value < 1:
        return None
    return int(whole) + (-value if whole.startswith("-") else value)


def _short_fraction(match: re.Match[str]) -> Fraction | None:
    return _fraction_of(match[1], int(match[2]), int(match[3]))


def _fraction_of(sign: str, value: int, divisor: int) -> Fraction | None:
    return Fraction(-value if sign else value, divisor) if divisor else None


def _power(match: re.Match[str]) -> Fraction | None:
    sign, factor, base, long, short = match.groups()
    exponent = int(long or short)
    value = Fraction(base)
    if abs(exponent) > _LARGEST_EXPONENT or (not value and exponent < 1):
        return None
    value = value**exponent * Fraction(factor or 1)
    return -value if sign == "-" else value


def _repeating(match: re.Match[str]) -> Fraction:
    sign, whole, digits, *periods = match.groups()
    period = _NO_DIGIT.sub("", "".join(filter(None, periods)))
    before = Fraction(int(f"{whole}{digits}" or "0"), 10 ** len(digits))
    value = before + Fraction(int(period), (10 ** len(period) - 1) * 10 ** len(digits))
    return -value if sign == "-" else value


_FORMS: Final = (
    (_SHORT_FRACTION, _short_fraction),
    (_FRACTION, _fraction),
    (_POWER, _power),
    (_REPEATING, _repeating),
)


def _decimal(text: str) -> Fraction | None:
    number = _NUMBER.fullmatch(text)
    if number is None or int(number[1] or 0) > _LARGEST_EXPONENT:
        return None
    return Fraction(text if not text.endswith(".") else text[:-1])

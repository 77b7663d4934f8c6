"""Find the notices about copyright and licence in the comments at the beginning of source code."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dagster_dataops.library.analysis.text_spans import Spans

# Lines that a program reads: they stay, and comments may follow them.
_MACHINE_READ: Final = re.compile(
    r"\#!"
    r"|.{0,20}?(?:coding[:=]|-\*-.*-\*-|\bvim?:|\bex:|kate:|frozen_string_literal:)"
    r"|\#[ ]?(?:type|pylint|flake8|mypy|ruff|isort|fmt|noqa|cython|distutils|pyright|shellcheck)\b"
    r"|\#[ ](?:///|syntax=|escape=|cspell|yaml-language-server:)"
    r"|//(?:go:|[ ]?\+build|[ ]?@|/[ ]?<|[ ]?eslint|[ ]?jshint|[ ]?swift-tools|\#"
    r"|[ ]?(?:NOLINT|clang-format|cppcheck|prettier-|tslint:|istanbul|biome-|deno-|IWYU))"
    r"|(?://|\#|--)[ ]Code[ ]generated[ ].{0,200}DO[ ]NOT[ ]EDIT"
    r"|!\$|!dir\$|\#:schema|@charset"
    r"|<\?|<!DOCTYPE|%[ ]?!TEX|%!PS|['\"]use[ ]strict|@echo|\{\$",
    re.VERBOSE | re.IGNORECASE,
)
_DIRECTIVE: Final = re.compile(
    r"\#(?:include(?:_next)?|define|undef|if|ifdef|ifndef|elif|else|endif|error|warning|pragma"
    r"|line|import|using|region|endregion|nullable|light|load|r|assert|ident|sccs)\b"
    r"|\#[ \t]+(?:(?:include|import)[ ]*[<\"]|define[ ]+[A-Za-z_]\w*"
    r"|(?:undef|ifn?def)[ ]+\w+[ \t]*$"
    r"|(?:el)?if[ ]+(?:defined|[!(A-Z_0-9])|(?:else|endif)[ \t]*(?:/|$)"
    r"|pragma[ ]+\w|(?:error|warning)[ ]+\")",
    re.VERBOSE | re.MULTILINE,
)
# Lines of documentation: they are a comment of their own beside lines of another mark.
_DOCUMENTING: Final = re.compile(r"//!|///(?!/)|---(?=[ \t]?[^-\s])|-- \||#'|%+ @doc")
_SCRIPT: Final = re.compile(r"# /// script[ \t]*\n(?:#[^\n]*\n)*?# ///[ \t]*(?:\n|\Z)")
# Lines in a comment of documentation that a program reads.
_PRAGMA: Final = re.compile(r"[\s*]*@(?:flow|jest-environment|jsx|format|ts-|preserve|generated)\b")
_LINE_MARKS: Final = (
    *("//", "#", "--", ":: ", ";", "%", "!", "dnl ", "rem ", "REM ", "Rem ", "' ", '" '),
    *("'\\\"", '.\\"', "@c ", "@comment "),
)
_BLOCKS: Final = (
    ("/*", "*/"),
    ("<!--", "-->"),
    ('"""', '"""'),
    ("'''", "'''"),
    ("(*", "*)"),
    ("{-", "-}"),
    ("--[[", "]]"),
    ("--[=[", "]=]"),
    ("<#", "#>"),
    ("#|", "|#"),
    ("#=", "=#"),
    ("{#", "#}"),
    ("<%--", "--%>"),
    ("/+", "+/"),
    ("=begin", "\n=end"),
)
_BEGINNINGS: Final = tuple(begin for begin, _ in _BLOCKS)
_MARKUP: Final = ("<?", "<!DOCTYPE", "<!doctype")
_DOCUMENTATION: Final = ('"""', "'''")
_MOST_LINES: Final = 40  # of a comment, before the notice begins
_LONGEST_LINE: Final = 1000

_YEAR: Final = r"(?:19|20)[0-9]{2}"
# Words of a notice, wherever they stand in the comment.
_NOTICE: Final = re.compile(
    rf"""
    copyright(?:ed)?[\s:]*(?:\(c\)|©|&copy;|\\\(co|{_YEAR}|[-(]\s*{_YEAR}|by\s)
    |\(c\)[\s:,]*(?:copyright\b|copr\b|{_YEAR}|by\s)|©\s*\w|&copy;|copyleft\b
    |spdx-(?:license-identifier|filecopyrighttext)|@(?:licen[sc]e|copyright)\b
    |all\srights\sreserved|all\swrongs\sreserved
    |licen[sc]ed\sunder\b|(?:released|distributed|available|provided|covered|published|redistributed)
        \s.{{0,20}}under\s.{{0,60}}?(?:licen[sc]e|\bterms|gpl|\bbsd|\bmit\b|apache|artistic)
    |licensed\sto\s.{{1,80}}\sunder\s|permission\s(?:is|to)\s(?:hereby|granted|use)\b
    |permission\sto\suse,\scopy|redistribution\sand\suse\sin\ssource
    |use\sof\sthis\s(?:source\scode|software|file)\sis\s(?:governed|subject)
    |(?:gnu|mozilla)\s+(?:(?:lesser|library|affero)\s+)?(?:general\s+)?public\s+licen[sc]e
    |under\sthe\s(?:terms\sof|same\s(?:terms|licen[sc]e)\sas|\S{{1,20}}\slicen[sc]e)\b
    |(?:placed|put|released|dedicated|is|are)\s+(?:in|into|to)\s+the\s+public\s+domain
    |no\scopyright\sis\sclaimed|see\s(?:the\s)?(?:file\s)?(?:licen[sc]e|copying|copyright)\b.{{0,20}}
        (?:\bfor\b|\bin\b|file)
    |\|\s*(?:mit|bsd|isc|apache|mpl|l?gpl)\b[^|\n]{{0,20}}licen[sc]ed?\b
    |alle\srechte\svorbehalten|urheberrecht(?:lich)?\b|lizenziert\sunter|unter\sder\s.{{1,40}}lizenz
    |tous\sdroits\sr[ée]serv|droits?\sd['’]auteur|sous\s(?:la\s)?licence|distribu[ée]\ssous
    |todos\slos\sderechos\sreservados|derechos\sde\sautor|bajo\s(?:la\s)?licencia|licenciado\sbajo
    |todos\sos\sdireitos\sreservados|direitos\sautorais|sob\s(?:a\s)?licen[çs]a
    |tutti\si\sdiritti\s(?:sono\s)?riservati|diritti\sd['’]autore|sotto\s(?:la\s)?licenza
    |alle\srechten\svoorbehouden|auteursrecht|wszelkie\sprawa\szastrze|prawa\sautorskie|na\slicencji
    |tüm\shakları\ssaklıdır|telif\shakkı|alla\srättigheter\sförbehåll|kaikki\soikeudet\spidätetään
    |vše(?:chna)?\správa\svyhrazena|авторски[ех]\sправ|все\sправа\sзащищены|на\sусловиях\s.{{0,40}}лицензи
    |под\sлицензией|всі\sправа\sзахищен[оі]|авторські\sправа
    |版权所有|版權所有|保留所有权利|保留所有權利|著作权|著作權|著作権|(?:根据|遵循|基于|采用|使用).{{0,30}}(?:许可证|许可协议|开源协议)
    |無断転載|無断複製|ライセンスの(?:下|もと|条件)|ライセンスに(?:基づ|従)|저작권|모든\s권리\s보유|라이선스.{{0,10}}(?:따라|하에)
    |حقوق\sالنشر|جميع\sالحقوق\sمحفوظة
    """,
    re.VERBOSE | re.IGNORECASE,
)
# At the beginning of a line of a comment.
_NOTICE_LINE: Final = re.compile(
    r"^[\s*#/;%!\"'.|=-]*(?:copyright\b(?!\s+(?:law|notices?\s+(?:are|is)|of\s|and\s|is\s|checks?\b))"
    r"|licen[sc]e\s*:\s*\S|authors?\s*:.{1,80}licen[sc]e)",
    re.IGNORECASE | re.MULTILINE,
)
_HEADING_NOTICE: Final = re.compile(r"#+ (?i:copyright|licen[sc]e\s*:)")


class _Comment(NamedTuple):
    """A comment: where it begins and ends, its mark, and its lines as spans if it is of lines."""

    start: int
    end: int
    mark: str
    lines: list[tuple[int, int]]


def licence_notices(code: str) -> Spans:
    """Yield the spans of the comments at the beginning that are notices, without machine lines."""
    preamble, place = _preamble(code)
    while comment := _comment(code, place):
        if _is_notice(code, comment, preamble=preamble):
            yield from _kept_out(code, comment)
        place = _next_place(code, comment.end)


def _preamble(code: str) -> tuple[bool, int]:
    """Return whether lines that a program reads come first, and the position behind them."""
    place = _next_place(code, 1 if code.startswith("\ufeff") else 0)
    first = place
    while place < len(code):
        end = _line_end(code, place)
        if code.startswith(_BEGINNINGS, place) and not code.startswith(_MARKUP, place):
            break
        if not _MACHINE_READ.match(code, place, min(end, place + _LONGEST_LINE)):
            break
        if code.startswith("<?", place) and "?>" not in code[place:end] and place == first:
            if not code.startswith("<?xml", place):
                return True, _next_place(code, end)
            end = max(end, code.find("?>", place))
        place = _next_place(code, end)
    return place > first, place


def _line_end(code: str, place: int) -> int:
    """Return the position behind the end of the line."""
    end = code.find("\n", place)
    return len(code) if end < 0 else end + 1


def _next_place(code: str, place: int) -> int:
    """Return the position of the next line that is not blank, or of what follows in this one."""
    while place < len(code) and code[place] in " \t\r\n\f\v":
        place += 1
    return place


def _comment(code: str, place: int) -> _Comment | None:
    """Return the comment that begins at a position."""
    for begin, end in _BLOCKS:
        if code.startswith(begin, place):
            last = code.find(end, place + len(begin))
            return _Comment(place, last + len(end), begin, []) if last >= 0 else None
    if documenting := _DOCUMENTING.match(code, place):
        mark: str | None = documenting[0]
    else:
        mark = next((mark for mark in _LINE_MARKS if _is_line(code, place, mark)), None)
    if mark is None:
        return None
    lines, start = [], place
    while start < len(code) and _is_line(code, start, mark):
        lines.append((start, _line_end(code, start)))
        start = lines[-1][1]
        start += len(code[start : start + 80]) - len(code[start : start + 80].lstrip(" \t"))
    return _Comment(place, lines[-1][1], mark, lines)


def _is_line(code: str, place: int, mark: str) -> bool:
    if documenting := _DOCUMENTING.match(code, place):
        return documenting[0] == mark
    if not code.startswith(mark, place):
        return code.startswith(mark.rstrip() + "\n", place) and mark != mark.rstrip()
    return mark != "#" or _DIRECTIVE.match(code, place) is None


def _is_notice(code: str, comment: _Comment, *, preamble: bool) -> bool:
    end = comment.end
    if comment.mark in _DOCUMENTATION:
        return _is_documentation_notice(code, comment)
    text = "".join(code[comment.start : end].splitlines(keepends=True)[:_MOST_LINES])
    if _NOTICE.search(_joined(text)):
        return True
    if not _NOTICE_LINE.search(text):
        return False
    # One line with a number sign, and no year, may be the title of a page.
    return preamble or len(comment.lines) != 1 or not _HEADING_NOTICE.match(text)


def _is_documentation_notice(code: str, comment: _Comment) -> bool:
    """Return whether a text in quotes begins with a notice and stands alone."""
    inner = code[comment.start + 3 : comment.end - 3].strip()
    first = inner.split("\n", maxsplit=1)[0]
    rest = code[comment.end : _line_end(code, comment.end)]
    return not rest.strip() and bool(_NOTICE.search(first) or _NOTICE_LINE.search(first))


_MARKS_OF_LINES: Final = re.compile(r"\s*\n[\s*#/;%!\"'.|=-]*")


def _joined(comment: str) -> str:
    """Return the text of a comment with single spaces for line ends and the marks of lines."""
    return _MARKS_OF_LINES.sub(" ", comment)


def _kept_out(code: str, comment: _Comment) -> Iterator[tuple[int, int]]:
    if not comment.lines:
        yield from _of_block(code, comment)
        return
    script = _SCRIPT.search(code, 0, comment.end)
    for start, end in comment.lines:
        if script and script.start() <= start < script.end():
            continue
        if not _MACHINE_READ.match(code, start, min(end, start + _LONGEST_LINE)):
            yield start, end


def _of_block(code: str, comment: _Comment) -> Iterator[tuple[int, int]]:
    """Yield a block, or its lines without those before the notice that document the code."""
    lines = list(_lines_of(code, comment))
    inner = lines[1:-1]
    kept = {span for span in inner if _PRAGMA.match(code, *span)}
    if code.startswith("/**\n", comment.start):
        kept.update(_documentation(code, inner))
    if not kept:
        yield comment.start, comment.end
        return
    yield from (span for span in inner if span not in kept)


def _lines_of(code: str, comment: _Comment) -> Iterator[tuple[int, int]]:
    place = comment.start
    while place < comment.end:
        end = min(_line_end(code, place), comment.end)
        yield place, end
        place = end


def _documentation(code: str, lines: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the lines of the paragraphs before the first paragraph with a notice."""
    lines_before: list[tuple[int, int]] = []
    paragraph: list[tuple[int, int]] = []
    for start, end in lines:
        paragraph.append((start, end))
        line = code[start:end]
        if _NOTICE.search(line) or _NOTICE_LINE.search(line):
            return lines_before
        if not line.strip(" \t\r\n*"):
            lines_before += paragraph
            paragraph = []
    return lines_before

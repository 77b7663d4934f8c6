"""``code.Licence``: the licence that a file of source code names."""

import re
from collections.abc import Collection, Iterator
from typing import Any, Final

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.code.languages import code
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

_LOOKED_AT: Final = 20_000  # characters
_IDENTIFIER: Final = re.compile(r"SPDX-License-Identifier:[ \t]*([\w.+() \t-]{1,200})")
_MARKS: Final = re.compile(r"[\s*#/;%!<>|'\"\\-]+")  # of comments, and between words
_VERSION: Final = (
    r"(?:version|v\.?) ?(?P<version>[123](?:\.[0-9])?)\b(?P<later>.{0,120}?\blater\b)?"
)
_GPL: Final = re.compile(
    rf"GNU (?P<kind>Lesser |Library |Affero )?General Public Licen[sc]e.{{0,150}}?{_VERSION}",
    re.IGNORECASE,
)
_GPL_NAMES: Final = {"": "GPL", "lesser ": "LGPL", "library ": "LGPL", "affero ": "AGPL"}
_NOTICES: Final = [
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"under the Apache Licen[sc]e,? Version 2\.0", "Apache-2.0"),
        (r"Permission is hereby granted, free of charge, to any person obtaining a copy", "MIT"),
        (r"under the (?:terms of the )?MIT licen[sc]e", "MIT"),
        (r"subject to the terms of the Mozilla Public Licen[sc]e, v\. 2\.0", "MPL-2.0"),
        (r"Permission to use, copy, modify, and or distribute this software for any", "ISC"),
        (r"This is free and unencumbered software released into the public domain", "Unlicense"),
        (r"under the Boost Software Licen[sc]e, Version 1\.0", "BSL-1.0"),
        (r"Eclipse Public Licen[sc]e,? (?:v\.? ?|version )2\.0", "EPL-2.0"),
        (r"Eclipse Public Licen[sc]e,? (?:v\.? ?|version )1\.0", "EPL-1.0"),
    )
]
_BSD: Final = re.compile(r"Redistribution and use in source and binary forms, with or without")
_ENDORSED: Final = re.compile(r"Neither the names? of|names? of (?:its|the) contributors? may")
_WORD: Final = re.compile(r"[()]|[^\s()]+")


class Licence(code):
    """Write the licence that a file of source code names, and drop files with other licences.

    Reads ``input_key="text"`` and writes ``output_key="licence"``, an SPDX expression such as
    ``MIT`` or ``Apache-2.0 OR MIT``; ``null`` if the first 20,000 characters name none. A line
    ``SPDX-License-Identifier:`` counts; without one, the usual notices of Apache, MIT, BSD, ISC,
    MPL, GPL, LGPL, AGPL, EPL, Boost and the Unlicense do. Several notices are joined by ``AND``.
    With ``licence_key``, a text or a list of texts in that column, such as the licences of the
    repository, counts where the file names none; a list is joined by ``AND``.

    With ``licences``, files are dropped whose licence is not among them, for the reason
    ``other_licence``, and those without a licence, for ``no_licence``: of ``A OR B`` one must be
    listed, of ``A AND B`` both; what follows ``WITH`` does not count. An expression that is not
    valid counts as none. Needs the extra ``code``.

    Source: files with permissive licences, Kocetkov et al. 2022, arXiv:2211.15533, where the
    licences are those of repositories; the identifiers and expressions of SPDX.

    Args:
        input_key: Key of the text: a column, or a selector.
        output_key: Column of the licence.
        licence_key: Column of the licence of the repository; ``None`` reads the file alone.
        licences: SPDX identifiers to keep; ``None`` keeps all.
    """

    def __init__(
        self,
        input_key: str = "text",
        output_key: str = "licence",
        *,
        licence_key: str | None = None,
        licences: Collection[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        _check_package()
        self._column, self._written = FieldKey(input_key), output_key
        self._known = None if licence_key is None else FieldKey(licence_key)
        self._kept = None if licences is None else {_identifier(name) for name in licences}

    def forward(self, record: Record) -> Record | Drop:
        licence = licence_of(self._column.text(record))
        if licence is None and self._known is not None:
            licence = _joined(self._known.value(record))
        if self._kept is not None:
            if licence is None:
                return Drop("no_licence")
            if not _allows(licence, self._kept):
                return Drop("other_licence")
        record[self._written] = licence
        return record


def licence_of(text: str) -> str | None:
    """Return the SPDX expression that a file names; ``None`` if it names none."""
    beginning = text[:_LOOKED_AT]
    named = {_canonical(match[1]) for match in _IDENTIFIER.finditer(beginning)} - {None}
    if not named:
        named = set(_noticed(_MARKS.sub(" ", beginning)))
    return _all_of(sorted(filter(None, named)))


def _noticed(text: str) -> Iterator[str]:
    for pattern, name in _NOTICES:
        if pattern.search(text):
            yield name
    if _BSD.search(text):
        yield "BSD-3-Clause" if _ENDORSED.search(text) else "BSD-2-Clause"
    for match in _GPL.finditer(text):
        name = _GPL_NAMES[(match["kind"] or "").lower()]
        version = match["version"] if "." in match["version"] else f"{match['version']}.0"
        yield f"{name}-{version}-{'or-later' if match['later'] else 'only'}"


def _joined(value: Any) -> str | None:
    names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    valid = [_canonical(name) if isinstance(name, str) else None for name in names]
    return None if None in valid else _all_of(sorted({str(name) for name in valid}))


def _all_of(names: list[str]) -> str | None:
    """Return the expression of licences that all hold; ``None`` for none."""
    if len(names) < 2:
        return names[0] if names else None
    return " AND ".join(f"({name})" if " OR " in name else name for name in names)


def _canonical(expression: str) -> str | None:
    """Return an SPDX expression in its usual form; ``None`` if it is not valid."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    try:
        return str(canonicalize_license_expression(expression.strip(" \t-")))
    except (InvalidLicenseExpression, RecursionError):
        return None


def _identifier(name: str) -> str:
    canonical = _canonical(name)
    if canonical is None or " " in canonical:
        msg = f"licences has {name!r}, which is no SPDX identifier such as 'Apache-2.0'"
        raise DefinitionError(msg)
    return canonical


def _allows(expression: str, kept: Collection[str]) -> bool:
    """Return whether a valid expression can be met by licences that are kept."""
    words = _WORD.findall(expression)
    values: list[bool] = []
    waiting: list[str] = []

    def apply(least: int) -> None:
        while waiting and _BINDING.get(waiting[-1], 0) >= least:
            right, left = values.pop(), values.pop()
            values.append(left and right if waiting.pop() == "AND" else left or right)

    for number, word in enumerate(words):
        if word == "(":
            waiting.append(word)
        elif word == ")":
            apply(1)
            waiting.pop()
        elif word in _BINDING:
            apply(_BINDING[word])
            waiting.append(word)
        elif word != "WITH" and words[number - 1 : number] != ["WITH"]:
            values.append(word in kept or word.removesuffix("+") in kept)
    apply(1)
    return values[0]


_BINDING: Final = {"OR": 1, "AND": 2}


def _check_package() -> None:
    with needs_extra("code.Licence", "code"):
        import packaging.licenses  # noqa: F401 - of version 24.2 and later

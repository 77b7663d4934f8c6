"""``code.Language``: the programming language of a file."""

from collections.abc import Collection
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, Final

from dagster_dataops.data import data_register
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

code: Any = data_register.new_group("code")

_LOOKED_AT: Final = 10_000  # characters, where several languages have one ending


class Language(code):
    """Write the programming language of a file, by the ending of its name.

    Reads ``path_key="path"`` and writes ``output_key="language"``: the short name that Pygments has
    for it, such as ``python``, ``javascript`` or ``cpp``; ``null`` if the ending is unknown. Where
    several languages have one ending, as ``.h`` or ``.m``, the beginning of the text in
    ``input_key="text"`` decides. With ``languages``, other files are dropped, for the reasons
    ``unknown_language`` and ``other_language``. Needs the extra ``code``.

    Source: the choice of languages by endings, Kocetkov et al. 2022, arXiv:2211.15533; the endings
    are those of Pygments.

    Args:
        path_key: Key of the path or name of the file: a column, or a selector.
        input_key: Key of the text.
        output_key: Column of the language.
        languages: Languages to keep, by any name that Pygments has for them; ``None`` keeps all.
    """

    def __init__(
        self,
        path_key: str = "path",
        input_key: str = "text",
        output_key: str = "language",
        *,
        languages: Collection[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._path, self._text = FieldKey(path_key), FieldKey(input_key)
        self._written = output_key
        self._kept = None if languages is None else {_usual_name(name) for name in languages}

    def forward(self, record: Record) -> Record | Drop:
        name = PurePosixPath(self._path.text(record).replace("\\", "/")).name
        language = _by_name(name, self._text.text(record)[:_LOOKED_AT])
        if self._kept is not None and language not in self._kept:
            return Drop("unknown_language" if language is None else "other_language")
        record[self._written] = language
        return record


def lexer_named(language: str) -> Any:
    """Return the lexer of a language by one of its names; ``None`` for an unknown one."""
    lexers, not_found = pygments()
    try:
        return lexers.get_lexer_by_name(language)
    except not_found:
        return None


def pygments() -> tuple[Any, type[Exception]]:
    """Return the lexers of Pygments, and the error for an unknown one."""
    with needs_extra("The group code", "code"):
        import pygments.lexers
        import pygments.util
    return pygments.lexers, pygments.util.ClassNotFound


def _usual_name(language: str) -> str:
    lexer = lexer_named(language)
    if lexer is None:
        msg = (
            f"languages has {language!r}, which Pygments does not know; see `pygmentize -L lexers`"
        )
        raise DefinitionError(msg)
    return str(lexer.aliases[0])


def _by_name(name: str, text: str) -> str | None:
    for spelling in dict.fromkeys((name, name.lower())):  # `.R` and `.r` are of two languages
        suffix = "" if spelling in _whole_names() else PurePosixPath(spelling).suffix
        by_suffix = _lexers_of(f"x{suffix}") if suffix else []
        fitting = by_suffix or _lexers_of(spelling)  # names such as `Makefile.am`
        if len(by_suffix) > 1:
            return str(max(fitting, key=lambda lexer: lexer.analyse_text(text)).aliases[0])
        if fitting:
            return str(fitting[0].aliases[0])
    return None


@lru_cache(maxsize=1)
def _whole_names() -> frozenset[str]:
    """Return the names of files that Pygments knows as a whole, such as ``CMakeLists.txt``."""
    lexers, _ = pygments()
    patterns = (pattern for _, _, names, _ in lexers.get_all_lexers() for pattern in names)
    return frozenset(pattern for pattern in patterns if not set("*?[") & set(pattern))


@lru_cache(maxsize=10_000)
def _lexers_of(name: str) -> list[Any]:
    """Return the lexers of a file name, first the one that Pygments chooses by the name alone."""
    lexers, _ = pygments()
    first = lexers.find_lexer_class_for_filename(name)
    if first is None or not first.aliases:
        return []
    others = [
        type(lexers.get_lexer_by_name(aliases[0]))
        for _, aliases, patterns, _ in lexers.get_all_lexers()
        if aliases and any(fnmatchcase(name, pattern) for pattern in patterns)
    ]
    return list(dict.fromkeys([first, *others]))

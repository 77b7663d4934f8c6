"""``code.Language``: the programming language of a file."""

from collections.abc import Collection
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
    """Return the lexers of Pygments, and the error for an unknown one.

    Raises:
        MissingExtraError: It is not installed.
    """
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
    known = _lexer_of_ending(PurePosixPath(name).suffix.lower() or name)
    if known is not _SEVERAL:
        return None if known is None else str(known.aliases[0])
    lexers, _ = pygments()
    return str(lexers.find_lexer_class_for_filename(name, text).aliases[0])


_SEVERAL: Final = object()  # languages


@lru_cache(maxsize=10_000)
def _lexer_of_ending(ending: str) -> Any:
    """Return the lexer of the files with an ending; ``None``, or `_SEVERAL`."""
    lexers, _ = pygments()
    name = f"x{ending}" if ending.startswith(".") else ending
    first = lexers.find_lexer_class_for_filename(name)
    if first is None or not first.aliases:
        return None
    fitting = {
        kind
        for kind, _, patterns, _ in lexers.get_all_lexers()
        if any(PurePosixPath(name).match(pattern) for pattern in patterns)
    }
    return first if len(fitting) < 2 else _SEVERAL

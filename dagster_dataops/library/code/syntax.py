"""``code.Syntax``: check that files of source code can be parsed."""

import importlib
from collections.abc import Collection
from typing import Any, Final

import orjson

from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.code.languages import code
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.library.verify.python_code import syntax_fault
from dagster_dataops.library.verify.verdict import Verdict
from dagster_dataops.records import Record

_PYTHON: Final = frozenset({"python", "python3", "py"})
_MOST_BYTES: Final = 1_000_000


class Syntax(code):
    """Check that a file of source code can be parsed. It is never run.

    Reads ``input_key="text"`` and ``language_key="language"``, see ``code.Language``. Writes
    ``output_key="valid"``, and to ``error_key="error"`` the line and the fault, or ``null``. Python
    is read by the parser of the Python that runs this, JSON by orjson. ``languages`` names other
    languages, each read by tree-sitter with the grammar of the package ``tree-sitter-<language>``,
    which you install. Files of all other languages are not checked, and count as valid.

    The reasons of ``mode="drop"`` and ``"both"`` are ``syntax_error``, ``too_deep`` and
    ``too_long`` (more than 1 MB). A grammar of tree-sitter may refuse what a compiler accepts, such
    as macros of C. With ``languages``, extra ``tree-sitter``.

    Source: files that can be parsed, Li et al. 2023, arXiv:2305.06161 (StarCoder), and the parsers
    of tree-sitter.

    Args:
        input_key: Key of the text: a column, or a selector.
        language_key: Column of the language.
        output_key: Column of the result, a boolean.
        error_key: Column of the error in words; ``None`` writes none.
        languages: Languages that tree-sitter checks, such as ``javascript``.
        mode: ``tag`` writes the result, ``drop`` drops what fails, ``both`` does both.
    """

    def __init__(
        self,
        input_key: str = "text",
        language_key: str = "language",
        output_key: str = "valid",
        error_key: str | None = "error",
        *,
        languages: Collection[str] = (),
        mode: str = "tag",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column, self._language = FieldKey(input_key), FieldKey(language_key)
        self._grammars = {name: Grammar(name) for name in languages}
        self._verdict = Verdict(mode, output_key, error_key)

    def forward(self, record: Record) -> Any:
        fault = self._fault(self._language.text(record), self._column.text(record))
        return self._verdict.of(record, *(fault or (None, None)))

    def _fault(self, language: str, text: str) -> tuple[str, str] | None:
        if language in self._grammars:
            return self._grammars[language].fault(text)
        if language in _PYTHON:
            return syntax_fault(text)
        if language == "json":
            try:
                orjson.loads(text)
            except ValueError as error:  # orjson.JSONDecodeError
                return "syntax_error", str(error)
        return None


class Grammar:
    """A grammar of tree-sitter; pickled as its language."""

    def __init__(self, language: str) -> None:
        with needs_extra("code.Syntax", "tree-sitter"):
            import tree_sitter
        package = f"tree_sitter_{language}"
        try:
            grammar = importlib.import_module(package) if package.isidentifier() else None
        except ImportError:
            grammar = None
        # Packages with several grammars, such as that of TypeScript, name the function of each.
        names = ("language", f"language_{language}")
        functions = [getattr(grammar, each) for each in names if hasattr(grammar, each)]
        if not functions:
            remedy = f"pip install tree-sitter-{language}"
            msg = f"languages has {language!r}; install its grammar: {remedy}"
            raise DefinitionError(msg)
        self._name, self._language = language, tree_sitter.Language(functions[0]())
        self._parser = tree_sitter.Parser

    @override
    def __reduce__(self) -> tuple[type, tuple[str]]:
        return Grammar, (self._name,)

    def fault(self, text: str) -> tuple[str, str] | None:
        """Return the reason and the error of a text that cannot be parsed."""
        content = text.encode("utf-8", "replace")
        if len(content) > _MOST_BYTES:
            return "too_long", f"longer than {_MOST_BYTES:,} bytes"
        root = self._parser(self._language).parse(content).root_node
        if not root.has_error:
            return None
        node = root
        while (
            inner := next((child for child in node.children if child.has_error), None)
        ) is not None:
            node = inner
        what = f"missing {node.type!r}" if node.is_missing else "cannot be parsed"
        return "syntax_error", f"line {node.start_point[0] + 1}: {what}"

"""``html.Extract``: the main text of a page."""

import logging
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.html.html_source import html, is_deep, readable, too_deep
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.operators.options.ranges import AtLeastZeroFloat
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

Extractor: TypeAlias = Callable[[str], str | None]

_NO_TEXT = "no_text"


class Extract(html):
    """Extract the main text of an HTML page, without menus, headers, footers and comments.

    Reads ``input_key`` and writes ``output_key``. A page without a main text is dropped for the
    reason ``no_text``. Needs the extra ``html``. As ``Trafilatura`` of datatrove; there,
    trafilatura remembers the paragraphs of earlier pages, so that the result depends on them.

    ``timeout_s`` is the setting ``_timeout`` of this operator: a page that takes longer is a failed
    record. The limit is of elapsed time, not of CPU time: where other programs use the cores, or
    with more workers than cores, good pages need longer, so raise it or use ``None``. Failed pages
    are tried again by a retry of the failed records. In a chain, give ``_timeout`` to the chain
    instead.

    Args:
        input_key: The key of the page.
        output_key: Where the text is written.
        backend: ``"trafilatura"`` extracts better, ``"resiliparse"`` is many times faster.
        favor_precision: With trafilatura, less text of doubtful use.
        include_comments: With trafilatura, with the comments of readers.
        deduplicate: With trafilatura, without repeated paragraphs of a page.
        format: With trafilatura, ``"text"`` or ``"markdown"``.
        include_formatting: With trafilatura, keep bold text and the like; by default, in Markdown.
        main_content: With resiliparse, the main text alone; otherwise all text.
        alt_texts: With resiliparse, with the texts of images.
        links: With resiliparse, with the addresses of links.
        list_bullets: With resiliparse, with the marks of lists.
        timeout_s: Elapsed seconds for one page; ``None`` for no limit.
        mode: ``"drop"``; or ``"tag"`` to keep pages without a main text, with the text ``None``,
            and to write the reason.
        reason_key: The key of the reason with ``"tag"``; ``None`` for pages with a text.
    """

    def __init__(
        self,
        input_key: str = "html",
        output_key: str = "text",
        *,
        backend: Literal["trafilatura", "resiliparse"] = "trafilatura",
        favor_precision: bool = True,
        include_comments: bool = False,
        deduplicate: bool = True,
        format: Literal["text", "markdown"] = "text",  # noqa: A002 - the name of the option
        include_formatting: bool | None = None,
        main_content: bool = True,
        alt_texts: bool = True,
        links: bool = False,
        list_bullets: bool = True,
        timeout_s: AtLeastZeroFloat | None = 1.0,
        mode: Literal["drop", "tag"] = "drop",
        reason_key: str = "drop_reason",
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"_timeout": timeout_s or 0, **kwargs})
        self._column, self._written = FieldKey(input_key), output_key
        self._reason_key = reason_key if mode == "tag" else None
        self._extract: Extractor
        if backend == "trafilatura":
            self._extract = _Trafilatura(
                favor_precision=favor_precision,
                include_comments=include_comments,
                deduplicate=deduplicate,
                output_format="txt" if format == "text" else format,
                include_formatting=include_formatting,
            )
        else:
            self._extract = _Resiliparse(
                main_content=main_content,
                alt_texts=alt_texts,
                links=links,
                list_bullets=list_bullets,
            )

    def forward(self, record: Record) -> Any:
        page = self._column.text(record)
        text = (self._extract(readable(page)) if page else None) or None
        if self._reason_key is not None:
            record[self._reason_key] = None if text else _NO_TEXT
        elif text is None:
            return Drop(_NO_TEXT)
        record[self._written] = text
        return record


class _Trafilatura:
    """Extracts with trafilatura, which gets a new memory of paragraphs for each page."""

    def __init__(self, *, deduplicate: bool, **options: Any) -> None:
        with needs_extra("html.Extract", "html"):
            from trafilatura import extract
            from trafilatura.deduplication import LRUCache
        # Without a handler, Python prints the library's remarks on empty pages.
        logging.getLogger("trafilatura").addHandler(logging.NullHandler())
        self._extract, self._memory = extract, LRUCache if deduplicate else bool
        self._options = options

    def __call__(self, page: str) -> str | None:
        text: str | None = self._extract(page, deduplicate=self._memory(), **self._options)
        return text


class _Resiliparse:
    """Extracts with resiliparse, which takes quadratic time on deep pages."""

    def __init__(self, **options: Any) -> None:
        with needs_extra("html.Extract with backend='resiliparse'", "html"):
            from resiliparse.extract.html2text import extract_plain_text
        self._extract, self._options = extract_plain_text, options

    def __call__(self, page: str) -> str:
        if is_deep(page):
            raise too_deep("resiliparse")
        text: str = self._extract(page, **self._options)
        return text

"""The documentation for language models: ``llms.txt``, ``llms-full.txt`` and each page as Markdown.

``llms.txt`` lists the pages as https://llmstxt.org describes it: a title, a summary, and sections
of links with descriptions. ``llms-full.txt`` has all pages. The tables and the reference that are
made from the package stand in the text. The build of the site writes the files beside its pages.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import api_text
import reference_tables
from sphinx.application import Sphinx

INTRODUCTION: Final = """\
# dagster-dataops

> dagster-dataops is a Dagster plugin that runs Python functions over jsonl files, one record at a
> time. Each function becomes a Dagster asset, and the asset's result is one jsonl file. A run that
> is killed continues where it stopped.

- Install it with `pip install dagster-dataops`, with `dagster-dataops[webserver]` for the UI. It
  needs Python 3.11 or newer.
- Import all public names from `dagster_dataops`. Modules below it that the reference does not show,
  such as `dagster_dataops.execution`, are private.
- An operator gets one record, a `dict`. It returns a `dict`, a list of dicts, or `[]` to drop the
  record. `None` keeps the record as the operator changed it.
- Before you write an operator, look for it in the catalogue: the library has more than 230.
- Start no processes or threads in an operator. `_concurrency_mode` and `_max_workers` choose them.
"""

_TOCTREE: Final = re.compile(r"```\{toctree\}\n(.*?)```\n*", re.DOTALL)
_TABLE: Final = re.compile(r"```\{dataops\} (\S+)(?: (\S+))?\n```")
_REFERENCE: Final = re.compile(r"```\{eval-rst\}\n(.*?)```", re.DOTALL)
_COMMENT: Final = re.compile(r"<!-- (?:test\n|not run: |written by ).*?-->\n*", re.DOTALL)
_LABEL: Final = re.compile(r"^\([\w.]+\)=\n+", re.MULTILINE)
_ROW: Final = re.compile(r"^\|(.+)\|$", re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)\)")
_SENTENCE: Final = re.compile(r"^.+?[.?](?=\s|$)", re.DOTALL)


@dataclass(frozen=True)
class Page:
    """A page of the documentation.

    Attributes:
        root: The folder of the documentation.
        name: The path below it, without the ending.
    """

    root: Path
    name: str

    @cached_property
    def source(self) -> str:
        """The Markdown as it is written."""
        return (self.root / f"{self.name}.md").read_text(encoding="utf-8")

    @cached_property
    def text(self) -> str:
        """The Markdown with what is generated, and without what only tests and the site need."""
        text = _COMMENT.sub("", _TOCTREE.sub("", self.source))
        text = _TABLE.sub(lambda found: "\n".join(_table(*found.groups())), text)
        text = _REFERENCE.sub(lambda found: api_text.expanded(found[1]), text)
        return _LABEL.sub("", text).strip() + "\n"

    @property
    def title(self) -> str:
        """The first heading."""
        return self.source.partition("\n")[0].removeprefix("# ")

    @property
    def children(self) -> list["Page"]:
        """The pages that it lists, in order."""
        listed = "".join(_TOCTREE.findall(self.source)).split("\n")
        folder = Path(self.name).parent
        return [
            Page(self.root, (folder / name).as_posix())
            for name in listed
            if name and not name.startswith(":")
        ]

    @property
    def descriptions(self) -> dict[str, str]:
        """What the tables of the page say about others, by name."""
        found: dict[str, str] = {}
        for row in _ROW.findall(self.source):
            for cell in (cells := row.split(" | ")):
                link = _LINK.fullmatch(cell.strip())
                if link:
                    name = (Path(self.name).parent / link[2]).with_suffix("").as_posix()
                    found.setdefault(name, "; ".join(c.strip() for c in cells if c is not cell))
        return found

    @property
    def first_sentence(self) -> str:
        """The sentence below the title; empty if something else is there."""
        below = self.source.partition("\n\n")[2]
        paragraph = below.partition("\n\n")[0]
        sentence = _SENTENCE.match(paragraph) if re.match(r"[\w`\[]", paragraph) else None
        plain = _LINK.sub(r"\1", sentence[0]) if sentence else ""
        return " ".join(plain.split())


def _table(name: str, argument: str | None) -> Iterator[str]:
    return reference_tables.TABLES[name](*([argument] if argument else []))


def sections(root: Path) -> Iterator[tuple[str, Page, list[Page]]]:
    """Yield the title, the page that lists the others, and the pages of each section, in order.

    Pages on the top level form a section before the others, and one behind them: ``Optional``,
    which readers with little space leave out.
    """
    top = Page(root, "index")
    alone: list[Page] = []
    first = True
    for page in top.children:
        if not page.children:
            alone.append(page)
            continue
        if first:
            yield "Start", top, [top, *alone]
            alone, first = [], False
        yield page.title, page, [page, *page.children]
    yield "Optional", top, alone


def files(root: Path, address: str) -> Iterator[tuple[str, str]]:
    """Yield the path below the site and the text of each file.

    Args:
        root: The folder of the documentation.
        address: The address of the site, with a slash at the end.
    """
    listed, full = [INTRODUCTION], [INTRODUCTION]
    for title, index, pages in sections(root):
        lines = [f"## {title}", ""]
        for page in pages:
            described = index.descriptions.get(page.name) or page.first_sentence
            link = f"- [{page.title}]({address}{page.name}.md)"
            lines.append(f"{link}: {described}" if described else link)
            full.append(f"---\n\nPage: {address}{page.name}.md\n\n{page.text}")
            yield f"{page.name}.md", page.text
        listed.append("\n".join([*lines, ""]))
    yield "llms.txt", "\n".join(listed)
    yield "llms-full.txt", "\n".join(full)


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the files beside the pages of the site."""
    if error is None and app.builder.format == "html":
        for name, text in files(Path(app.srcdir), app.config.html_baseurl):
            path = Path(app.outdir) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}

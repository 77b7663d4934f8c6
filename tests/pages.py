"""The pages of the documentation: their code, as scripts and files.

Each page is one script: its Python blocks in order, in one namespace. A block whose first line is
a comment with a file name (``# definitions.py``, ``# defs.yaml``) is a file instead. Two kinds of
HTML comments steer this; readers do not see them:

- ``<!-- test``, a line end, Python code and ``-->``: code that only the test runs, to make the
  input of a sample or to check its result.
- ``<!-- not run: reason -->`` in front of a block: the test leaves the block out.

The comment behind a ``print`` is its expected output: ``print(1 + 1)  # 2``. A page with a
``defs.yaml`` can load it: ``from yaml_project import load``.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md")),
    *sorted(DOCS.rglob("*.md")),
    *sorted((ROOT / "skills").rglob("*.md")),
]

BLOCK = re.compile(
    r"(?P<skipped><!-- not run: [^>]+ -->\n+)?"
    r"^```(?P<language>[\w-]*)\n(?P<code>.*?)^```$"
    r"|^<!-- test\n(?P<hidden>.*?)^-->$",
    re.DOTALL | re.MULTILINE,
)
FILE = re.compile(r"# ([\w./-]+\.(?:py|yaml|toml))\b.*\n")
_PRINTED = re.compile(r"^print\(.*\)  # (.+)$", re.MULTILINE)

_PYPROJECT = """
[tool.dg]
directory_type = "project"
[tool.dg.project]
root_module = "my_project"
"""
_YAML_PROJECT = """
import sys
from pathlib import Path

import dagster as dg

sys.path.insert(0, "src")


def load() -> dg.Definitions:
    return dg.load_from_defs_folder(path_within_project=Path.cwd())
"""


@dataclass
class Page:
    """The code of a page: a script whose line numbers are those of the page, and files."""

    script: str = ""
    files: dict[str, str] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)

    def write(self, folder: Path, ending: str = "") -> None:
        """Write the script, as ``script.py``, and the files into a folder.

        Args:
            folder: The folder.
            ending: Code to add to the script.
        """
        files = self.files | {"pyproject.toml": _PYPROJECT, "yaml_project.py": _YAML_PROJECT}
        for file, content in {**files, "script.py": self.script + ending}.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(content)

    def missing(self, output: str) -> list[str]:
        """Return the lines that the page prints and that ``output`` lacks in this order."""
        printed = iter(output.splitlines())
        return [line for line in self.printed if line not in printed]


def read_page(path: Path) -> Page:
    """Return the code of a page."""
    text = path.read_text(encoding="utf-8")
    page = Page()
    for block in BLOCK.finditer(text):
        code, group = block["hidden"], "hidden"
        if code is None:
            code, group = block["code"], "code"
            name = FILE.match(code)
            if block["skipped"]:
                continue
            if name:
                page.files[name[1]] = code
                continue
            if block["language"] != "python":
                continue
            page.printed += _PRINTED.findall(code)
        line = text.count("\n", 0, block.start(group))
        page.script += "\n" * (line - page.script.count("\n")) + code
    return page

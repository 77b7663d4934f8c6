"""A pretraining corpus of texts that every Python installation has.

The descriptions and licences of the installed distributions, and the docstrings of each module of
the standard library. They go through FineWeb's filters, removal of duplicates, decontamination
against GSM8K (where its file is known), a split by project, and an export to Parquet.

``python examples/pretraining/definitions.py`` runs it in plain Python and prints what each step
kept; ``dg dev -f examples/pretraining/definitions.py`` shows it as assets. It needs
``pip install 'dagster-dataops[library,arrow]'``.
"""

import ast
import json
import os
import sys
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from itertools import chain, islice
from pathlib import Path
from typing import Any

from dagster_dataops import DataOpsResource, build_definitions, checks, data, pipeline

HOME = Path(os.environ.get("DAGSTER_HOME") or Path(__file__).parent / "dataops_home").absolute()
CORPUS = HOME / "corpus"


def find_benchmark() -> Path | None:
    """Return the file with the problems of GSM8K: ``$GSM8K``, or one in ``shared/data`` nearby."""
    places = [parent / "shared" / "data" for parent in Path(__file__).absolute().parents]
    paths = [place / "gsm8k_train.jsonl" for place in places]
    if "GSM8K" in os.environ:
        paths = [Path(os.environ["GSM8K"])]
    return next((path for path in paths if path.exists()), None)


def documents() -> Iterator[dict[str, Any]]:
    """Yield a record for each text: ``id``, ``kind``, ``project`` and ``text``."""
    texts = chain(distributions(), standard_library(), pages_with_problems())
    for number, text in enumerate(one for one in texts if one["text"].strip()):
        yield {"id": number, **text}


def distributions() -> Iterator[dict[str, str]]:
    """Yield the description and the licences of every installed distribution."""
    for found in sorted(metadata.distributions(), key=lambda one: one.name.lower()):
        description = str(found.metadata.get_payload() or "")
        yield {"kind": "description", "project": found.name, "text": description}
        for name in found.metadata.get_all("License-File") or ():
            yield {"kind": "licence", "project": found.name, "text": licence_of(found, name)}


def licence_of(found: metadata.Distribution, name: str) -> str:
    """Return the text of a licence, which is in UTF-8 or Latin-1; empty if the file is missing."""
    try:
        return found.read_text(f"licenses/{name}") or found.read_text(name) or ""
    except UnicodeDecodeError as error:
        return error.object.decode("latin-1")


def standard_library() -> Iterator[dict[str, str]]:
    """Yield the docstrings of each module of the standard library as one text."""
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted([*root.glob("*.py"), *root.glob("[a-z]*/__init__.py")]):
        nodes = ast.walk(ast.parse(path.read_bytes()))
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
        texts = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, documented)]
        project = path.relative_to(root).parts[0].removesuffix(".py")
        once = dict.fromkeys(filter(None, texts))
        yield {"kind": "docstrings", "project": project, "text": "\n\n".join(once)}


def pages_with_problems() -> Iterator[dict[str, str]]:
    """Yield three pages that quote problems of the benchmark, as pages of the web do."""
    if BENCHMARK is None:
        return
    with BENCHMARK.open(encoding="utf-8") as lines:
        questions = [json.loads(line)["question"] for line in islice(lines, 15)]
    for page in range(3):
        text = "\n\n".join(["My favourite problems of mathematics.", *questions[page::3]])
        yield {"kind": "page", "project": f"page {page}", "text": text}


BENCHMARK = find_benchmark()

# Patterns and what replaces them. Code goes, because it has corpora of its own; and so do pictures,
# addresses of links and tags: a text that begins with badges is in no language.
NOT_PROSE = {
    r"(?ms)^(?:```|~~~).*?^(?:```|~~~)[ \t]*$": "",
    r"(?m)^[ \t]*(?:>>>|\.\.\.|\$) .*$": "",
    r"(?m)^\.\. (?:image|figure|\|).*(?:\n[ \t]+:.*)*": "",
    r"!\[[^\]\n]*\](?:\([^)\n]*\)|\[[^\]\n]*\])": "",
    r"\[([^\[\]\n]*)\](?:\([^)\n]*\)|\[[^\]\n]*\])": r"\1",
    r"(?m)^\[[^\]\n]*\]: .*": "",
    r"</?[A-Za-z!][^<>]*>": "",
}
# A line break inside a paragraph: the rules count lines as pages of the web have them.
WRAPPED = r"(?<=\S)\n(?=[\w(\"'])"

with pipeline("pretraining") as ppl:
    ppl.prose = data.text.Replace([*NOT_PROSE], [*NOT_PROSE.values()], _max_workers=2)
    ppl.normalized = data.text.Normalize(_max_workers=2)
    ppl.unwrapped = data.text.Replace(WRAPPED, " ", _max_workers=2)
    ppl.quality = data.filters.Pretraining(languages=["en"], _max_workers=2)
    ppl.unique = data.dedup.Exact(ignore_case=True)
    ppl.distinct = data.dedup.NearDuplicate(threshold=0.7, verify=True, keep="longest")
    if BENCHMARK is not None:
        ppl.clean = data.decontaminate.NGrams(
            str(BENCHMARK), query_key="question", label_key="answer", ngram_size=12
        )
    ppl.split = data.sample.Split({"train": 0.95, "test": 0.05}, group_key="project")
    train = data.export.Parquet(str(CORPUS / "train.parquet"))
    test = data.export.Parquet(str(CORPUS / "test.parquet"))
    ppl.add("train_file", train, inputs=[ppl.split.train])
    ppl.add("test_file", test, inputs=[ppl.split.test])

defs = build_definitions(
    ppl,
    source=documents,
    resource=DataOpsResource(root=str(HOME / "results")),
    checks={
        "quality": [checks.max_dropped(0.95)],
        "distinct": [checks.unique("id"), checks.row_count(min=10)],
    },
)


def main() -> None:
    """Run the pipeline in plain Python; print what each step kept, and why it dropped others."""
    for report in ppl.materialize(list(documents())).values():
        for result, part in report.results.items():
            facts = part.manifest
            reasons = ", ".join(f"{number} {reason}" for reason, number in facts.drops.items())
            text = f"dropped {facts.dropped}: {reasons}" if reasons else report.exported or ""
            sys.stdout.write(f"{result:12} {facts.rows_in:5} -> {facts.rows_out:5}   {text}\n")


if __name__ == "__main__":
    main()

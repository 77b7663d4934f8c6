"""A worked example: a text corpus from files that every Python installation has.

The long descriptions of the installed distributions and the docstrings of the standard library:
thousands of documents, messy, with duplicates. ``python definitions.py`` materializes it without
the UI, and ``dg dev -w workspace.yaml`` shows it (``pip install dagster-dg-cli``).
"""

import ast
import os
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

import dagster as dg

from dagster_dataops import (
    DataOpsResource,
    build_definitions,
    checks,
    data,
    data_register,
    pipeline,
)

HOME = Path(os.environ.get("DAGSTER_HOME") or Path(__file__).parent / "dataops_home").absolute()


def documents() -> Iterator[dict[str, Any]]:
    """Descriptions of installed distributions and docstrings of the standard library."""
    texts = chain(distribution_descriptions(), standard_library_docstrings())
    for number, text in enumerate(texts):
        yield {"id": number, **text}


def distribution_descriptions() -> Iterator[dict[str, str]]:
    """Yield name, path and description of every installed distribution."""
    for distribution in sorted(metadata.distributions(), key=lambda found: found.name.lower()):
        files = distribution.files or []
        description = str(distribution.metadata.get_payload() or "")
        path = next((str(distribution.locate_file(f)) for f in files if f.name == "METADATA"), "")
        yield {"kind": "distribution", "name": distribution.name, "path": path, "text": description}


def standard_library_docstrings() -> Iterator[dict[str, str]]:
    """Yield name, path and text of every docstring in the standard library's modules."""
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted([*root.glob("*.py"), *root.glob("[a-z]*/*.py")]):
        if path.parent.name in {"test", "tests", "idlelib", "lib2to3", "site-packages"}:
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                text = ast.get_docstring(node)
                if text:
                    name = f"{path.stem}.{getattr(node, 'name', '__doc__')}"
                    yield {"kind": "docstring", "name": name, "path": str(path), "text": text}


corpus = data_register.new_group("corpus")


@data_register("data.corpus", _concurrency_mode="process")
def count_words(record: dict, input_key: str = "text", top: int = 5) -> dict:
    """Count words, and name the most frequent ones of at least five letters.

    Reads ``input_key``; writes ``words`` and ``keywords``.
    """
    words = [word.strip(".,:;()'\"`*").lower() for word in record[input_key].split()]
    frequent = Counter(word for word in words if len(word) > 4 and word.isalpha())
    record["words"] = len(words)
    record["keywords"] = [word for word, _ in frequent.most_common(top)]
    return record


@data_register("data.corpus", _concurrency_mode="thread", _max_workers=16)
def look_up_file(record: dict, input_key: str = "path") -> dict:
    """Read the file a document comes from, many at a time: work that waits for the disk.

    Reads ``input_key``; writes ``file_lines`` and ``file_bytes``. A file that is gone is an error
    of its record, which ends up in the error file.
    """
    content = Path(record[input_key]).read_bytes()
    record["file_lines"] = content.count(b"\n")
    record["file_bytes"] = len(content)
    return record


@data_register("data.corpus", rewrite_func="forward_batch_input")
def join_facts(chunks: list[dict], facts: list[dict], on: str = "id") -> list[dict]:
    """Add the columns of its document's file to every chunk.

    Reads ``on`` of both; writes ``file_lines`` and ``file_bytes`` where the file is known.
    """
    known = {record[on]: record for record in facts}
    for chunk in chunks:
        found = known.get(chunk[on], {})
        chunk["file_lines"] = found.get("file_lines")
        chunk["file_bytes"] = found.get("file_bytes")
    return chunks


with pipeline("corpus") as ppl:
    ppl.normalized = data.text.Normalize(input_key="text", _max_workers=2)
    ppl.substantial = data.text.LengthFilter(min_chars=120, _max_workers=2)
    ppl.prose = data.text.LetterRatioFilter(min_ratio=0.7, _max_workers=2)
    ppl.unique = data.dedup.Exact(input_key="text", ignore_case=True)
    ppl.counted = count_words(top=5, _max_workers=2)
    ppl.chunks = data.text.Chunk(max_chars=800, overlap_chars=80, _max_workers=2)
    ppl.add("file_facts", look_up_file(), inputs=[ppl.unique])
    ppl.add("training", join_facts(on="id"), inputs=[ppl.chunks, ppl.file_facts])

defs = dg.Definitions.merge(
    # Also for launches without a job, such as Materialize in the UI: steps need no process each.
    dg.Definitions(executor=dg.in_process_executor),
    build_definitions(
        ppl,
        source=documents,
        resource=DataOpsResource(root=str(HOME / "results")),
        schedule="0 2 * * *",
        # Trained again whenever an input was materialized.
        automation_condition={"training": dg.AutomationCondition.eager()},
        freshness_policy=dg.FreshnessPolicy.time_window(fail_window=timedelta(days=2)),
        max_error_rate={"file_facts": 0.02},  # a few files may be gone
        checks={
            "source": [checks.required_columns("id", "text", "path")],
            "substantial": [checks.max_dropped(0.9)],
            "unique": [checks.unique("id"), checks.row_count(min=100)],
            "training": [
                checks.no_nulls("text", "keywords"),
                checks.no_nulls("file_lines", severity="WARN"),
            ],
        },
    ),
)


def main() -> None:
    """Materialize every asset in a persistent instance and say where to look."""
    HOME.mkdir(parents=True, exist_ok=True)
    settings = HOME / "dagster.yaml"
    if not settings.exists():
        settings.write_text("telemetry:\n  enabled: false\n", encoding="utf-8")
    os.environ["DAGSTER_HOME"] = str(HOME)
    with dg.DagsterInstance.get() as instance:
        job = defs.resolve_job_def("corpus_pipeline")
        console = {"loggers": {"console": {"config": {"log_level": "INFO"}}}}
        result = job.execute_in_process(run_config=console, instance=instance)
    programs = Path(sys.executable).parent
    dg_or_dagster = "dg" if (programs / "dg").exists() else "dagster"  # superseded, always there
    training = HOME / "results" / "corpus" / "training" / "training_results.jsonl"
    sys.stdout.write(
        f"\nMaterialized {len(result.get_asset_materialization_events())} assets.\n"
        f"Results:  {HOME / 'results' / 'corpus'}\n"
        f"The last: {training}\n"
        f"The UI:   DAGSTER_HOME={HOME} {programs / dg_or_dagster} dev "
        f"-w {Path(__file__).parent.absolute() / 'workspace.yaml'}\n"
    )


if __name__ == "__main__":
    main()

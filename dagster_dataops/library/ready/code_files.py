"""`code_corpus`: filter and deduplicate files of source code for training."""

from collections.abc import Sequence
from typing import Final

from dagster_dataops import data
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.records import Record

PERMISSIVE: Final = (
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unlicense",
    "Zlib",
)
_GENERATED: Final = (
    r"(?is)\A.{0,1000}?(?:auto-?generated|generated (?:by|from)\b.{0,80}do not edit)"
)


def code_corpus(
    name: str = "code",
    *,
    input_key: str = "text",
    path_key: str = "path",
    languages: Sequence[str] | None = None,
    licences: Sequence[str] | None = PERMISSIVE,
    licence_key: str | None = None,
    grammars: Sequence[str] = (),
    min_comments: float | None = 0.01,
    max_comments: float | None = 0.8,
    threshold: float = 0.7,
) -> Pipeline:
    """Return a pipeline from files of source code to a training corpus.

    Dropped are files in other languages, without a listed licence, generated files, those whose
    lines are too long or have few letters, those with too few or too many comments, and those that
    cannot be parsed. Keys and tokens are masked. Of equal and similar files the first is kept;
    notices of licences do not count in that comparison.

    Args:
        name: Name of the pipeline.
        input_key: Column of the text of a file.
        path_key: Column of its path or name.
        languages: Languages to keep, by names of Pygments; ``None`` keeps all that it knows.
        licences: SPDX identifiers of licences to keep; ``None`` keeps all files.
        licence_key: Column of the licence of the repository, for files that name none.
        grammars: Languages whose syntax tree-sitter checks, beside Python and JSON; you install
            ``tree-sitter-<language>``.
        min_comments: Least share of comments, 0 to 1; ``None`` for no limit.
        max_comments: Largest share of comments, 0 to 1; ``None`` for no limit.
        threshold: Jaccard index, 0.01 to 1, from which files are similar.

    Returns:
        A pipeline whose result has ``language`` and ``licence``. It needs the extras ``code`` and
        ``dedup``, with ``grammars`` also ``tree-sitter``.
    """
    key = {"input_key": input_key}
    kept = None if languages is None else list(languages)
    allowed = None if licences is None else list(licences)
    with Pipeline(name) as ppl:
        ppl.language = data.code.Language(path_key, input_key, languages=kept)
        ppl.known = data.filters.Field("language", "!=", None)
        ppl.licence = data.code.Licence(input_key, licence_key=licence_key, licences=allowed)
        ppl.written = data.filters.Regex(_GENERATED, **key)
        ppl.lines = data.filters.MaximumLineLength(
            min_line_length=None, max_line_length=1000, **key
        )
        ppl.letters = data.filters.AlphanumericRatio(min_ratio=0.25, **key)
        ppl.comments = data.code.CommentRatio(min_ratio=min_comments, max_ratio=max_comments, **key)
        ppl.syntax = data.code.Syntax(input_key, languages=list(grammars), mode="drop")
        ppl.secrets = data.pii.Secrets(input_key)
        ppl.unique = data.dedup.Exact(**key)
        ppl.distinct = data.dedup.NearDuplicate(
            threshold=threshold, ignore_notices=True, verify=True, **key
        )
    return ppl


EXAMPLE: Final[tuple[Record, ...]] = (
    {
        "path": "rivers.py",
        "text": "# SPDX-License-Identifier: MIT\n# Lengths in km.\nRIVERS = {'Danube': 2850}\n",
    },
    {"path": "broken.py", "text": "# SPDX-License-Identifier: MIT\n# A list.\nx = [1, 2\n"},
    {"path": "other.py", "text": "# SPDX-License-Identifier: GPL-3.0-only\nx = 1\n"},
)

"""Every operator of the library that names columns tells when records lack them."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from dagster_dataops import JsonlDataset, data_register
from dagster_dataops.errors import (
    AbsentColumnError,
    DatasetOperatorError,
    ExportError,
    MissingExtraError,
)
from tests.each import each
from tests.execution.helpers import node, run, write_input
from tests.library import test_hostile_texts
from tests.library.all_operators import GROUPS
from tests.library.media import film, picture, saved, sound, tone
from tests.library.test_hostile_texts import IN_RUNS

# Options that an operator needs, besides those there.
OPTIONS: Final[Mapping[str, dict[str, Any]]] = {
    **test_hostile_texts.OPTIONS,
    "dedup.Against": {"reference": [{"text": "a", "txet": "b", "column": "c"}]},
    "audio.Cut": {"seconds": 0.5},
    "export.Alpaca": {"path": "a.json"},
    "export.ChatML": {"path": "a.json"},
    "export.Csv": {"path": "a.csv"},
    "export.HuggingFace": {"folder": "a"},
    "export.Jsonl": {"path": "a.jsonl"},
    "export.LitData": {"folder": "a"},
    "export.MDS": {"folder": "a"},
    "export.Megatron": {"path": "a/b"},
    "export.Messages": {"path": "a.json"},
    "export.Parquet": {"path": "a.parquet"},
    "export.ShareGPT": {"path": "a.json"},
    "export.WebDataset": {"pattern": "w/a-%d.tar"},
    "filters.Field": {"key": "text", "op": "==", "value": "a"},
    "images.Crop": {},
    "images.Score": {"model": lambda images: [1 for _ in images]},
    "join.Merge": {"on": "text"},
    "join.Table": {"on": "text"},
    "llm.Classify": {"labels": ["a", "b"]},
    "llm.Continue": {"prompt": "{{ text }}"},
    "llm.Extract": {"response_format": {"type": "object"}},
    "llm.Generate": {"prompt": "{{ text }}"},
    "llm.Judge": {"rubric": "Style"},
    "llm.PreferencePairs": {"rubric": "Style"},
    "llm.Rewrite": {"instruction": "Shorten"},
    "llm.Translate": {"to": "German"},
    "review.Ask": {"fields": "text"},
    "sample.Balance": {"group_key": "text"},
    "sample.Diversity": {"count": 1},
    "sample.GroupBy": {"group_key": "text"},
    "sample.Mix": {"weights": {"a": 1}},
    "sample.Reservoir": {"count": 1},
    "sample.Sort": {"sort_key": "text"},
    "sample.TopK": {"sort_key": "text", "count": 1},
    "score.TrainCharNGram": {"ngram_size": 2},
    "stats.Threshold": {"key": "text", "sigma": 1},
}
# Operators that cannot be constructed without a file of a model, a service or a package.
UNCONSTRUCTED: Final = {*test_hostile_texts.OF_MODELS, "export.HuggingFaceHub"}

NAMING: Final = re.compile(
    r"(\w+_)?keys?|columns|on|right_on|per|types|values|required|schema|features|members|template|prompt"
    r"|system|keep|fields"
)
WRITTEN: Final = frozenset(
    """
    backend_key boundaries_key cluster_key end_key entities_key error_key followed_key
    headings_key index_key missing_key output_key parsed_key positions_key reason_key score_key
    script_key secrets_key shares_key start_key stats_key time_key
    """.split()  # noqa: SIM905 - a list of words is easier to read
)
"""Options that name columns which operators write."""
EXEMPT: Final = {
    "chat.Render.template": "a template over messages, whatever columns they come from",
    "decontaminate.NGrams.label_key": "of the benchmark, which is checked when it is constructed",
    "decontaminate.NGrams.query_key": "of the benchmark",
    "decontaminate.NGrams.task_key": "of the benchmark, and optional there",
    "decontaminate.Overlap.label_key": "of the benchmark",
    "documents.Pages.page_key": "written",
    "documents.Pages.pages_key": "written",
    "decontaminate.Overlap.query_key": "of the benchmark",
    "filters.Pretraining.language_key": "identified if it is missing",
    "filters.Pretraining.language_score_key": "computed if it is missing",
    "filters.Regex.keep": "no column",
    "join.Lookup.columns": "of the table",
    "join.Lookup.right_on": "of the table, which is checked when it is constructed",
    "language.Identify.language_key": "written",
    "language.Identify.language_score_key": "written",
    "pii.Replace.keys": "a switch",
    "pii.Replace.key_replacement": "a text",
    "shape.Add.values": "written",
    "shape.Fill.values": "written where it is missing",
    "tokens.EncodeChat.ids_key": "written",
    "tokens.EncodeChat.labels_key": "written",
    "tokens.EncodeChat.spans_key": "written",
    "tokens.EncodeChat.template": "a template over messages",
    "tokens.EncodeChat.text_key": "written",
    "tokens.Pack.lengths_key": "written",
    "tokens.Pack.label_key": "names one of the columns, if it has labels",
    "verify.Fields.required": "records may lack it; a note tells if all do",
    "verify.Fields.types": "records may lack it; a note tells if all do",
    "verify.JsonSchema.schema": "of the whole record; a note tells if all lack a required one",
}
MISSPELT: Final = "txet"


def named(option: str, default: Any, name: str) -> Any:
    mapped = {
        "types": {name: "int"},
        "schema": {name: "string"},
        "features": {name: "string"},
        "members": {"txt": name},
    }
    if option in mapped:
        return mapped[option]
    if option in {"template", "prompt", "system"}:
        return f"{{{name}}}" if option == "template" else f"{{{{ {name} }}}}"
    if option == "keys" and default == "Rename":
        return {name: "new"}
    if (option, default) == ("columns", "MDS"):
        return {name: "json"}
    return [name] if option in {"keys", "columns"} else name


def naming() -> Iterator[tuple[str, str]]:
    """Yield each operator of the library and its options that name columns which it reads."""
    for group in sorted(GROUPS):
        for name in data_register.operators(group):
            spec = data_register.operator(group, name).__dataops_spec__
            where = f"{group}.{name}"
            if not spec.shipped or where in UNCONSTRUCTED:
                continue
            for option in spec.options:
                exempt = option.name in WRITTEN or f"{where}.{option.name}" in EXEMPT
                if NAMING.fullmatch(option.name) and not exempt:
                    yield where, option.name


def made(where: str, option: str, name: str, **settings: Any) -> Any:
    value = named(option, where.partition(".")[2], name)
    options = {**OPTIONS.get(where, {}), option: value, **settings}
    if (where, option) == ("sample.Split", "group_key"):
        options.pop("hash_key", None)
    if (where, option) == ("dedup.Url", "text_key"):
        options["keep"] = "longest"
    if (where, option) == ("join.Lookup", "on"):
        options["right_on"] = "text"
    if where == "join.Merge":
        options["duplicates"] = "first"
    if (where, option) == ("tokens.Pack", "columns"):
        options.pop("input_key", None)
    try:
        return data_register.operator(*where.split("."))(**options)
    except MissingExtraError:  # where a package is missing, another environment tests it
        return None


CASES: Final = list(naming())


def test_exemptions_are_about_options_that_there_are() -> None:
    for one in EXEMPT:
        group, name, option = one.split(".")
        spec = data_register.operator(group, name).__dataops_spec__
        assert option in {each.name for each in spec.options}, one
    assert len(CASES) > 130


DOCUMENT: Final = Path(__file__).parent / "documents" / "page.pdf"
TEXT: Final = "Ten quiet boats, 12 in all, lie in the old harbour of Lund."
USUAL: Final[dict[str, Any]] = {
    **dict.fromkeys(("text", "answer", "reference", "question", "prompt", "url"), TEXT),
    **dict.fromkeys(("response", "html", "source"), TEXT),
    "label": 1,
    "file": "media",
    "box": [0, 0, 1, 1],
    "instruction_id_list": ["keywords:existence"],
    "kwargs": [{"keywords": ["boats"]}],
    "messages": [{"role": "user", "content": TEXT}, {"role": "assistant", "content": TEXT}],
    "token_ids": [1, 2],
    "input_ids": [1, 2],
    "page": 1,
    "pages": 1,
    "path": "a.py",
    "language": "python",
    "negatives": [TEXT],
}
OF_PAGES: Final = ("Images", "Tables", "ToImage", "ToMarkdown", "ToText")
# Values that fit an option, where a text does not.
VALUES: Final[Mapping[str, Any]] = {
    "audio.Cut.segments_key": [[0, 0.5]],
    "chat.Validate.input_key": USUAL["messages"],
    "dedup.NearDuplicate.keep": 1,
    **{f"documents.{name}.page_key": 1 for name in (*OF_PAGES, "Join")},
    "dedup.SimHash.keep": 1,
    "dedup.Url.keep": 1,
    "export.LitData.input_key": [1, 2],
    "export.Megatron.input_key": [1, 2],
    "export.Megatron.label_key": [1, 2],
    "export.Megatron.lengths_key": [1, 1],
    "images.Crop.box_key": [0, 0, 1, 1],
    "images.NearDuplicate.image_hash_key": "0123456789abcdef",
    "images.NearDuplicate.keep": 1,
    "retrieval.Index.vector_key": [1.0, 2.0],
    "retrieval.TrainingForm.negatives_key": ["a"],
    "sample.Diversity.vector_key": [1.0, 2.0],
    "llm.SemanticDedup.vector_key": [1.0, 2.0],
    "shape.Cast.types": 1,
    "shape.Explode.input_key": [1],
    "stats.Threshold.key": 1,
    "tokens.Pack.columns": [1, 2],
    "tokens.Pack.input_key": [1, 2],
    "verify.IFEval.instructions_key": ["keywords:existence"],
    "verify.IFEval.kwargs_key": [{"keywords": ["boats"]}],
    "verify.JsonSchema.input_key": "a",
    "sample.Mix.group_key": "a",
}
REFUSED: Final = {
    ("documents.Join", "file_key"): DatasetOperatorError,
    ("documents.Join", "page_key"): DatasetOperatorError,
    ("documents.Join", "pages_key"): DatasetOperatorError,
    ("export.Megatron", "label_key"): ExportError,  # each id needs a label
    ("export.Megatron", "lengths_key"): ExportError,
    ("export.WebDataset", "members"): ExportError,  # a record without a member is no sample
    ("retrieval.Index", "vector_key"): DatasetOperatorError,
    ("score.Train", "label_key"): DatasetOperatorError,
}
"""Operators whose run fails at the first record that lacks the column."""
FAILING: Final = {
    *((f"documents.{name}", "page_key") for name in OF_PAGES),
    ("retrieval.TrainingForm", "negatives_key"),
    ("sample.Diversity", "vector_key"),
    ("shape.Template", "template"),
    ("verify.IFEval", "instructions_key"),
    ("verify.IFEval", "kwargs_key"),
}
"""Operators for which a record that lacks the column is an error."""
OF_FILES: Final = {
    "audio": sound(tone()),
    "documents": DOCUMENT.read_bytes(),
    "images": saved(picture(), "PNG"),
    "llm.Caption": saved(picture(), "PNG"),
    "llm.ReadPage": saved(picture(), "PNG"),
    "llm.Transcribe": sound(tone()),
    "llm.VisualQA": saved(picture(), "PNG"),
    "shape.AddFileFacts": b"facts",
    "video": film(seconds=1),
}
"""Groups and operators for which a record without a file is an error, and a file for each."""


def file_of(where: str) -> bytes:
    return OF_FILES.get(where) or OF_FILES.get(where.partition(".")[0], b"")


def inputs(where: str, path: Path, records: list[dict[str, Any]]) -> list[JsonlDataset]:
    """Return the inputs of an operator: two of the same records for a join."""
    (path / "media").write_bytes(file_of(where))
    dataset = write_input(path / "input.jsonl", records)
    return [dataset, dataset] if where == "join.Merge" else [dataset]


def settings_of(where: str) -> dict[str, Any]:
    kind = data_register.operator(*where.split(".")).__dataops_spec__
    plain = kind.kind.name in {"record", "selection"} and not kind.asynchronous
    return {"_concurrency_mode": "single"} if plain else {}


@each("case", CASES)
@pytest.mark.slow
def test_a_column_that_no_record_has_stops_every_operator(case, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    operator = made(*case, MISSPELT, **settings_of(case[0]))
    if operator is None:
        return
    folder = node(tmp_path / "nodes" / ".".join(case))
    given = inputs(case[0], tmp_path, [{"id": one, **USUAL} for one in range(3)])
    with pytest.raises(AbsentColumnError, match=f"'{MISSPELT}'") as caught:
        run(operator, given, folder)
    assert "Did you mean 'text'?" in caught.value.known
    assert "id, text, answer" in caught.value.known
    assert not folder.result.exists()
    assert not list(tmp_path.glob("a*")) + list(tmp_path.glob("w*"))


@each("case", [case for case in CASES if case[0].partition(".")[0] not in IN_RUNS])
def test_records_that_lack_a_column_are_counted_by_every_operator(
    case, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    operator = made(*case, "column", **settings_of(case[0]))
    if operator is None:
        return
    of_files = bool(file_of(case[0]))
    value = VALUES.get(".".join(case), "media" if of_files else TEXT)
    half = [
        {"id": one, **USUAL, "label": one % 2, **({"column": value} if one % 2 else {})}
        for one in range(6)
    ]
    given = inputs(case[0], tmp_path, half)
    if case in REFUSED:
        with pytest.raises(REFUSED[case]):
            run(operator, given, node(tmp_path / ".".join(case)))
        return
    report = run(operator, given, node(tmp_path / ".".join(case)))
    if report.manifest.failed:  # an operator that cannot do without
        assert of_files or case in FAILING
        assert report.manifest.failed == 3
        return
    lacking = 6 if case == ("join.Merge", "on") else 3
    missing = {one: n for one, n in report.manifest.counts.items() if one.startswith("missing_")}
    assert missing == {"missing_columns/column": lacking}
    warning = f"{lacking} of {report.manifest.rows_in} records lack the column 'column'"
    assert warning in report.notes

"""The columns that operators of the library need: those that their options name.

Most operators need the column of ``input_key``, if they have that option. `READS` holds the others.
A column that an operator can do without is not needed: one that it writes, or that it computes if
it is missing.
"""

import string
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dagster_dataops.operators.options.declared_columns import Declaration
from dagster_dataops.operators.options.read_columns import OptionsOf, ReadName, texts_in

INPUT_KEY: Final = OptionsOf(("input_key",))
_COLUMN: Final = OptionsOf(("input_key",), plain=True)
_KEY: Final = OptionsOf(("key",))
_GROUP: Final = OptionsOf(("group_key",))
_KEYS: Final = OptionsOf(("keys",), plain=True)
_VECTORS: Final = OptionsOf(("vector_key",))
_INSTRUCTIONS: Final = OptionsOf(("instructions_key", "kwargs_key"), plain=True)
_ON: Final = OptionsOf(("on",))
_FIELDS: Final = OptionsOf(("fields",))
_SCHEMA: Final = OptionsOf(("schema",), plain=True)
_DOCUMENT: Final = OptionsOf(("input_key", "unlock_key"))
_PAGE: Final = OptionsOf(("input_key", "page_key", "unlock_key"))
_RANKS: Final = frozenset({"first", "longest"})  # values of `keep` that name no column
_VALUES: Final = frozenset({"text", "low", "high"})  # of templates, besides options and columns


def _kept(**options: Any) -> list[ReadName]:
    """Return the key, and the columns by which one of similar records is kept."""
    keep = options.get("keep", "first")
    ranked = [] if keep in _RANKS else [ReadName(keep, plain=True)]
    texts = texts_in(options.get("text_key")) if keep == "longest" else []
    return [*INPUT_KEY(**options), *map(ReadName, texts), *ranked]


def _indexed(**options: Any) -> list[ReadName]:
    usual = "url" if options.get("by") == "url" else "text"
    return [ReadName(options.get("input_key") or usual)]


def _compared(**options: Any) -> list[ReadName]:
    asked = options.get("op", "exists") == "exists"
    return [ReadName(key, optional=asked) for key in _KEY(**options)]


def _asked(**options: Any) -> list[ReadName]:
    """Return what a person sees, and the keys of the conditions."""
    when = options.get("when")
    if not isinstance(when, Sequence) or not when:
        return _FIELDS(**options)
    conditions = [when] if isinstance(when[0], str) else when
    keys = [
        ReadName(key, optional=op == "exists")
        for key, op, *_ in (tuple(condition) for condition in conditions)
    ]
    return [*_FIELDS(**options), *keys]


def _verified(**options: Any) -> list[ReadName]:
    keys = [*texts_in(options.get("required")), *texts_in(options.get("types"))]
    return [ReadName(key, optional=True) for key in dict.fromkeys(keys)]


def _described(**options: Any) -> list[ReadName]:
    """Return the key, or the columns that the schema of a whole record requires."""
    schema = options.get("schema")
    if options.get("input_key") or not isinstance(schema, Mapping):
        return INPUT_KEY(**options)
    return [ReadName(key, plain=True, optional=True) for key in texts_in(schema.get("required"))]


def _vectors(**options: Any) -> list[ReadName]:
    return _VECTORS(**options) or INPUT_KEY(**options)


def _mined(**options: Any) -> list[ReadName]:
    asked = ("vector_key",) if options.get("vector_key") else ("input_key",)
    return OptionsOf((*asked, "positive_key", "answer_key"))(**options)


def _merged(**options: Any) -> list[ReadName]:
    left = texts_in(options.get("on"))
    right = texts_in(options.get("right_on")) or left
    both = [ReadName(key) for key in left if key in right]
    return [
        *both,
        *(ReadName(key, input=0) for key in left if key not in right),
        *(ReadName(key, input=1) for key in right if key not in left),
        *(ReadName(key, plain=True, input=1) for key in texts_in(options.get("columns"))),
    ]


def _followed(**options: Any) -> list[ReadName]:
    return [*INPUT_KEY(**options), *_INSTRUCTIONS(**options)]


def _filled(**options: Any) -> list[ReadName]:
    fields = [field for _, field, _, _ in string.Formatter().parse(options.get("template", ""))]
    return [ReadName(field.partition("[")[0], plain=True) for field in fields if field]


def _members(**options: Any) -> list[ReadName]:
    columns = (options.get("members") or {}).values()
    return [ReadName(column, plain=True) for column in columns]


def _packed(**options: Any) -> list[ReadName]:
    columns = texts_in(options.get("columns"))
    return [ReadName(column, plain=True) for column in columns] or _COLUMN(**options)


def _prompted(**options: Any) -> list[ReadName]:
    """Return the key, and the columns that the templates need."""
    from dagster_dataops.models.llm_operator import FILE_OPTIONS
    from dagster_dataops.models.prompt_templates import needed_names

    keys = texts_in(options.get("input_key"))
    known = {"record", *_VALUES, *options} if keys else {"record"}
    texts = [text for text in (options.get("prompt"), options.get("system")) if text]
    names = {name: None for text in texts for name in needed_names(text) if name not in known}
    files = [name for option in FILE_OPTIONS for name in texts_in(options.get(option))]
    plain = dict.fromkeys([*names, *files])
    return [*map(ReadName, keys), *(ReadName(name, plain=True) for name in plain)]


def _boxed(**options: Any) -> list[ReadName]:
    """Return the key, and the column of the box if not all records have the same."""
    boxes = [ReadName(options.get("box_key") or "box")] if options.get("box") is None else []
    return [*INPUT_KEY(**options), *boxes]


def _hashed(**options: Any) -> list[ReadName]:
    """Return the columns of the image or its hash, and those by which an image is kept."""
    keep = options.get("keep", "first")
    ranked = [] if keep in {"first", "largest"} else [ReadName(keep, plain=True)]
    hashes = texts_in(options.get("image_hash_key"))
    images = INPUT_KEY(**options) if not hashes or keep == "largest" else []
    return [*images, *map(ReadName, hashes), *ranked]


def _seen(**options: Any) -> list[ReadName]:
    """Return the columns of images and of a question, and those that the templates need."""
    images = [ReadName(name, plain=True) for name in texts_in(options.get("input_key"))]
    question = texts_in(options.get("question_key"))
    needed = _prompted(**{**options, "input_key": None})
    others = [column for column in needed if column != "question" or not question]
    return [*images, *map(ReadName, question), *others]


READS: Final[Mapping[str, Declaration]] = {
    "audio.Cut": OptionsOf(("input_key", "segments_key")),
    "chat.Validate": _COLUMN,
    "code.CommentRatio": OptionsOf(("input_key", "language_key")),
    "code.Language": OptionsOf(("path_key", "input_key")),
    "code.Licence": OptionsOf(("input_key", "licence_key")),
    "code.Syntax": OptionsOf(("input_key", "language_key")),
    "dedup.Against": _indexed,
    "dedup.Index": _indexed,
    "dedup.NearDuplicate": _kept,
    "dedup.SimHash": _kept,
    "dedup.Url": _kept,
    "documents.Images": _PAGE,
    "documents.Join": OptionsOf(("input_key", "file_key", "page_key", "pages_key"), plain=True),
    "documents.Metadata": _DOCUMENT,
    "documents.Pages": _DOCUMENT,
    "documents.Tables": _PAGE,
    "documents.ToImage": _PAGE,
    "documents.ToMarkdown": _PAGE,
    "documents.ToText": _PAGE,
    "export.Csv": OptionsOf(("columns",), plain=True),
    "export.HuggingFace": OptionsOf(("schema", "features"), plain=True),
    "export.HuggingFaceHub": OptionsOf(("features",), plain=True),
    "export.LitData": _COLUMN,
    "export.MDS": OptionsOf(("columns",), plain=True),
    "export.Megatron": OptionsOf(("input_key", "lengths_key", "label_key"), plain=True),
    "export.Parquet": _SCHEMA,
    "export.WebDataset": _members,
    "filters.Field": _compared,
    "filters.Url": OptionsOf(("url_key",)),
    "images.Crop": _boxed,
    "images.NearDuplicate": _hashed,
    "join.Lookup": _ON,
    "join.Merge": _merged,
    "join.Table": _ON,
    "llm.Caption": _seen,
    "llm.Classify": _prompted,
    "llm.Continue": _prompted,
    "llm.Extract": _prompted,
    "llm.Generate": _prompted,
    "llm.Judge": _prompted,
    "llm.PreferencePairs": _prompted,
    "llm.QAPairs": _prompted,
    "llm.ReadPage": _seen,
    "llm.Rewrite": _prompted,
    "llm.SelfConsistency": _prompted,
    "llm.SemanticDedup": _vectors,
    "llm.Translate": _prompted,
    "llm.VisualQA": _seen,
    "retrieval.HardNegatives": _mined,
    "retrieval.Index": _vectors,
    "retrieval.TrainingForm": OptionsOf(("input_key", "positive_key", "negatives_key")),
    "review.Ask": _asked,
    "sample.Balance": _GROUP,
    "sample.Diversity": _vectors,
    "sample.GroupBy": _GROUP,
    "sample.Mix": _GROUP,
    "sample.Rate": OptionsOf(("hash_key",)),
    "sample.Reservoir": OptionsOf(("hash_key", "group_key")),
    "sample.Sort": OptionsOf(("sort_key",)),
    "sample.Split": OptionsOf(("hash_key", "group_key")),
    "sample.TopK": OptionsOf(("sort_key", "group_key")),
    "score.Train": OptionsOf(("input_key", "label_key")),
    "shape.AddId": _COLUMN,
    "shape.Cast": OptionsOf(("types",)),
    "shape.Drop": _KEYS,
    "shape.Flatten": _KEYS,
    "shape.Hash": _COLUMN,
    "shape.Rename": _KEYS,
    "shape.Select": _KEYS,
    "shape.Template": _filled,
    "stats.Summary": OptionsOf(("keys",)),
    "stats.Threshold": _KEY,
    "tokens.Pack": _packed,
    "verify.AnswerF1": OptionsOf(("input_key", "reference_key")),
    "verify.Fields": _verified,
    "verify.IFEval": _followed,
    "verify.JsonSchema": _described,
    "verify.MathEqual": OptionsOf(("input_key", "reference_key")),
}
"""What operators need besides, or instead of, the column of ``input_key``."""

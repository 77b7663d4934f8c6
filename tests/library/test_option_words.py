"""Every option of the library has a name of one vocabulary, with a type that fits its meaning.

A new option needs a word of `WORDS`. Add a word only for a meaning that no word has.
"""

import re
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin

import pytest

from dagster_dataops import data_register
from docs import operator_catalogue as catalogue
from tests.each import each
from tests.library.all_operators import GROUPS

TEXT: Final = "str choice path texts mapping"


class Word(NamedTuple):
    """A meaning, the names that options with it have, and their types."""

    meaning: str
    names: str
    types: frozenset[str]


def _word(meaning: str, names: str, *types: str) -> Word:
    return Word(meaning, "|".join(names.split()), frozenset(" ".join(types).split()))


_PARTS: Final = "chars|words|tokens|sentences|lines|turns|columns|newlines"
WORDS: Final = (
    _word("the column that is read", "input_key", "str texts"),
    _word("another column", r"(\w+_)?key", "str texts"),
    _word("columns, perhaps inside of others", "keys", "str texts mapping"),
    _word(
        "columns of a file or table",
        "columns names required types schema members values fields binary on right_on",
        "str texts mapping",
    ),
    _word("smallest and largest number of parts", rf"(min|max)_(\w+_)?({_PARTS})", "int"),
    _word("a number of parts", rf"(overlap|span)_({_PARTS})", "int"),
    _word(
        "smallest and largest length in characters", r"(?!(min|max)_length)\w+_length", "int float"
    ),
    _word("other limits", "(min|max)_(words_per_line|per_group|level|hits|gap|distance)", "int"),
    _word("a share, or a quotient", r"((min|max|keep)_)?(\w+_)?ratio", "share float"),
    _word("shares by name", "ratios weights", "mapping numbers"),
    _word("similarity from which texts are the same", "threshold", "share"),
    _word(
        "smallest and largest score",
        r"(min|max)_(\w+_)?(score|perplexity|percentile)",
        "share float",
    ),
    _word("number of results", "count samples top", "int"),
    _word("size of an n-gram", "ngram_size", "int"),
    _word("n-grams with their limits", "(top|duplicate)_ngrams", "numbers"),
    _word(
        "memory, files and batches",
        "max_memory_mb shard_bytes row_group_rows records_per_file batch_size",
        "int",
    ),
    _word(
        "sizes of an algorithm",
        "bands rows permutations hashes blocks buckets bins epochs "
        "dimensions candidates chunk_size exact_up_to soft_word_threshold reasks",
        "int",
    ),
    _word(
        "numbers of an algorithm",
        "learning_rate temperature sigma tolerance overlap timeout_s",
        "int float",
    ),
    _word("kinds of files to keep", "formats modes codecs licences", "texts"),
    _word("limits of a file", "max_(pixels|bytes|frames)", "int"),
    _word("a duration, and its limits", "((min|max)_)?seconds", "float"),
    _word("samples of a sound in a second, and their limits", "((min|max)_)?rate", "int"),
    _word("size of an image in pixels, and its limits", "((min|max)_)?(width|height) size", "int"),
    _word("limits of a number of channels", "(min|max)_channels", "int"),
    _word(
        "limits of a number of an image or a sound",
        "(min|max)_(brightness|sharpness|entropy|loudness|snr)",
        "share float",
    ),
    _word("a level in decibels", "level", "float"),
    _word("numbers of an image", "box mean std", "numbers"),
    _word("quality of a lossy format", "quality", "int"),
    _word("columns with files for a model", "images audio files", "str texts"),
    _word("longer side of an image in pixels", "max_side", "int"),
    _word("random choice", "seed", "int"),
    _word("ids of tokens", "(end|pad)_id", "int"),
    _word("type of the numbers in a file", "dtype", "choice"),
    _word("features of columns in a file, as types or names of classes", "features", "mapping"),
    _word("names of digests", "digests", "texts"),
    _word("a dataset on a hub, its branch and its licence", "repo revision license", "str"),
    _word("language of the texts", "language", "str"),
    _word("languages", "languages", "texts str"),
    _word(
        "how texts are split", "words sentences tokenizer split_pattern", "str function texts path"
    ),
    _word("text between parts", "separator delimiter", "str"),
    _word("text in place of another", r"(\w+_)?replacement", "str texts"),
    _word(
        "text that is looked for",
        "pattern substrings characters stop_words stop_chars bullets "
        r"(banned_|soft_)?words banned_subwords domains urls",
        "str texts path",
    ),
    _word("a set of defaults", "preset character_set", "choice str"),
    _word(
        "what is done with some records",
        "mode keep missing empty duplicates on_error on_loss on_overflow nulls truncated thinking "
        "unanswered special_in_content animated",
        "choice str flag",
    ),
    _word(
        "how it works",
        "arguments backend engine by how op match order unit style format linkage template "
        r"script strip normalization (\w+_)?normalize compression table model model_path signals "
        "label labels phone_region strategy fit resample channels background output",
        TEXT + " function flag",
    ),
    _word("a function", "function", "function"),
    _word("largest documents and pictures", "max_(bytes|pages|pixels)|dpi", "int"),
    _word("what reads, one after another", "(retry_)?backends", "texts function operational"),
    _word("a secret", "password", "operational"),
    _word(
        "files and records besides the input",
        "path folder reference benchmark table pattern sentencepiece index",
        "str path texts mapping",
    ),
    _word(
        "words for a model",
        r"(\w+_)?prompt system instruction rubric scale examples to answer "
        "params response_format client delivery wait send_files image_detail",
        TEXT + " numbers any operational",
    ),
    _word(
        "a chat template and what it knows",
        "template template_kwargs special_tokens special_ids tools documents arguments undefined "
        "continue_final_message now template_name",
        TEXT + " flag any",
    ),
    _word("what a person decides about", "choices edit when instructions", TEXT + " float any"),
    _word("how many must agree", "agreement", "int"),
    _word("where and how questions are written", "to format", "operational"),
    _word("what is trained", "train mask train_reasoning train_calls", "choice flag"),
    _word("markers of turns", "(start|end)_marker", "str"),
    _word("other texts", "prefix suffix split value bos_token eos_token", "str any"),
    _word(
        "a switch",
        r"(keep|ignore|include|remove|filter|fix|find|flatten|stop_at|allow|add|drop|reuse|"
        r"split|escape|favor|decode|restore|replace|uncurl|unescape)_\w+",
        "flag operational choice",
    ),
    _word(
        "a switch",
        "alt_texts balance cards cancel collapse compat decimal_comma deduplicate emails "
        "end_with_assistant energon fenced flatten grounded ibans ips keys label_only "
        "line_punct_exclude_zero links list_bullets main_content merge multiple negate non_empty "
        "overwrite phones public_ips_only regex reverse strip symbolic top_or_bottom_only verify "
        "whole_words zip_to_shortest "
        "mask_first private mono files digest",
        "flag operational",
    ),
)
_SCALARS: Final[Mapping[Any, str]] = {bool: "flag", int: "int", float: "float", str: "str"}


def kinds_of(annotation: Any) -> Iterator[str]:
    inner = get_args(annotation)
    if "Operational" in str(annotation):
        yield "operational"
    elif hasattr(annotation, "__metadata__"):
        bounds = [one for one in annotation.__metadata__ if getattr(one, "le", None) == 1]
        yield from ["share"] if bounds and inner[0] is float else kinds_of(inner[0])
    elif get_origin(annotation) in {Union, UnionType}:
        for one in inner:
            yield from kinds_of(one)
    elif get_origin(annotation) is Literal:
        yield "choice"
    elif annotation is not type(None):
        yield _SCALARS.get(annotation) or _of_class(str(annotation))


def _of_class(text: str) -> str:
    names = {"Callable": "function", "Mapping": "mapping", "PathLike": "path", "Path": "path"}
    found = next((kind for name, kind in names.items() if re.search(rf"\b{name}\b", text)), None)
    if found is None and re.search(r"Sequence|Collection|Iterable|tuple", text):
        found = "numbers" if re.search(r"\b(int|float)\b", text) else "texts"
    return found or "any"


def unfit(name: str, annotation: Any) -> str:
    kinds = set(kinds_of(annotation))
    named = [word for word in WORDS if re.fullmatch(word.names, name)]
    if any(kinds <= word.types for word in named):
        return ""
    meanings = " or ".join(f"{word.meaning} ({', '.join(sorted(word.types))})" for word in named)
    return f"{name} takes {sorted(kinds)}; it means {meanings or 'nothing'}"


NAMES: Final = [f"{group}.{name}" for group in GROUPS for name in data_register.operators(group)]


@each("name", NAMES)
def test_every_option_has_a_word_for_its_meaning(name: str) -> None:
    spec = data_register.operator(*name.split(".")).__dataops_spec__

    assert [said for one in spec.options if (said := unfit(one.name, one.annotation))] == []


@pytest.mark.parametrize(
    ("name", "annotation"),
    [
        ("max_len", int),
        ("max_length", int),
        ("min_num", int),
        ("n", int),
        ("k", int),
        ("lang", str),
        ("max_frac", float),
        ("keep_fraction", float),
        ("text_column", str),
        ("per", str),
        ("sep", str),
        ("max_words", str),
        ("language", list[str]),
        ("input_key", int),
        ("threshold", int),
        ("ratio", str),
    ],
)
def test_another_word_and_another_type_are_found(name: str, annotation: Any) -> None:
    assert unfit(name, annotation)


def test_the_catalogue_shows_the_words_that_several_operators_share() -> None:
    page = (catalogue.Path(catalogue.__file__).parent / "catalogue/index.md").read_text("utf-8")
    lines = page.partition("## Names of options")[2].partition("\n## ")[0].splitlines()
    cells = [line.split(" | ")[1] for line in lines if line.startswith("| ")]
    shown = {word for cell in cells for word in re.findall(r"`([a-z][a-z_]*[a-z])`", cell)}
    used = {
        option.name
        for name in NAMES
        for option in data_register.operator(*name.split(".")).__dataops_spec__.options
    }

    assert len(shown) > 20
    assert shown <= used

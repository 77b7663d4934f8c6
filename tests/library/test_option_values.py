import sys
from operator import attrgetter
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, MissingExtraError
from dagster_dataops.library.analysis.markdown_parsing import commonmark_parser
from dagster_dataops.library.analysis.tokenizers import tokenization
from dagster_dataops.library.filters import url_rules
from dagster_dataops.library.option_values import check_choice


def test_a_value_that_is_none_of_the_choices_is_refused() -> None:
    check_choice("mode", "tag", ("drop", "tag"))
    with pytest.raises(DefinitionError, match="mode is None; use one of 'drop', 'tag'"):
        check_choice("mode", None, ("drop", "tag"))


@pytest.mark.parametrize(
    ("module", "name", "options", "extra"),
    [
        ("semchunk.semchunk", "chunk.Semantic", {}, "chunk"),
        ("rensa", "dedup.NearDuplicate", {}, "dedup"),
        ("ahocorasick", "filters.Blocklist", {"words": ["bad"]}, "word-lists"),
        ("tldextract", "filters.Url", {}, "urls"),
        ("jieba", "filters.WordCount", {"words": "jieba"}, "jieba"),
        ("MeCab", "filters.WordCount", {"words": "mecab"}, "mecab"),
        ("trafilatura", "html.Extract", {}, "html"),
        ("resiliparse.extract.html2text", "html.Extract", {"backend": "resiliparse"}, "html"),
        ("trafilatura", "html.Metadata", {}, "html"),
        ("lxml", "html.Tables", {}, "html"),
        ("markdownify", "html.ToMarkdown", {}, "html"),
        (
            "fasttext",
            "language.Identify",
            {"backend": "fasttext", "model_path": "lid.176.bin"},
            "fasttext",
        ),
        ("markdown_it", "markdown.Sections", {}, "markdown"),
        ("numpy", "score.Train", {}, "score"),
        ("ftfy", "text.FixUnicode", {}, "text"),
        ("re2", "filters.Regex", {"pattern": "a", "engine": "re2"}, "re2"),
        ("bpe_openai", "tokens.Count", {}, "tokens"),
        ("tokenizers", "tokens.Count", {"tokenizer": "some.json"}, "tokenizers"),
        ("jsonschema_rs", "verify.JsonSchema", {"schema": {}}, "json-schema"),
        ("math_verify", "verify.MathEqual", {"symbolic": True}, "math"),
        ("phonenumbers", "pii.Replace", {"phones": True, "phone_region": "DE"}, "phone"),
    ],
)
def test_the_extra_of_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, module: str, name: str, options: dict[str, Any], extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    for cached in (commonmark_parser, tokenization._of_name, url_rules._extractor):
        cached.cache_clear()

    with pytest.raises(MissingExtraError, match=rf"pip install 'dagster-dataops\[{extra}\]'"):
        attrgetter(name)(data)(**options)

import sys
from pathlib import Path
from typing import Any

import pytest
import xxhash

from dagster_dataops import data
from dagster_dataops.errors import MissingExtraError


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://www.Example.org:443/a?b=2&a=1&utm_source=x#top", "example.org/a?a=1&b=2"),
        ("http://example.org", "example.org/"),
        ("example.org/?fbclid=1", "example.org/"),
        ("//example.org:8080/A/", "example.org:8080/A/"),
        ("http://[::1]/x", "::1/x"),
        ("http://[bad", "http://[bad"),
        ("http://a:99999/", "http://a:99999/"),
        ("no url at all", "no url at all/"),
        ("  ", ""),
    ],
)
def test_urls_of_one_page_are_equal(url: str, canonical: str) -> None:
    bucket, _ = data.dedup.Url(keep="score").sketch({"url": url})
    assert bucket == (xxhash.xxh3_64_digest(canonical.encode()).hex() if canonical else "")


RECORDS = [
    {"url": "http://a.org/x", "text": "short", "score": 1},
    {"url": None, "text": "no"},
    {"url": "https://www.a.org/x#y", "text": "longer", "score": None},
    {"text": "no"},
    {"url": "https://b.org"},
    {"url": "a.org/x?gclid=1", "text": "longer", "score": 2},
]


@pytest.mark.parametrize(
    ("keep", "kept"),
    [("first", [0, 1, 3, 4]), ("longest", [1, 2, 3, 4]), ("score", [1, 3, 4, 5])],
)
def test_one_record_of_each_url_is_kept(root: Path, keep: str, kept: list[int]) -> None:
    assert data.dedup.Url(keep=keep)(RECORDS) == [RECORDS[at] for at in kept]


def test_a_url_that_is_no_text_fails_its_record(root: Path) -> None:
    assert data.dedup.Url()([{"url": 1}, {"url": "a"}]) == [{"url": "a"}]


def test_the_longest_needs_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(MissingExtraError, match=r"dagster-dataops\[dedup\]"):
        data.dedup.Url(keep="longest")
    found: Any = data.dedup.Url()
    assert found.sketch({"url": "a"})

import pytest

from dagster_dataops import Drop, data
from tests.each import each

pytest.importorskip("tldextract")


@pytest.fixture(scope="module")
def operator():
    return data.filters.Url(
        domains=["bad.co.uk", "ads.good.com"],
        urls=["http://good.com/secret"],
        banned_words=["Casino"],
        soft_words=["win", "free", "now"],
        banned_subwords=["xxx"],
    )


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://www.bad.co.uk/page", "domain"),
        ("http://co.uk/bad", None),
        ("https://ads.good.com/", "subdomain"),
        ("https://good.com/", None),
        ("http://good.com/secret", "url"),
        ("http://good.com/CASINO/1", "hard_blacklisted"),
        ("http://good.com/casinos", None),
        ("http://good.com/win-it-free", "soft_blacklisted"),
        ("http://good.com/win-it", None),
        ("http://good.com/x-x-x", "blacklisted_subword"),
        ("not a url", None),
        ("", None),
        (None, None),
    ],
)
def test_reasons(operator, url, reason):
    returned = operator.forward({"url": url})

    assert (returned.reason if isinstance(returned, Drop) else None) == reason


def test_signals_and_another_key():
    operator = data.filters.Url(soft_words=["a", "b"], url_key="meta.url", mode="tag")

    (record,) = operator([{"meta": {"url": "http://x.y/a/b"}}])

    assert record["stats"] == {"url_soft_words": 2, "url_banned": 1}


@each(
    "url",
    [
        "http://Example.COM/x",
        "https://example.com.:443/x",
        "http://user:word@www.example.com:8080/",
        "//example.com",
        "EXAMPLE.com",
        "http://bücher.de/",
        "http://BÜCHER.de./",
        "http://xn--bcher-kva.de:80/a",
        "http://XN--BCHER-KVA.DE",
        "http://例子.中国/",
        "http://ｅｘａｍｐｌｅ.com/",
        "http://sub.other.org/",
        "http://SUB.other.org.",
    ],
)
def test_hosts_are_compared_in_their_canonical_form(url):
    for domains in (
        ["example.com", "bücher.de", "例子.中国", "sub.other.org"],
        ["EXAMPLE.COM.", "xn--bcher-kva.de", "xn--fsqu00a.xn--fiqs8s", "https://Sub.Other.org/"],
    ):
        operator = data.filters.Url(domains=domains)
        assert operator.forward({"url": url}).reason in {"domain", "subdomain"}
        assert operator.forward({"url": "http://example.org/?example.com"}) is not None


@each(
    "url",
    [
        "http://[2606:4700::1]/",
        "http://[2606:4700:0:0:0:0:0:1]:80/",
        "http://%65vil.com/",
        "http://evil.com\\@good.com/",
    ],
)
def test_hosts_are_those_that_a_browser_takes(url):
    operator = data.filters.Url(domains=["2606:4700::1", "evil.com"])
    assert operator.forward({"url": url}).reason in {"domain", "subdomain"}


def test_urls_are_compared_in_their_canonical_form():
    operator = data.filters.Url(urls=["http://Example.com:80/A?b=1#c", "https://bücher.de"])

    for url in (
        "http://example.com/A?b=1",
        "HTTP://EXAMPLE.COM./A?b=1",
        "https://xn--bcher-kva.de/",
    ):
        assert operator.forward({"url": url}).reason == "url"
    for url in ("http://example.com/a?b=1", "http://example.com:81/A?b=1", "no url", "http://[x"):
        assert operator([{"url": url}]) == [{"url": url}]

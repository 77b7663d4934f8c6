import pytest

from dagster_dataops import data
from dagster_dataops.operators.outcomes.record_context import Drop

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

import pytest

from dagster_dataops.library.html.html_source import is_deep, readable


@pytest.mark.parametrize(
    ("page", "deep"),
    [
        ("<div>" * 6_000, True),
        ("<div>" * 3_000 + "</div>" * 3_000, True),
        ("<div>x</div>" * 6_000, False),
        ("<li>x" * 6_000, False),
        ("<br/><img>" * 6_000, False),
        ("<div>" * 2_000, False),
    ],
)
def test_deep_pages_are_recognized(page, deep):
    assert is_deep(page) is deep


def test_lone_surrogates_are_replaced():
    assert readable("a\ud800é") == "a?é"

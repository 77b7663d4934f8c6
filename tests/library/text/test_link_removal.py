import re

import pytest

from dagster_dataops import data


def change(text, **options):
    return data.text.RemoveLinks(**options).forward({"text": text})["text"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("see http://a.b/c, and", "see , and"),
        ("(https://en.wikipedia.org/wiki/A_(b)_c).", "()."),
        ("http://a.b/(c(d)e)", ""),
        ("mailto:me@x.org now", " now"),
        ("www.a.b! www2.c", "! www2.c"),
        ("go to sub.example.com/path?q=1.", "go to ."),
        ("example.com is no link, a.b/c neither", "example.com is no link, a.b/c neither"),
        ("12:30 and a: b", "12:30 and a: b"),
        ("HTTP://A.B/C", ""),
        ("http://", "http://"),
        ("x http:// y", "x http:// y"),
        ("http://a.b/(cd", "(cd"),
        ("9-ab://cd", "9-"),
        ("note²http://a.b/c, ½www.d.e ³f.com/gh", "note², ½ ³"),
        ("a\u0301www.b.c \u0940http://d.e", "a\u0301www.b.c \u0940http://d.e"),
        ("http://a.b/\x1cc d", " d"),
        ("", ""),
    ],
)
def test_links_are_found(text, left):
    assert change(text) == left


def test_a_link_is_replaced():
    assert change("a http://b.c/d e", replacement="<L>") == "a <L> e"
    assert change("a 12 b", pattern=r"\d+", replacement="#") == "a # b"


# Gruber's pattern as published, but for nested quantifiers, which take exponential time.
PUBLISHED = re.compile(
    r"\b((?:[a-z][\w-]+:(?:/{1,3}|[a-z0-9%])|www\d{0,3}[.]|[a-z0-9.\-]+[.][a-z]{2,4}/)"
    r"(?:[^\s()<>]|\((?:[^\s()<>]|\([^\s()<>]+\))*+\))+"
    r"(?:\((?:[^\s()<>]|\([^\s()<>]+\))*+\)|[^\s`!()\[\]{};:'\".,<>?«»“”‘’]))",
    re.IGNORECASE,
)


@pytest.mark.slow
def test_the_same_links_are_found_as_by_the_published_pattern():
    parts = ["a", "ab", ":", "/", ".", "com", "www", "1", "(", ")", "-", " ", ",", "é", "_", "%"]
    operator = data.text.RemoveLinks()
    state = 1
    for _ in range(20_000):
        pieces = []
        for _ in range(12):
            state = state * 6364136223846793005 % 2**64 + 1442695040888963407 & (2**64 - 1)
            pieces.append(parts[(state >> 33) % len(parts)])
        text = "".join(pieces)
        assert operator.forward({"text": text})["text"] == PUBLISHED.sub("", text), text


@pytest.mark.cpu_timeout(60)
def test_open_brackets_after_a_link_take_linear_time():
    for text in ("http://a.b/(" + "c" * 100_000, "http://a.b/((((" * 10_000, "ab:/(" * 20_000):
        change(text)


def test_urls_go_up_to_the_next_space():
    operator = data.text.RemoveUrls()

    assert operator.forward({"text": "a https://b.c, WWW.d e"})["text"] == "a   e"
    assert operator.forward({"text": "a.b/c"})["text"] == "a.b/c"

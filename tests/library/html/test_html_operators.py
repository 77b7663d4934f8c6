"""Every operator of the group, with every kind of page."""

from contextlib import nullcontext

import pytest

from dagster_dataops import data
from dagster_dataops.errors import NoTextError
from tests.library.adversarial import HOSTILE, NO_TEXTS, SCRIPTS

OPERATORS = {
    "Extract": {"timeout_s": None},
    "Extract resiliparse": {"backend": "resiliparse"},
    "ToMarkdown": {},
    "Metadata": {},
    "Tables": {},
}
PAGES = {
    "starts": "<" * 50_000,
    "divs": "<div>" * 20_000,
    "links": "<a " * 30_000,
    "attributes": '<a href="' * 10_000,
    "comments": "<!--" * 20_000,
    "instructions": "<?" * 30_000,
    "bold": "<b>" * 20_000,
    "paragraphs": "<p>x" * 10_000,
    "tables": "<table><tr><td>" * 5_000,
    "cells": "<table>" + "<tr><td>a b" * 5_000,
    "entities": "&#" * 50_000,
    "ends": "</a " * 20_000 + ">",
    "sections": "<![CDATA[" * 10_000,
    "language": "<html lang=" * 9_000,
}


def made(name):
    return getattr(data.html, name.split(" ", maxsplit=1)[0])(**OPERATORS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.cpu_timeout(120)
def test_hostile_pages_take_linear_time(name):
    operator = made(name)
    for page in (*HOSTILE.values(), *PAGES.values()):
        try:
            operator.forward({"html": page})
        except ValueError as error:
            assert "nested too deeply" in str(error)  # noqa: PT017 - some libraries can do it


@pytest.mark.parametrize("name", OPERATORS)
def test_every_script_and_missing_pages_are_accepted(name):
    operator = made(name)
    for record in ({}, {"html": None}, {"html": ""}, *({"html": text} for text in SCRIPTS)):
        operator.forward(record)
    operator.forward({"html": "<p>a\ud800b \x00</p>"})


@pytest.mark.parametrize("name", OPERATORS)
def test_a_value_that_is_no_text_is_an_error(name):
    operator = made(name)
    for value in NO_TEXTS:
        with pytest.raises(NoTextError, match="is no text"):
            operator.forward({"html": value})


@pytest.mark.parametrize(
    ("page", "deep"),
    [
        ("<div>" * 6_000, True),
        ("<div>" * 3_000 + "</div>" * 3_000, True),
        ("<div>x</div>" * 6_000, False),
        ("<li>x" * 6_000, False),
        ("<br/><img>" * 6_000, False),
    ],
)
def test_deep_pages_are_refused(page, deep):
    for name in ("ToMarkdown", "Extract resiliparse"):
        with pytest.raises(ValueError, match="nested too deeply for") if deep else nullcontext():
            made(name).forward({"html": page})
    made("Extract resiliparse").forward({"html": "<div>" * 2_000})


def test_lone_surrogates_are_replaced():
    assert data.html.ToMarkdown().forward({"html": "<p>a\ud800é</p>"})["text"] == "a?é"


def test_all_tests_cover_the_group():
    assert {name.split()[0] for name in OPERATORS} == set(dir(data.html))

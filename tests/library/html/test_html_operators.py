"""Every operator of the group, with every kind of page."""

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


def test_all_tests_cover_the_group():
    assert {name.split()[0] for name in OPERATORS} == set(dir(data.html))

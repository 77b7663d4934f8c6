"""Tests of dagster_dataops.operators.options.docstrings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.operators.options.docstrings import (
    described_parameters,
    first_sentence,
    option_descriptions,
    without_rst,
)

GOOGLE = """Cut texts.

    Args:
        size: Characters of a piece,
            at most.
        overlap (int): Characters that two share.

    Returns:
        The pieces.
    """
NUMPY = """Cut texts.

    Parameters
    ----------
    size : int
        Characters of a piece,
        at most.
    overlap : int, optional
        Characters that two share.

    Returns
    -------
    list
    """
REST = """Cut texts.

    :param size: Characters of a piece,
        at most.
    :param int overlap: Characters that two share.
    :returns: The pieces.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, REST], ids=["google", "numpy", "rest"])
def test_parameters_are_described_in_every_style(text):
    def cut(record, size, overlap):
        return record, size, overlap

    cut.__doc__ = text

    assert option_descriptions(cut) == {
        "size": "Characters of a piece,\nat most.",
        "overlap": "Characters that two share.",
    }


def test_numpy_describes_several_parameters_at_once():
    text = "Resize.\n\nParameters\n----------\nwidth, height : int\n    Pixels.\n"

    assert described_parameters(text) == {"width": "Pixels.", "height": "Pixels."}


def test_stars_and_backticks_belong_to_no_name():
    text = "Resize.\n\nArgs:\n    **options: More.\n    `size`: Pixels.\n"

    assert described_parameters(text) == {"options": "More.", "size": "Pixels."}


class Base:
    """A base.

    Args:
        a: By the base.
        b: By the base.
    """


class Derived(Base):
    """A derived class.

    Args:
        b: By the class.
        c: By the class.
    """

    def __init__(self, c):
        """Make one.

        Args:
            c: By the constructor.
        """

    def forward(self, d):
        """Go.

        Args:
            d: By forward.
        """


def test_a_class_is_described_by_its_own_docstring_before_those_of_its_bases():
    assert option_descriptions(Derived) == {
        "a": "By the base.",
        "b": "By the class.",
        "c": "By the constructor.",
        "d": "By forward.",
    }


def test_without_a_docstring_nothing_is_described():
    assert option_descriptions(lambda record: record) == {}


LINES = st.sampled_from(
    ["Args:", "  a: b", "    a (int)", ":param", ":param a:", "Parameters", "---", "a : int", ""]
)


@given(st.lists(LINES | st.text(max_size=12), max_size=9).map("\n".join))
def test_no_docstring_is_too_odd(text):
    assert all(isinstance(said, str) for said in described_parameters(text).values())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Reads ``text``.", "Reads `text`."),
        ("``a\nb`` and ``c``", "`a\nb` and `c`"),
        ("``a`b`` stays", "``a`b`` stays"),
        (":func:`other`, :py:class:`~a.b.Reader`", "`other`, `Reader`"),
        (":meth:`its form <a.b.form>`, :obj:`!name`", "`its form`, `name`"),
        (
            "see `here <https://a.org/b_c>`_ or `there <https://b.org>`__",
            "see [here](https://a.org/b_c) or [there](https://b.org)",
        ),
        ("```python\nx = '``y``'\n```\n``z``", "```python\nx = '``y``'\n```\n`z`"),
        ("`a` and a_b, 10:30 and :-)", "`a` and a_b, 10:30 and :-)"),
    ],
)
def test_marks_of_rst_become_those_of_markdown(text: str, shown: str) -> None:
    assert without_rst(text) == shown


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One. Two.", "One."),
        ("Seconds, such as 0.5; e.g. one. `b`: c.", "Seconds, such as 0.5; e.g. one."),
        ("Only one", "Only one"),
    ],
)
def test_the_first_sentence_ends_before_the_next_one(text: str, first: str) -> None:
    assert first_sentence(text) == first

"""Tests of dagster_dataops.operators.options.docstrings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.operators.options.docstrings import described_parameters, option_descriptions

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

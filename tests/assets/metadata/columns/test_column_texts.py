"""Tests of what columns are, from the docstrings of options."""

from typing import Any

import pytest

from dagster_dataops import chain, data
from dagster_dataops.assets.metadata.columns.column_texts import sentence, texts_of
from tests.registries import OperatorRegistry


@pytest.mark.parametrize(
    ("description", "text"),
    [
        ("Column of the score.", "The score."),
        ("The key of the language.", "The language."),
        ("Key of the text: a column, or a selector.", "The text."),
        ("Key of the text: a column or a selector, or several.", "The text."),
        ("Column of the error in words; ``None`` writes none.", "The error in words."),
        ("Where the masked text is written; by default, ``input_key``.", "The masked text."),
        ("Where the texts are written, as many keys; ``None`` for ``input_key``.", "The texts."),
        ("The key to which the reply is written.", "The reply."),
        (
            "Column that ``tag`` writes: the reason for\nwhich it drops. More.",
            "The reason for which it drops.",
        ),
        ("Language of the page, by ISO 639-1.", "Language of the page, by ISO 639-1."),
        ("Between 0.5 and 1.5; higher is better.", "Between 0.5 and 1.5."),
        ("The reason of ``tag``", "The reason of `tag`."),
        ("Column name, or a selector.", ""),
        ("Column that is hashed, or several.", ""),
        ("Column of the question in the benchmark.", ""),
        ("Name of the column.", ""),
        ("", ""),
    ],
)
def test_a_description_of_an_option_says_what_its_column_is(description: str, text: str) -> None:
    assert sentence(description) == text


def texts(operator: Any) -> dict[str, str]:
    return {one.column: one.text for one in texts_of(operator)}


def test_operators_of_the_library_say_what_they_write() -> None:
    assert texts(data.shape.Hash(input_key="text", output_key="digest")) == {"digest": "The hash."}
    assert texts(data.language.Identify(input_key="text")) == {
        "text": "The text.",
        "lang": "The language.",
        "lang_score": "The score.",
    }
    assert texts(data.shape.Hash(input_key="text", output_key="meta.digest")) == {}


def test_the_parts_of_a_chain_say_it_too() -> None:
    operator = chain(
        data.text.Normalize(input_key="body"), data.shape.Hash(input_key="body", output_key="h")
    )
    assert texts(operator) == {"body": "The text.", "h": "The hash."}


def test_operators_of_a_user_say_it_in_their_docstring(registry: OperatorRegistry) -> None:
    @registry("data.text", _concurrency_mode="single")
    def grade(record: dict, output_key: str = "grade", limit: int = 1) -> None:
        """Grade a record.

        Args:
            record: The record.
            output_key: School grade, from 1 to 6.
            limit: The largest grade.
        """

    assert texts(grade()) == {"grade": "School grade, from 1 to 6."}
    assert texts(grade(output_key="note")) == {"note": "School grade, from 1 to 6."}

"""Tests of dagster_dataops.models.prompt_templates."""

import pytest

from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.models.prompt_templates import compiled, rendered


def test_columns_are_known_by_name():
    assert rendered("{{ a }} and {{ b.c }}\n", {"a": 1, "b": {"c": "x"}}) == "1 and x\n"


def test_json_is_not_written_for_html():
    assert rendered("{{ a | tojson }}", {"a": ["<é>"]}) == '["<é>"]'


def test_a_text_without_marks_is_itself():
    assert rendered("100 %", {}) == "100 %"


def test_a_text_of_a_record_is_never_a_template():
    assert rendered("{{ a }}", {"a": "{{ b }}"}) == "{{ b }}"


@pytest.mark.parametrize("text", ["{{ b }}", "{{ a.b.c }}", "{% for x in b %}{% endfor %}"])
def test_an_unknown_value_is_an_error_that_names_the_known_ones(text: str):
    with pytest.raises(UnfitRecordError, match="known: a"):
        rendered(text, {"a": {}})


@pytest.mark.parametrize(
    "text", ["{{ a.__class__.__mro__ }}", "{{ a.append(1) }}", "{{ ''.__class__ }}"]
)
def test_a_template_reaches_no_internals_and_changes_nothing(text: str):
    values = {"a": [1]}

    with pytest.raises(UnfitRecordError):
        rendered(text, values)
    assert values == {"a": [1]}


def test_an_invalid_template_names_its_line():
    with pytest.raises(ValueError, match="line 2"):
        compiled("a\n{% if %}")

"""Tests of dagster_dataops.models.prompt_templates."""

import pytest

from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.models.prompt_templates import compiled, needed_names, rendered
from tests.each import each


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


@each(
    "case",
    [
        ("no names", []),
        ("{{ a }} {{ b.c }} {{ d[0] | tojson }}", ["a", "b", "d"]),
        ("{{ a if b else c }} {% if d %}{{ e }}{% else %}{{ f }}{% endif %}", ["b", "d"]),
        ("{{ a | default('') }} {{ b is defined }} {{ c }}", ["c"]),
        ("{% for x in xs %}{{ x }} {{ other }}{% endfor %}", ["xs"]),
        ("{% set y = a %}{{ y }} {{ a or b }} {{ a and c }}", ["a"]),
        ("{% macro m(x) %}{{ x }}{{ z }}{% endmacro %}{{ m(a) }}", ["a"]),
        ("{{ malformed", []),
    ],
)
def test_names_that_a_template_cannot_do_without_are_known(case):
    text, names = case
    assert needed_names(text) == names


def test_the_nearest_name_is_in_the_error():
    with pytest.raises(UnfitRecordError, match="did you mean 'question'"):
        rendered("{{ qusetion }}", {"question": "a"})

"""Fields of a defs.yaml for checks."""

import pytest

from dagster_dataops import (
    ErrorRateCheck,
    checks,
)
from dagster_dataops.assets.components.check_fields import CheckModel
from tests.assets.component_project import WARNED_OF
from tests.assets.components.declared import keywords_of

pytestmark = WARNED_OF


@pytest.mark.parametrize(
    ("written", "rate"),
    [
        ("0.5", 0.5),
        ("'{{ 1 / 4 }}'", 0.25),
        ("{max_error_rate: 0.5}", ErrorRateCheck(0.5)),
        ("{severity: ERROR}", ErrorRateCheck(severity="ERROR")),
        ("{max_error_rate: '{{ 1 / 4 }}', blocking: true}", ErrorRateCheck(0.25, blocking=True)),
        ("unchecked", None),
    ],
)
def test_how_many_records_may_fail_is_a_number_a_check_or_not_looked_at(project, written, rate):
    said = f"max_error_rate: {written}\n"

    assert keywords_of(project, said) == {"max_error_rate": rate}
    assert keywords_of(project, "", f"    {said}") == {"max_error_rate": {"marked": rate}}
    assert keywords_of(project, "max_error_rate: 0.75\n", f"    {said}") == {
        "max_error_rate": {"marked": rate}
    }


def test_a_check_may_contain_templates(project, monkeypatch):
    monkeypatch.setenv("A_TEST_OF_THIS", "3")
    written = """    checks:
      - row_count: {min: '{{ env.A_TEST_OF_THIS }}'}
        name: "{{ 'enough' }}"
        severity: "{{ 'WARN' }}"
        blocking: '{{ False }}'
"""
    (check,) = keywords_of(project, "", written)["checks"]["marked"]

    assert check.description == "There are at least 3 records."
    assert (check.name, check.severity.value, check.blocking) == ("enough", "WARN", False)


def test_limits_of_trained_tokens(project):
    written = """    checks:
      - trained_tokens: {min_ratio: 0.25, tokenizer: bytes, special_ids: {"<|end|>": 256}}
"""
    (check,) = keywords_of(project, "", written)["checks"]["marked"]

    assert check.description == "25.0 % to 90.0 % of the tokens are trained."


def test_every_kind_has_a_public_name_and_a_field_of_that_name_in_a_defs_yaml() -> None:
    fields = CheckModel.model_json_schema()["properties"]
    for name, kind in checks.CHECK_KINDS.items():
        assert getattr(checks, name) is kind.declare
        assert name in fields

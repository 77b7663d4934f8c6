"""Tests of declared checks over one file: passes, violations and their lines."""

from dagster_dataops import checks
from dagster_dataops.assets.components.check_fields import CheckModel


def test_every_kind_has_a_public_name_and_a_field_of_that_name_in_a_defs_yaml() -> None:
    fields = CheckModel.model_json_schema()["properties"]
    for name, kind in checks.CHECK_KINDS.items():
        assert getattr(checks, name) is kind.declare
        assert name in fields

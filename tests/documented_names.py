"""The names that documents and tests of the public face agree with."""

from dagster_dataops.foundation.exports import public_names
from dagster_dataops.library import GROUPS
from dagster_dataops.operators.options.docstrings import described_parameters
from dagster_dataops.operators.options.settings import SETTING_NAMES

__all__ = ["GROUPS", "SETTING_NAMES", "described_parameters", "public_names"]

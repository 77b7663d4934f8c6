"""Groups of the library are imported one by one."""

import pytest

from dagster_dataops import data, data_register
from tests.library.all_operators import GROUPS


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_the_module_of_a_group_registers_its_operators(group):
    found = data_register.operators(group)

    assert found
    assert dir(getattr(data, group)) == found


def test_a_group_is_imported_alone_and_no_optional_package_with_it(run_python):
    run_python(
        """
import sys

from dagster_dataops import data

assert "filters" in dir(data)
data.filters.TextLength
assert "dagster_dataops.library.filters.length_rules" in sys.modules
assert "dagster_dataops.library.filters.url_rules" not in sys.modules  # has other operators
assert "TextLength: " in data.filters.__doc__ and "Url: " in data.filters.__doc__
library = "dagster_dataops.library."
groups = {name.split(".")[2] for name in sys.modules if name.startswith(library)}
shared = {"analysis", "comparison", "columns_read", "field_keys", "filter_outcome", "option_values"}
shared |= {"user_patterns"}
assert groups <= {"filters", *shared}, groups
optional = {"numpy", "spacy", "jieba", "MeCab", "ahocorasick", "tldextract", "regex"}
assert optional.isdisjoint(sys.modules)
"""
    )

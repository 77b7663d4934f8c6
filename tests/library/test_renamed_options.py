"""Options that had another name in 0.2: it is accepted, and the digest of options is the same.

``renamed_options.json`` has the digests that 0.2 gave.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from dagster_dataops import data_register
from dagster_dataops.errors import DefinitionError, MissingExtraError, OperatorOptionError
from dagster_dataops.operators.definition.spec import Invocation, OperatorSpec
from tests.each import each
from tests.library.all_operators import GROUPS

CASES: Final = json.loads(
    Path(__file__).with_suffix(".json").with_stem("renamed_options").read_text()
)


def spec_of(case: dict[str, Any]) -> OperatorSpec:
    found: OperatorSpec = data_register.operator(*case["operator"].split(".")).__dataops_spec__
    return found


def present(case: dict[str, Any]) -> dict[str, Any]:
    names = {old: one.name for one in spec_of(case).options for old in one.former}
    return {names.get(name, name): value for name, value in case["given"].items()}


@each("case", CASES)
def test_the_digest_is_that_of_the_former_name(case: dict[str, Any]) -> None:
    spec = spec_of(case)
    options = {one.name: present(case).get(one.name, one.default) for one in spec.options}

    assert case["new"] in present(case)
    assert (
        Invocation(spec=spec, options=options, settings=spec.settings).options_digest
        == (case["digest"])
    )


def test_every_renamed_option_has_a_recorded_digest() -> None:
    recorded = {(case["operator"], case["old"], case["new"]) for case in CASES}
    renamed = {
        (f"{group}.{name}", old, option.name)
        for group in GROUPS
        for name in data_register.operators(group)
        for option in data_register.operator(group, name).__dataops_spec__.options
        for old in option.former
    }

    assert renamed == recorded


def constructed(operator: Any, options: dict[str, Any]) -> Any:
    try:
        return operator(**options)
    except OperatorOptionError as error:
        if "must be" not in error.reason:  # the recorded values have the type of a text or number
            raise
    except (DefinitionError, MissingExtraError, OSError, TypeError, ValueError):
        pass
    return None


@each("case", CASES)
def test_the_former_name_is_accepted_and_not_beside_the_present_one(case: dict[str, Any]) -> None:
    operator = data_register.operator(*case["operator"].split("."))
    value = case["given"][case["old"]]
    said = re.escape(f"option {case['old']!r} is named {case['new']!r} now; 0.4 will not know")
    others = {name: one for name, one in present(case).items() if name != case["new"]}

    with pytest.warns(DeprecationWarning, match=said):
        made = constructed(operator, {**others, case["old"]: value})
    assert made is None or made.__dataops__.options[case["new"]] == value
    with pytest.raises(
        OperatorOptionError, match=f"{case['new']!r} was given, and {case['old']!r}"
    ):
        operator(**present(case), **{case["old"]: value})

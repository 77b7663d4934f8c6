"""Options that do not affect results."""

from typing import Annotated, Any

import pydantic
import pytest

from dagster_dataops.foundation.hashing.operational import Operational, is_annotated_operational
from dagster_dataops.foundation.hashing.values import digest


def test_objects_declared_operational_do_not_count():
    class Model(Operational):
        def __init__(self, key):
            self.key = key

    assert digest(Model("a")) == digest(Model("b"))
    assert digest([pydantic.SecretStr("a")]) == digest([pydantic.SecretStr("b")])


@pytest.mark.parametrize(
    ("annotation", "marked"),
    [
        (Annotated[float, Operational], True),
        (Annotated[float, Operational] | None, True),
        (Operational, True),
        ("Annotated[float, Operational]", True),
        (Annotated[float, "seconds"], False),
        (float | None, False),
        ("float", False),
        (Any, False),
    ],
)
def test_an_annotation_marks_its_parameter(annotation, marked):
    assert is_annotated_operational(annotation) is marked

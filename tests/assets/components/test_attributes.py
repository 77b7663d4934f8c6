"""The fields of a pipeline in a defs.yaml."""

import inspect

from dagster_dataops import (
    OperatorPipelineComponent,
    build_definitions,
)
from tests.assets.component_project import WARNED_OF

pytestmark = WARNED_OF


def test_every_python_option_exists_in_yaml():
    """A keyword of `build_definitions` that is missing here needs a field of the component."""
    fields = OperatorPipelineComponent.model().model_fields.keys()
    elsewhere = {
        "ppl": "operators",
        "dagster_dataops_translator": "translation",
        "unpartitioned": "operators",
        "checks": "source_checks",
    }

    keywords = inspect.signature(build_definitions).parameters
    assert {name for name in keywords if elsewhere.get(name, name) not in fields} == set()


def test_every_field_has_a_description():
    schema = OperatorPipelineComponent.model().model_json_schema()
    node = schema["$defs"]["OperatorNodeModel"]
    shown = {**schema["properties"], **node["properties"]}

    undocumented = {name for name, field in shown.items() if not field.get("description")}
    assert undocumented == {"translation"}  # Dagster's own

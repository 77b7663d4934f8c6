"""Tests of artefacts as options in a defs.yaml."""

import dagster as dg
import pytest
from dagster.components.core.component_tree import ComponentTreeException

from dagster_dataops import (
    OperatorDeclaration,
    OperatorPipelineComponent,
    data_register,
    load_artefact,
)
from dagster_dataops.errors import DefsYamlError
from tests.assets.component_project import WARNED_OF, Project
from tests.assets.helpers import execute, result_of, spec_of
from tests.nodes import ArtefactReference

pytestmark = WARNED_OF

group = data_register.new_group("artefact_fields_tests")


class Index(group):
    def build(self, records, folder):
        (folder / "count").write_text(str(len(list(records))))


@data_register("data.artefact_fields_tests")
def kept(record, value=None):
    return record


MODULE = """
from dagster_dataops import data_register

group = data_register.new_group("{group}")

class Ids(group):
    def build(self, records, folder):
        (folder / "ids").write_text(" ".join(str(record["id"]) for record in records))

class Count(group):
    def __init__(self, ids, more=None, **kwargs):
        super().__init__(**kwargs)
        self.ids = (ids / "ids").read_text().split()
        self.more = [len((each / "ids").read_text().split()) for each in more or []]

    def forward(self, record):
        record["count"] = len(self.ids)
        record["more"] = self.more
"""
YAML = """
name: docs
source: texts.jsonl
modules: [operators.py, ids.py]
resource: {{root: "{root}"}}
operators:
  - name: ids
    operator: "{{group}}.Ids"
  - name: counted
    operator: "{{group}}.Count"
    options:
      ids: {option}
    concurrency_mode: thread
"""


def write(project: Project, root, option: str) -> None:
    path = project.write(YAML.format(root=root, option=option))
    path.with_name("ids.py").write_text(MODULE.replace("{group}", project.group))


def raised_by(project: Project) -> DefsYamlError:
    """Load the definitions and return the error of the defs.yaml."""
    try:
        with project.component():
            raise AssertionError("it loads")
    except (ComponentTreeException, DefsYamlError) as error:
        found = error if isinstance(error, DefsYamlError) else error.__cause__
    assert isinstance(found, DefsYamlError)
    return found


def test_an_option_names_the_node_of_an_artefact(project: Project, tmp_path, instance) -> None:
    write(project, tmp_path, "{artefact: ids}\n      more: [{artefact: ids}]")
    with project.loaded() as definitions:
        dg.Definitions.validate_loadable(definitions)
        deps = {dep.asset_key.path[-1] for dep in spec_of(definitions, "docs", "counted").deps}
        assert deps == {"texts", "ids"}
        assert execute(definitions, instance).success
    rows = result_of(tmp_path, "docs", "counted")
    assert [(row["count"], row["more"]) for row in rows] == [(4, [4])] * 4
    assert (load_artefact(tmp_path / "docs" / "ids").path / "ids").read_text() == "0 1 2 3"


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("{artefact: idz}", "did you mean 'ids'?"),
        ("{artefact: counted}", "which is a record operator; an option takes an artefact"),
    ],
)
def test_an_option_that_names_another_node_is_refused_at_its_line(
    project: Project, tmp_path, option: str, reason: str
) -> None:
    write(project, tmp_path, option)
    error = raised_by(project)
    assert reason in error.reason
    assert error.place.endswith("defs.yaml:14")
    assert error.subject == "node 'counted'"


def test_an_artefact_as_input_is_refused_at_its_line(project: Project, tmp_path) -> None:
    write(project, tmp_path, "{artefact: ids}\n    inputs: [ids]")
    error = raised_by(project)
    assert "which is an artefact: a folder, not records" in error.reason
    assert error.place.endswith("defs.yaml:15")


def test_other_mappings_stay_what_they_are() -> None:
    declaration = OperatorDeclaration(
        name="exact",
        operator="artefact_fields_tests.kept",
        options={
            "value": {"artefact": "index", "other": [{"artefact": 1}, {"artefact": "index"}]},
        },
    )
    options = declaration.construct().__dataops__.options
    reference = ArtefactReference("index")
    assert options["value"] == {"artefact": "index", "other": [{"artefact": 1}, reference]}


def test_a_component_in_python_takes_the_same_options(tmp_path, records) -> None:
    component = OperatorPipelineComponent(
        name="docs",
        source=str(records(2)),
        operators=[
            OperatorDeclaration(name="index", operator="artefact_fields_tests.Index"),
            OperatorDeclaration(
                name="kept",
                operator="artefact_fields_tests.kept",
                options={"value": {"artefact": "index"}},
            ),
        ],
    )
    assert component.operators[1].construct().__dataops__.artefacts == ("index",)

"""Ready pipelines as ``dg scaffold defs`` writes them."""

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from pydantic import ValidationError

from dagster_dataops import OperatorPipelineComponent, build_definitions, data, pipeline
from dagster_dataops.assets.components.declared_form import declared_nodes
from dagster_dataops.assets.components.scaffolder import ScaffoldParams
from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.library.ready import FORMS
from tests.assets.component_project import WARNED_OF
from tests.each import each

pytestmark = WARNED_OF

pytest.importorskip("bm25s", reason="the extra retrieval is not installed")


def everything_in(definitions: dg.Definitions) -> str:
    return dg.serialize_value(RepositorySnap.from_def(definitions.get_repository_def()))


def scaffolded(project, form: str, written: str) -> tuple[str, dg.Definitions]:
    """Write a form; return the name of its folder, and the definitions of its function."""
    folder = f"{form}_{written}_{project.group}"
    path = project.sandbox.scaffold_component(
        OperatorPipelineComponent,
        defs_path=folder,
        scaffold_format=written,
        scaffold_params={"form": form},
    )
    ppl = FORMS[form].build(folder, **FORMS[form].options)
    return folder, build_definitions(ppl, source=path / "records.jsonl")


@pytest.mark.slow
def test_the_yaml_form_has_the_definitions_of_the_function(project):
    for form in FORMS:
        folder, theirs = scaffolded(project, form, "yaml")
        with project.component(folder) as (_, ours):
            assert everything_in(ours) == everything_in(theirs), form


def versions(definitions: dg.Definitions) -> dict[dg.AssetKey, str | None]:
    return {spec.key: spec.code_version for spec in definitions.resolve_all_asset_specs()}


@pytest.mark.slow
def test_the_python_form_has_the_code_versions_of_the_function(project):
    theirs = {}
    for form in FORMS:
        _, definitions = scaffolded(project, form, "python")
        theirs |= versions(definitions)
    with project.loaded() as ours:
        assert versions(ours) == theirs


def test_the_help_of_the_option_names_all_forms():
    description = ScaffoldParams.model_fields["form"].description or ""
    listed = description.partition(": ")[2].rstrip(".").split(", ")
    assert listed == list(FORMS)
    with pytest.raises(ValidationError, match="'sftt' is no form; use one of example, sft,"):
        ScaffoldParams(form="sftt")


def test_what_a_file_cannot_hold_is_refused():
    with pipeline("made") as made:
        made.chosen = data.filters.Lambda(len)
    with pytest.raises(PipelineDefinitionError, match="'chosen' has the option"):
        declared_nodes(made.graph)
    with pipeline("own") as own:
        own.step = lambda record: record
    with pytest.raises(PipelineDefinitionError, match="outside of a group"):
        declared_nodes(own.graph)
    with pipeline("set") as settings:
        settings.step = data.text.Normalize(_max_workers=3)
    with pytest.raises(PipelineDefinitionError, match="settings"):
        declared_nodes(settings.graph)


@each("value", [("a", 1), ["a"], {"a": [1, None]}, {"b", "a"}])
def test_values_are_written_as_lists_and_objects(value):
    with pipeline("made") as made:
        made.step = data.shape.Add({"x": value})
    (node,) = declared_nodes(made.graph)
    plain = sorted(value) if isinstance(value, set) else value
    assert node["options"]["values"] == {"x": list(plain) if isinstance(plain, tuple) else plain}


def test_keys_of_objects_keep_their_types():
    with pipeline("made") as made:
        made.step = data.shape.Add({"x": {1: "one", "1": "text"}})
    (node,) = declared_nodes(made.graph)
    assert node["options"]["values"] == {"x": {1: "one", "1": "text"}}


class Text(str):
    """A text of a type of its own, which the file could not write as such."""

    __slots__ = ()


@each("value", [{("a",): 1}, {Text("a"): 1}, Text("a"), [Text("a")]])
def test_values_of_other_types_are_refused(value):
    with pipeline("made") as made:
        made.step = data.shape.Add({"x": value})
    with pytest.raises(PipelineDefinitionError, match="'step' has the option .* cannot hold"):
        declared_nodes(made.graph)

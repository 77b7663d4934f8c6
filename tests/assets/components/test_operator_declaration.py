"""Operators in a defs.yaml."""

import re

import pytest
from dagster.components.core.component_tree import ComponentTreeException

from dagster_dataops import (
    OperatorPipelineComponent,
)
from dagster_dataops.errors import DefsYamlError, DefsYamlFaultsError
from tests.assets.component_project import WARNED_OF
from tests.assets.components.declared import NODE
from tests.nodes import execution_settings

pytestmark = WARNED_OF


def constructed(project, text):
    """Write a defs.yaml; return what its first operator is made of."""
    project.write(text)
    with project.component() as (component, _):
        return component.operators[0].construct().__dataops__


LONG = """
source: texts.jsonl
operators:
  - name: long
    operator: filters.TextLength
    options:
"""


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r'"\n"', "\n"),
        ('"007"', "007"),
        ('"1,2"', "1,2"),
        ('"None"', "None"),
        ('"[]"', "[]"),
        ("7", 7),
        ("[a, {b: 1.5}]", ["a", {"b": 1.5}]),
        ("'{{ 3 * 7 }}'", 21),
        ("['{{ env.A_TEST_OF_THIS }}', plain]", ["from outside", "plain"]),
        ("'{% raw %}{{ name }}{% endraw %}'", "{{ name }}"),
    ],
)
def test_options_keep_their_written_values_and_templates_are_evaluated(
    project, monkeypatch, written, value
):
    monkeypatch.setenv("A_TEST_OF_THIS", "from outside")

    project.write(f"{NODE}    options: {{value: {written}}}\n")
    with project.component() as (component, _):
        assert component.operators[0].options["value"] == value


def test_a_setting_may_be_a_template(project, monkeypatch):
    monkeypatch.setenv("A_TEST_OF_THIS", "3")
    node = f"{NODE}    max_workers: '{{{{ env.A_TEST_OF_THIS }}}}'\n"

    assert constructed(project, node).settings.max_workers == 3


def test_an_operator_has_a_field_for_each_setting_that_is_for_yaml():
    node = OperatorPipelineComponent.model().model_json_schema()["$defs"]["OperatorNodeModel"]
    wanted = {name: one.description for name, one in execution_settings().items() if one.yaml}

    found = {name: field["description"] for name, field in node["properties"].items()}
    assert wanted.items() <= found.items()
    assert not (execution_settings().keys() - wanted.keys()) & found.keys()


@pytest.mark.parametrize(("workers", "allowed"), [(0, True), (3, True), (-1, False)])
def test_workers_may_be_left_to_the_default_by_a_zero(workers, allowed):
    node = OperatorPipelineComponent.model().model_json_schema()["$defs"]["OperatorNodeModel"]

    assert (workers >= node["properties"]["max_workers"]["minimum"]) is allowed


def test_an_output_is_taken_from_the_folder_of_the_project(project):
    output = constructed(project, f"{NODE}    output: exports\n").output

    assert output == project.sandbox.project_root / "exports"


@pytest.mark.slow
def test_an_operator_imports_its_own_group_alone(run_python):
    code = """
import sys
from dagster_dataops import OperatorDeclaration

OperatorDeclaration(name="clean", operator="text.Normalize").construct()
print("dagster_dataops.library.text" in sys.modules, "dagster_dataops.library.dedup" in sys.modules)
"""
    assert run_python(code) == "True False\n"


def test_a_removed_setting_is_refused_with_file_and_line(project):
    project.write(f"{NODE}    part_records: 5\n")

    with pytest.raises(ComponentTreeException) as caught, project.component():
        pass

    assert re.search(
        r"(?s)defs\.yaml.*`part_records` was removed.*records_per_file", str(caught.value.__cause__)
    )


def test_an_option_may_be_given_by_its_former_name_and_the_line_is_logged(project, caplog):
    made = constructed(project, f"{LONG}      input_key: body\n      min_len: 3\n")

    assert made.options["min_chars"] == 3
    assert "defs.yaml:10: Operator filters.TextLength: option 'min_len' is named 'min_chars'" in (
        caplog.text
    )


def test_two_names_of_an_option_are_refused_with_the_line(project):
    said = r"defs\.yaml:9, .* 'min_chars' was given, and 'min_len', too"
    with pytest.raises(DefsYamlError, match=said):
        constructed(project, f"{LONG}      min_chars: 3\n      min_len: 3\n")


BENCHMARK = """
source: texts.jsonl
operators:
  - name: clean
    operator: decontaminate.NGrams
    options: {{benchmark: {benchmark}, mode: tag}}
"""


def benchmark_of(project, written):
    return constructed(project, BENCHMARK.format(benchmark=written)).options["benchmark"]


def test_an_option_that_names_a_file_beside_the_defs_yaml_has_its_path(project, monkeypatch):
    folder = project.write(BENCHMARK.format(benchmark="benchmark.jsonl")).parent
    (folder / "benchmark.jsonl").write_text('{"query": "What is 1 + 1?", "label": "2"}\n')
    outside = str(folder / "benchmark.jsonl")

    assert benchmark_of(project, "benchmark.jsonl") == outside
    assert benchmark_of(project, outside) == outside
    monkeypatch.chdir(folder.parent)
    assert benchmark_of(project, "benchmark.jsonl") == f"{folder.name}/benchmark.jsonl"


def test_an_option_that_names_no_file_there_is_used_unchanged(project, tmp_path, monkeypatch):
    (tmp_path / "other.jsonl").write_text('{"query": "What is 1 + 1?", "label": "2"}\n')
    monkeypatch.chdir(tmp_path)

    assert benchmark_of(project, "other.jsonl") == "other.jsonl"


def test_a_listed_word_is_no_path_even_if_a_file_has_its_name(project):
    folder = project.write(
        "source: texts.jsonl\noperators:\n  - name: clean\n    operator: filters.Blocklist\n"
        "    options: {words: [spam, eggs]}\n"
    ).parent
    (folder / "spam").write_text("another\n")

    with project.component() as (component, _):
        assert component.operators[0].construct().__dataops__.options["words"] == ["spam", "eggs"]


def test_the_faults_of_all_operators_are_shown_at_once(project):
    project.write(
        """
source: texts.jsonl
operators:
  - name: clean
    operator: text.Normalise
  - name: short
    operator: filters.TextLength
    options: {max_char: 9}
  - name: fine
    operator: dedup.Exact
  - name: named
    operator: shape.Rename
    options: {columns: {a: b}}
"""
    )

    with pytest.raises(DefsYamlFaultsError) as caught, project.component():
        pass
    text = str(caught.value)
    assert text.startswith("3 operators cannot be made:")
    assert re.findall(r"defs\.yaml:\d+, node '(\w+)'", text) == ["clean", "short", "named"]
    assert "did you mean 'max_chars'" in text
    assert "Did you mean text.Normalize?" in text
    assert "dedup.NearDuplicate" not in text  # of another group

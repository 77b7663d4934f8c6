"""OperatorPipelineComponent, and the name that its folder gives."""

import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap

from dagster_dataops import (
    DataOpsResource,
    ErrorRateCheck,
    NewFiles,
    OperatorDeclaration,
    OperatorPipelineComponent,
    build_definitions,
    checks,
    config,
    data,
    pipeline,
    trace,
)
from dagster_dataops.assets.components.scaffolder import name_of
from dagster_dataops.errors import DefsYamlError, TraceError
from tests.assets.component_project import WARNED_OF
from tests.assets.helpers import checks_of, execute, metadata_of, result_of, spec_of, write_jsonl

pytestmark = WARNED_OF

CHAIN = """
name: docs
source: texts.jsonl
modules: [operators.py]
operators:
  - name: unique
    operator: dedup.Exact
    options: {input_key: text}
    concurrency_mode: single
  - name: marked
    operator: "{group}.mark"
    options: {key: seen, value: {deep: [1, "007", null]}}
    concurrency_mode: thread
    max_workers: 3
    ignore_errors: false
    timeout: 2.5
    retries: 2
    retry_on: [TimeoutError]
    backoff: 0.25
    stop_after_failures: 40
  - name: joined
    operator: "{group}.join"
    inputs: [marked, source]
"""


def everything_in(definitions: dg.Definitions) -> str:
    """Return everything that a code location shows: assets, jobs, configs, schedules, resources."""
    repository = definitions.get_repository_def()
    return dg.serialize_value(RepositorySnap.from_def(repository))


def chain_in_python(group, source, **keywords):
    operators = getattr(data, group)
    with pipeline("docs") as ppl:
        ppl.unique = data.dedup.Exact(input_key="text", _concurrency_mode="single")
        ppl.marked = operators.mark(
            key="seen",
            value={"deep": [1, "007", None]},
            _concurrency_mode="thread",
            _max_workers=3,
            _ignore_errors=False,
            _timeout=2.5,
            _retries=2,
            _retry_on=["TimeoutError"],
            _backoff=0.25,
            _stop_after_failures=40,
        )
        ppl.add("joined", operators.join(), inputs=[ppl.marked, ppl.source])
    return build_definitions(ppl, source=source, **keywords)


FULL = """
schedule: "0 2 * * *"
retry_policy: {max_retries: 3, delay: 0.5, backoff: exponential, jitter: plus_minus}
resource: {root: /srv/results, max_workers: 2, lock_seconds: 1.5}
"""


def test_the_same_pipeline_in_yaml_and_in_python_gives_equal_definitions(project):
    path = project.write(CHAIN + FULL)

    with project.component() as (_, ours):
        theirs = chain_in_python(
            project.group,
            path.parent / "texts.jsonl",
            schedule="0 2 * * *",
            retry_policy=dg.RetryPolicy(
                max_retries=3,
                delay=0.5,
                backoff=dg.Backoff.EXPONENTIAL,
                jitter=dg.Jitter.PLUS_MINUS,
            ),
            resource=DataOpsResource(root="/srv/results", max_workers=2, lock_seconds=1.5),
        )

        assert everything_in(ours) == everything_in(theirs)
        assert [ours.resolve_assets_def(key).op.retry_policy for key in keys_of(ours)] == [
            theirs.resolve_assets_def(key).op.retry_policy for key in keys_of(theirs)
        ]


def executor_of_job(definitions):
    return definitions.resolve_job_def("docs_pipeline").executor_def.name


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_layout_pools_and_executor_are_equal_too(project, layout):
    path = project.write(f"{CHAIN}layout: {layout}\nexecutor: multiprocess\npools: api\n")

    with project.component() as (_, ours):
        theirs = chain_in_python(
            project.group,
            path.parent / "texts.jsonl",
            layout=layout,
            executor="multiprocess",
            pools=dict.fromkeys(["unique", "marked", "joined"], "api"),
        )

        assert everything_in(ours) == everything_in(theirs)
        assert {executor_of_job(one) for one in (ours, theirs)} == {"multiprocess"}
        steps = {ours.resolve_assets_def(key).op for key in keys_of(ours)}
        assert {step.pool for step in steps} == {"api"}
        assert len(steps) == (3 if layout == "steps" else 1)


PARTITIONED = """
name: docs
source: "{partition}.jsonl"
modules: [operators.py]
operators:
  - {name: marked, operator: "{group}.mark"}
  - {name: all, operator: dedup.Exact, options: {input_key: text}, unpartitioned: true}
allow_missing_partitions: true
backfill_policy: {type: single_run}
automation_condition: "{{ dg.AutomationCondition.eager() }}"
partitions_def: {type: dynamic, name: texts_of_docs}
new_files: {settle_seconds: 0, running: true}
"""


def test_partitions_sensors_and_automation_are_equal_too(project):
    path = project.write(PARTITIONED)

    with project.component() as (_, ours):
        with pipeline("docs") as ppl:
            ppl.marked = getattr(data, project.group).mark()
            ppl.all = data.dedup.Exact(input_key="text")
        theirs = build_definitions(
            ppl,
            source=path.parent / "{partition}.jsonl",
            partitions_def=dg.DynamicPartitionsDefinition(name="texts_of_docs"),
            unpartitioned=["all"],
            allow_missing_partitions=True,
            backfill_policy=dg.BackfillPolicy.single_run(),
            automation_condition=dg.AutomationCondition.eager(),
            new_files=NewFiles(settle_seconds=0, running=True),
        )

        assert everything_in(ours) == everything_in(theirs)
        assert len(ours.sensors) == 1


CHECKED = """
name: docs
source: texts.jsonl
modules: [operators.py]
max_error_rate: {max_error_rate: 0.25, severity: ERROR}
source_checks:
  - {required_columns: [id, text], blocking: true}
operators:
  - name: unique
    operator: dedup.Exact
    options: {input_key: text}
    checks:
      - row_count: {min: 1, max: 4}
      - {max_dropped: 0.5, severity: WARN}
  - name: marked
    operator: "{group}.mark"
    max_error_rate: {max_error_rate: 0.5, blocking: true}
    checks:
      - no_nulls: [text]
        name: texts
      - unique: id
      - json_schema: text.schema.json
      - json_schema: {title: Marked, required: [mark], properties: {mark: {const: 1}}}
        name: marks
  - {name: again, operator: "{group}.mark", max_error_rate: unchecked}
"""


@pytest.mark.slow
def test_checks_in_both_forms_are_equal_and_pass(project, instance, tmp_path):
    path = project.write(f"{CHECKED}resource: {{root: {tmp_path}}}\n")
    schema = path.parent / "text.schema.json"
    schema.write_text('{"title": "Text", "required": ["text"]}')

    with project.component() as (component, ours):
        operators = getattr(data, project.group)
        with pipeline("docs") as ppl:
            ppl.unique = data.dedup.Exact(input_key="text")
            ppl.marked = operators.mark()
            ppl.again = operators.mark()
        declared = {
            "source": [checks.required_columns("id", "text", blocking=True)],
            "unique": [
                checks.row_count(min=1, max=4),
                checks.max_dropped(0.5, severity="WARN"),
            ],
            "marked": [
                checks.no_nulls("text", name="texts"),
                checks.unique("id"),
                checks.json_schema(schema),
                checks.json_schema(
                    {"title": "Marked", "required": ["mark"], "properties": {"mark": {"const": 1}}},
                    name="marks",
                ),
            ],
        }
        theirs = build_definitions(
            ppl,
            source=path.parent / "texts.jsonl",
            resource=DataOpsResource(root=str(tmp_path)),
            max_error_rate={
                "unique": ErrorRateCheck(0.25, "ERROR"),
                "marked": ErrorRateCheck(0.5, blocking=True),
                "again": None,
            },
            checks=declared,
        )
        said = component.keywords()["checks"]
        result = execute(ours, instance)

    assert everything_in(ours) == everything_in(theirs)
    assert severities_of(said) == severities_of(declared)
    # A selection of assets has no checks of files that no asset materializes.
    names = [check.name for node in ("unique", "marked") for check in declared[node]]
    found = {(check.check_name, check.passed) for check in checks_of(result)}
    assert found >= {(name, True) for name in [*names, "failed_records"]}


def severities_of(declared):
    return {(node, check.name): check.severity for node, of in declared.items() for check in of}


def keys_of(definitions):
    return [dg.AssetKey(["docs", name]) for name in ("unique", "marked", "joined")]


def test_another_option_gives_other_definitions(project):
    path = project.write(CHAIN.replace('"007"', "7"))

    with project.component() as (_, ours):
        theirs = chain_in_python(project.group, path.parent / "texts.jsonl")

        assert everything_in(ours) != everything_in(theirs)


@pytest.mark.slow
def test_a_pipeline_in_yaml_runs(project, instance, tmp_path):
    project.write(CHAIN.replace("timeout: 2.5", "timeout: 30") + f"resource: {{root: {tmp_path}}}")

    with project.loaded() as definitions:
        assert execute(definitions, instance).success

    rows = result_of(tmp_path, "docs", "joined")
    assert [row.get("seen") for row in rows] == [{"deep": [1, "007", None]}] * 4 + [None] * 4


def test_settings_of_files_are_fields_of_the_resource(project, instance, tmp_path, monkeypatch):
    monkeypatch.setenv("DATA_LOGIN", "Bearer of tests")
    project.write(
        CHAIN.replace("timeout: 2.5", "timeout: 30")
        + textwrap.dedent(
            f"""
            resource:
              root: {tmp_path}
              file_cache: kept
              file_cache_gb: 2
              url_options:
                https://data.example.org: {{headers: {{Authorization: {{env: DATA_LOGIN}}}}}}
            """
        )
    )
    seen = []

    @dg.asset
    def asked(dataops: DataOpsResource) -> None:
        seen.append((dict(config.logins()), config.file_cache.name, config.file_cache_gb))

    with project.loaded() as definitions:
        resources = definitions.resources
        dg.materialize([asked], resources={"dataops": resources["dataops"]}, instance=instance)

    headers = {"Authorization": "Bearer of tests"}
    assert seen == [({"https://data.example.org": {"headers": headers}}, "kept", 2.0)]


def test_traces_are_switched_off_in_yaml(project, instance, tmp_path):
    text = CHAIN.replace("    concurrency_mode: single\n", "    trace: false\n")
    project.write(text.replace("timeout: 2.5", "timeout: 30") + f"resource: {{root: {tmp_path}}}")

    with project.loaded() as definitions:
        result = execute(definitions, instance)

    assert "trace" not in metadata_of(result, "docs", "unique")
    assert "trace" in metadata_of(result, "docs", "marked")
    with pytest.raises(TraceError, match="switched off"):
        trace(tmp_path / "docs" / "unique", 1)


@pytest.mark.slow
def test_operators_of_the_defs_folder_run_in_worker_processes(project, instance, tmp_path):
    project.write(
        f"""
        source: texts.jsonl
        modules: [operators.py]
        operators:
          - name: marked
            operator: "{{group}}.mark"
            concurrency_mode: process
            max_workers: 2
        resource: {{root: {tmp_path}}}
        """
    )

    with project.loaded() as definitions:
        assert execute(definitions, instance).success

    assert [row["mark"] for row in result_of(tmp_path, "docs", "marked")] == [1] * 4


def test_the_folder_names_the_pipeline_and_the_source_is_beside_the_file(project):
    shortened = CHAIN.replace("name: docs\n", "", 1)
    project.write(shortened, "deep/my-docs")

    with project.loaded() as definitions:
        spec = spec_of(definitions, "my_docs", "texts")

    file = project.defs.resolve() / "deep/my-docs/texts.jsonl"
    assert spec.metadata["dagster/uri"] == file.as_uri()


@pytest.mark.slow
def test_two_pipelines_of_one_project_share_resources_and_executor(project, instance, tmp_path):
    resource = f"resource: {{root: {tmp_path}}}\n"
    project.write(CHAIN.replace("name: docs\n", "", 1) + resource, "one")
    second = """
    source: {asset: one/joined}
    modules: [../one/operators.py]
    operators: [{name: again, operator: "{group}.mark", options: {key: again}}]
    """
    project.write(textwrap.dedent(second) + resource, "two")

    with project.loaded() as definitions:
        assert execute(definitions, instance).success

    assert [row["again"] for row in result_of(tmp_path, "two", "again")] == [1] * 8


def test_one_file_may_hold_several_pipelines(project):
    path = project.write(CHAIN)
    text = path.read_text()
    path.write_text(f"{text}\n---\n{text.replace('name: docs', 'name: others')}")

    with project.loaded() as definitions:
        keys = {
            key.to_user_string() for key in definitions.resolve_asset_graph().get_all_asset_keys()
        }

    assert {"docs/joined", "others/joined"} <= keys


def test_a_function_of_a_module_is_a_source(project, instance, tmp_path):
    project.write(
        f"""
        source: {{function: made_up}}
        modules: [operators.py]
        operators: [{{name: marked, operator: "{{group}}.mark"}}]
        resource: {{root: {tmp_path}}}
        """
    )

    with project.loaded() as definitions:
        assert execute(definitions, instance).success

    assert [row["id"] for row in result_of(tmp_path, "docs", "marked")] == [0, 1, 2]


def test_a_translation_changes_key_group_and_tags_by_node(project):
    project.write(
        CHAIN
        + """
translation:
  key_prefix: corpus
  group_name: "{{ pipeline }}_{{ operator.group }}"
  tags: {node: "{{ node.name }}", operator: "{{ operator.name }}"}
  owners: ["team:data"]
  metadata: {team: "data"}
"""
    )

    with project.loaded() as definitions:
        spec = spec_of(definitions, "corpus", "docs", "joined")
        graph = definitions.resolve_asset_graph()
        parents = {key.to_user_string() for key in graph.get(spec.key).parent_keys}

    assert spec.group_name == f"docs_{project.group}"
    assert spec.tags["node"] == "joined"
    assert spec.tags["operator"] == "join"
    assert spec.owners == ["team:data"]
    assert spec.metadata["team"] == "data"
    assert spec.metadata["dagster_dataops/kind"] == "dataset operator"
    assert parents == {"corpus/docs/marked", "docs/texts"}


@dataclass(kw_only=True)
class NamedComponent(OperatorPipelineComponent):
    """A custom component of a project."""

    team: str = "nobody"

    def get_asset_spec(self, data):
        return super().get_asset_spec(data).replace_attributes(owners=[f"team:{self.team}"])


def test_a_subclass_adds_fields_and_overrides_the_spec(project):
    project.write(CHAIN + "team: corpus\n", type_name=f"{__name__}.NamedComponent")
    assert sys.modules[__name__].NamedComponent is NamedComponent

    with project.loaded() as definitions:
        assert spec_of(definitions, "docs", "joined").owners == ["team:corpus"]


def test_post_processing_of_dagster_applies(project):
    path = project.write(CHAIN)
    added = "post_processing: {assets: [{target: '*', attributes: {tags: {seen: after}}}]}\n"
    path.write_text(path.read_text() + added)

    with project.loaded() as definitions:
        assert spec_of(definitions, "docs", "unique").tags["seen"] == "after"


def test_every_asset_points_at_its_defs_yaml(project):
    path = project.write(CHAIN)

    with project.loaded() as definitions:
        found = spec_of(definitions, "docs", "unique").metadata["dagster/code_references"]

    assert str(path.resolve()) in {
        str(Path(reference.file_path).resolve()) for reference in found.code_references
    }


def test_a_component_is_constructed_in_python(project):
    (project.defs / "docs").mkdir()
    path = project.write(CHAIN)
    component = OperatorPipelineComponent(
        name="docs",
        source=path.parent / "texts.jsonl",
        modules=["operators.py"],
        operators=[
            OperatorDeclaration(name="marked", operator=f"{project.group}.mark"),
        ],
    )

    with project.sandbox.build_component_tree() as tree:
        built = component.build_defs(tree.load_context.for_path(path.parent))

    assert spec_of(built, "docs", "marked").code_version


@pytest.mark.slow
def test_the_component_imports_nothing_heavy(run_python):
    code = """
    import sys
    import dagster
    before = set(sys.modules)
    import dagster_dataops
    for name in dir(dagster_dataops):
        getattr(dagster_dataops, name)
    operators = {"dagster_dataops.library.text", "dagster_dataops.library.dedup"}
    heavy = operators | {"pandas", "numpy", "polars", "cloudpickle", "rensa"}
    print(sorted(heavy & (set(sys.modules) - before)))
    """

    assert run_python(textwrap.dedent(code)) == "[]\n"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["yaml", "python"])
def test_a_scaffolded_pipeline_loads_and_runs(project, instance, root, form):
    folder = f"scaffolded_{form}_{project.group}"
    project.sandbox.scaffold_component(
        OperatorPipelineComponent, defs_path=folder, scaffold_format=form
    )

    with project.loaded() as definitions:
        assert execute(definitions, instance).success

    assert [row["words"] for row in result_of(root, folder, "long")] == [5, 8]


YAML_PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "yaml.md"
PAGE_OPERATORS = """
from dagster_dataops import data_register

@data_register("data.docs", _concurrency_mode="single")
def grade(record: dict, api_key: str) -> dict:
    record["grade"] = len(record["text"]) if api_key else None
    return record

@data_register("data.docs", rewrite_func="forward_batch_input", _concurrency_mode="single")
def join(unique: list[dict], graded: list[dict]) -> list[dict]:
    return [*unique, *graded]
"""


@pytest.mark.slow
def test_the_yaml_of_the_documents_runs_and_shows_no_secret(project, instance, root, monkeypatch):
    monkeypatch.setenv("API_KEY", "a-hidden-key")
    written, *_ = re.findall(r"```yaml\n[^\n]*\n(type: .*?)```", YAML_PAGE.read_text(), re.DOTALL)
    folder = project.defs / "docs"
    folder.mkdir()
    (folder / "defs.yaml").write_text(written)
    (folder / "operators.py").write_text(PAGE_OPERATORS)
    write_jsonl(folder / "records.jsonl", [{"text": "one"}, {"text": "one"}, {"text": "three"}])

    with project.loaded() as definitions:
        assert execute(definitions, instance).success
        (schedule,) = definitions.schedules
        told = everything_in(definitions)

    assert [row.get("grade") for row in result_of(root, "docs", "joined")] == [None, None, 3, 5]
    assert schedule.cron_schedule == "0 2 * * *"
    assert "a-hidden-key" not in told


SPLIT = """
name: docs
source: texts.jsonl
modules: [operators.py]
operators:
  - name: split
    operator: "{group}.split"
    checks:
      - row_count: {min: 1}
      - {no_nulls: text, output: test}
  - {name: marked, operator: "{group}.mark", inputs: [split.train]}
"""


def test_an_operator_with_several_results_gives_an_asset_for_each(project, instance, tmp_path):
    project.write(f"{SPLIT}resource: {{root: {tmp_path}}}\n")
    with project.component() as (_, ours):
        result = execute(ours, instance)
    assert [row["id"] for row in result_of(tmp_path, "docs", "marked")] == [0, 2]
    assert [row["id"] for row in result_of(tmp_path, "docs", "split", "test")] == [1, 3]
    found = {(one.asset_key.path[-1], one.check_name) for one in checks_of(result)}
    assert {("train", "row_count"), ("test", "row_count"), ("test", "no_nulls_text")} <= found
    assert ("train", "no_nulls_text") not in found


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("inputs: [split.train]", "inputs: [split]", "has several results; name one of them"),
        ("inputs: [split.train]", "inputs: [split.tran]", "has the results split.train"),
        ("output: test", "output: tset", "checks names 'split.tset'"),
    ],
)
def test_a_result_that_the_operator_has_not_is_refused(project, before, after, told):
    project.write(SPLIT.replace(before, after))
    with pytest.raises(DefsYamlError, match=told), project.component():
        pass


def test_the_rule_for_missing_columns_is_a_field(project):
    for rule, number in (("allow", 1), ("count", 2), ("error", 2)):
        project.write(CHAIN.replace("    concurrency_mode: single\n", f"    missing: {rule}\n"))
        with project.component() as (_, ours):
            asset = ours.resolve_assets_def(["docs", "unique"])
            assert len(list(asset.check_specs)) == number, rule
    project.write(CHAIN.replace("    concurrency_mode: single\n", "    missing: empty\n"))
    with pytest.raises(DefsYamlError, match="missing"), project.component():
        pass


@pytest.mark.parametrize(
    ("folder", "name"), [("docs", "docs"), ("my-docs", "my_docs"), ("01-docs", "pipeline_01_docs")]
)
def test_a_pipeline_is_named_by_its_folder(tmp_path, folder, name):
    assert name_of(tmp_path / folder) == name

"""Tests of the body of a step: execute of a translator, in every form, and what it may yield."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import (
    DataOpsResource,
    DataOpsTranslator,
    OperatorPipelineComponent,
    Pipeline,
    dataops_assets,
    dataops_resources,
)
from dagster_dataops.errors import RecordError
from tests.assets.component_project import WARNED_OF, Project
from tests.assets.helpers import (
    Records,
    definitions_of,
    execute,
    log_of,
    metadata_of,
    pipeline_of,
    resource_at,
    result_of,
)
from tests.docstring_examples import example_in
from tests.registries import OperatorRegistry

pytestmark = WARNED_OF
LAYOUTS = pytest.mark.parametrize("layout", ["steps", "single_step"])


@pytest.fixture
def ppl(registry: OperatorRegistry) -> Pipeline:
    @registry("data.text", _concurrency_mode="single")
    def mark(record: dict, by: str = "x") -> None:
        if record["text"] == "text 2":
            raise ValueError("not this one")
        record[by] = True

    return pipeline_of(first=mark(), second=mark(by="y"))


class Watching(DataOpsTranslator):
    """Notes the steps that it runs."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def execute(self, context: Any, dataops: Any) -> Iterator[Any]:
        self.seen.append(f"begin {context.op_def.name}")
        yield from super().execute(context, dataops)
        self.seen.append("end")


@pytest.mark.parametrize(
    ("layout", "steps"),
    [("steps", ["docs__first", "docs__second"]), ("single_step", ["docs"])],
)
def test_execute_is_called_around_each_step(
    layout: str,
    steps: list[str],
    ppl: Pipeline,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    watching = Watching()
    keywords = {"layout": layout, "dagster_dataops_translator": watching}
    result = execute(definitions_of(ppl, records(2), root, **keywords), instance)
    assert watching.seen == [one for step in steps for one in (f"begin {step}", "end")]
    assert len(result_of(root, "docs", "second")) == 2
    assert metadata_of(result, "docs", "first")["rows_in"] == 2


@pytest.mark.slow
@LAYOUTS
def test_a_source_with_a_step_and_the_preview_are_executed_too(
    layout: str, ppl: Pipeline, root: Path, instance: dg.DagsterInstance
) -> None:
    def made() -> Iterator[dict[str, Any]]:
        yield {"text": "a"}

    watching = Watching()
    keywords = {"layout": layout, "dagster_dataops_translator": watching}
    definitions = definitions_of(ppl, made, root, **keywords)
    execute(definitions, instance, only=[["docs", "made"]])
    assert watching.seen == ["begin docs__made", "end"]
    watching.seen.clear()
    assert definitions.resolve_job_def("docs_preview").execute_in_process(instance=instance).success
    assert watching.seen == ["begin preview_docs", "end"]


class Slack(dg.ConfigurableResource):
    channel: str

    def tell(self, text: str) -> None:
        TOLD.append(f"{self.channel}: {text}")


TOLD: list[str] = []


@LAYOUTS
def test_execute_takes_further_resources_by_key(
    layout: str, ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    class Telling(DataOpsTranslator):
        def execute(self, context, dataops, slack):
            yield from dataops.run(context)
            slack.tell("done")

    TOLD.clear()
    keywords = {"layout": layout, "dagster_dataops_translator": Telling()}
    ours = definitions_of(ppl, records(1), root, **keywords)
    slack = dg.Definitions(resources={"slack": Slack(channel="#data")})
    execute(dg.Definitions.merge(ours, slack), instance)
    assert set(TOLD) == {"#data: done"}


def failing(execute_method: Any, layout: str = "single_step") -> dict[str, Any]:
    mine = type("Mine", (DataOpsTranslator,), {"execute": execute_method})()
    return {"layout": layout, "dagster_dataops_translator": mine}


def forgets(self, context, dataops):
    dataops.run(context)


def stops_early(self, context, dataops):
    for event in dataops.run(context):
        yield event
        return


def drops_results(self, context, dataops):
    for event in dataops.run(context):
        if not isinstance(event, dg.MaterializeResult):
            yield event


def drops_checks(self, context, dataops):
    for event in dataops.run(context):
        if not isinstance(event, dg.AssetCheckResult):
            yield event
            yield dg.AssetObservation("elsewhere")


def yields_texts(self, context, dataops):
    yield "begun"
    yield from dataops.run(context)


def yields_a_list(self, context, dataops):
    yield list(dataops.run(context))


def runs_silently(self, context, dataops):
    return sum(1 for _ in dataops.run(context))


@LAYOUTS
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (forgets, "did not run all operators of its step; write `yield from dataops.run(context)`"),
        (stops_early, "did not run all operators"),
        (drops_results, "did not yield the result of docs/first"),
        (drops_checks, "did not yield the check failed_records of docs/first"),
        (yields_texts, "yielded a value of type str, 'begun'; it yields MaterializeResult"),
        (yields_a_list, "of type list"),
        (runs_silently, "of type int"),
    ],
)
def test_a_step_fails_if_execute_leaves_out_operators_or_results(
    wrong: Any,
    named: str,
    layout: str,
    ppl: Pipeline,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    definitions = definitions_of(ppl, records(1), root, **failing(wrong, layout))
    with pytest.raises(dg.Failure) as caught:
        execute(definitions, instance)
    assert named in str(caught.value.description)
    assert caught.value.allow_retries is False


def test_a_step_fails_if_execute_keeps_the_error_of_an_operator(
    registry: OperatorRegistry, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    @registry("data.text", _concurrency_mode="single", _ignore_errors=False)
    def broken(record: dict) -> None:
        raise ValueError("broken")

    def keeps(self: Any, context: Any, dataops: Any) -> Iterator[Any]:
        try:
            yield from dataops.run(context)
        except RecordError:
            context.log.info("never mind")

    definitions = definitions_of(pipeline_of(one=broken()), records(1), root, **failing(keeps))
    with pytest.raises(dg.Failure, match="caught RecordError: Operator text.broken failed"):
        execute(definitions, instance)


def test_a_step_that_runs_no_operator_says_so(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(
        ppl, records(1), root, **failing(lambda self, context, dataops: None)
    )
    result = execute(definitions, instance)
    assert result.success
    said = "execute ran no operator: nothing is materialized"
    assert any(said in line for line in log_of(instance, result.run_id))


@LAYOUTS
def test_execute_may_change_metadata_and_add_events(
    layout: str, ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    def changes(self: Any, context: Any, dataops: Any) -> Iterator[Any]:
        yield dg.AssetObservation("elsewhere")
        for event in dataops.run(context):
            if isinstance(event, dg.MaterializeResult):
                yield event._replace(metadata={**event.metadata, "ticket": "DATA-1"})
            else:
                yield event

    definitions = definitions_of(ppl, records(1), root, **failing(changes, layout))
    result = execute(definitions, instance)
    assert metadata_of(result, "docs", "second")["ticket"] == "DATA-1"
    assert metadata_of(result, "docs", "second")["rows_in"] == 1


def test_a_body_of_the_user_is_checked_in_the_same_way(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    @dataops_assets(ppl, source=records(1))
    def docs(context: dg.AssetExecutionContext, dataops: DataOpsResource):
        dataops.run(context)

    definitions = dg.Definitions(assets=[docs], resources=dataops_resources(resource_at(root)))
    with pytest.raises(dg.Failure, match="docs did not run all operators"):
        execute(definitions, instance)


def test_the_example_of_execute_runs(
    registry: OperatorRegistry, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    @registry("data.text", _concurrency_mode="single", _ignore_errors=False)
    def broken(record: dict) -> None:
        raise ValueError("broken")

    announced = example_in(DataOpsTranslator.execute, DataOpsTranslator=DataOpsTranslator)
    translator = announced["Announced"]()
    definitions = definitions_of(
        pipeline_of(one=broken()), records(1), root, dagster_dataops_translator=translator
    )
    job = definitions.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    assert any("tell the team: " in line for line in log_of(instance, result.run_id))


@LAYOUTS
def test_the_example_of_the_component_runs(
    layout: str, project: Project, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"dataclass": dataclass, "OperatorPipelineComponent": OperatorPipelineComponent}
    made = example_in(OperatorPipelineComponent, __name__, **known)["AnnouncedPipeline"]
    monkeypatch.setattr(sys.modules[__name__], "AnnouncedPipeline", made, raising=False)
    project.write(
        f"name: docs\nsource: texts.jsonl\nlayout: {layout}\nmodules: [operators.py]\n"
        'channel: "#ops"\noperators: [{name: mark, operator: "{group}.mark"}]\n',
        type_name=f"{__name__}.AnnouncedPipeline",
    )
    with project.loaded() as definitions:
        graph = definitions.resolve_asset_graph()
        specs = [spec for one in graph.assets_defs for spec in one.check_specs]
        assert {spec.metadata["channel"] for spec in specs} == {"#ops"}
        assert execute(definitions, instance).success

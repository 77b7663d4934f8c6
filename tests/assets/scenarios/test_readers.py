"""Readers as the source of a pipeline in Dagster."""

import json
import signal

import dagster as dg
import pytest

from dagster_dataops import PartFiles, build_definitions, pipeline
from dagster_dataops.errors import PipelineDefinitionError
from tests.assets.helpers import registry_of_calls

registry = registry_of_calls()


@registry("data.read", columns={"n": int})
class Numbers(PartFiles):
    """The numbers of part files."""

    def parse(self, line):
        return {"n": int(line)}


@registry("data.read", reads={"n": int}, columns={"twice": int}, _concurrency_mode="thread")
def double(record):
    return {"twice": 2 * record["n"]}


@registry("data.read", reads={"n": str}, _concurrency_mode="thread")
def upper(record):
    return record


def doubled():
    with pipeline("read") as ppl:
        ppl.doubled = double()
    return ppl


@pytest.fixture
def parts(tmp_path):
    for part in range(2):
        lines = "".join(f"{number}\n" for number in range(part, 40, 2))
        (tmp_path / f"part-{part}").write_text(lines)
    return tmp_path


def test_a_reader_is_an_asset_with_its_seed(parts, instance):
    reader = Numbers(parts, 2, random_shuffle=True)
    defs = build_definitions(doubled(), source=reader)
    result = defs.resolve_job_def("read_pipeline").execute_in_process(instance=instance)

    expected = [{"twice": 2 * record["n"]} for record in reader()]
    assert result.asset_value(["read", "doubled"]).read() == expected
    (event,) = instance.fetch_materializations(dg.AssetKey(["read", "Numbers"]), limit=1).records
    seeds = event.asset_materialization.metadata["dagster_dataops/seeds"].value
    assert seeds == {"part_files>shuffle": str(reader.seed_in_use)}
    (spec,) = [s for s in defs.resolve_all_asset_specs() if s.key.path[-1] == "Numbers"]
    assert spec.description == "The numbers of part files."
    assert Numbers(parts, 2, random_shuffle=True, seed=reader.seed_in_use)() == reader()


def test_a_generated_seed_is_not_part_of_the_code_version(parts):
    versions = {
        spec.code_version
        for _ in range(2)
        for spec in build_definitions(
            doubled(), source=Numbers(parts, 2, random_shuffle=True)
        ).resolve_all_asset_specs()
        if spec.key.path[-1] == "Numbers"
    }

    assert len(versions) == 1


def test_columns_that_do_not_fit_the_reader_are_an_error_at_the_definition(parts):
    with pipeline("read") as ppl:
        ppl.upper = upper()

    with pytest.raises(PipelineDefinitionError, match="'n' as str, and in the source it is int"):
        build_definitions(ppl, source=Numbers(parts, 2))


KILLED = """
import json, os, signal, sys, time
from dagster_dataops import DataOpsResource, PartFiles, build_definitions, data_register, pipeline

@data_register("data.read")
class Numbers(PartFiles):
    def parse(self, line):
        if os.environ.get("KILL"):
            time.sleep(0.1)
            if len(seen) == 25:
                os.kill(os.getpid(), signal.SIGKILL)
        seen.append(line)
        return {"n": int(line)}

@data_register("data.read", _concurrency_mode="thread")
def double(record):
    return {"twice": 2 * record["n"]}

seen = []
folder = sys.argv[1]
with pipeline("read") as ppl:
    ppl.doubled = double()
reader = Numbers(folder, 2, random_shuffle=True, shuffle_buffer_size=7)
defs = build_definitions(ppl, source=reader, resource=DataOpsResource(root=folder + "/results"))
result = defs.resolve_job_def("read_pipeline").execute_in_process()
numbers = [record["n"] for record in result.asset_value(["read", "Numbers"]).read()]
(seeds,) = [
    event.materialization.metadata["dagster_dataops/seeds"].value
    for event in result.get_asset_materialization_events()
    if "dagster_dataops/seeds" in event.materialization.metadata
]
print(json.dumps({"numbers": numbers, "parsed": len(seen), "seeds": seeds}))
"""


@pytest.mark.slow
def test_a_killed_reader_resumes_with_the_seed_that_it_had_drawn(parts, warm_dagster):
    killed = warm_dagster.ended(KILLED, str(parts), folder=parts, KILL="1")
    assert killed.status == -signal.SIGKILL
    again = warm_dagster.run(KILLED, str(parts), folder=parts)

    told = json.loads(again.splitlines()[-1])
    seed = int(told["seeds"]["part_files>shuffle"])
    undisturbed = Numbers(parts, 2, random_shuffle=True, shuffle_buffer_size=7, seed=seed)
    assert told["parsed"] < 40
    assert told["numbers"] == [record["n"] for record in undisturbed()]

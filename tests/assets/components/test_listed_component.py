"""Tests of pipelines whose partitions are the files of a bucket or folder, kept as state."""

import asyncio
import json
import os
from pathlib import Path

import dagster as dg
import pytest

from dagster_dataops import DataOpsError, ListedPipelineComponent
from tests.assets.component_project import WARNED_OF, Project
from tests.object_stores import SECRETS, s3_server

pytestmark = WARNED_OF

TYPE = "dagster_dataops.ListedPipelineComponent"
PIPELINE = """
source: {source}
modules: [operators.py]
operators: [{{name: marked, operator: {group}.mark}}]
resource: {{root: {root}, max_workers: 1, lock_seconds: 1.0}}
"""


def written(project: Project, source: str, root: str = "results", more: str = "") -> Path:
    text = PIPELINE.format(source=json.dumps(source), root=root, group="{group}") + more
    return project.write(text, type_name=TYPE)


def refreshed(project: Project) -> str:
    """List the files, as ``dg utils refresh-defs-state`` does; return the key of the state."""
    with project.sandbox.build_component_tree() as tree:
        component = tree.load_component(project.defs / "docs")
        assert isinstance(component, ListedPipelineComponent)
        asyncio.run(component.refresh_state(project.sandbox.project_root))
        return component.defs_state_config.key


def keys_of(definitions: dg.Definitions) -> list[str]:
    spec = definitions.resolve_assets_def(["docs", "marked"]).specs_by_key[
        dg.AssetKey(["docs", "marked"])
    ]
    assert spec.partitions_def is not None
    return list(spec.partitions_def.get_partition_keys())


def files(project: Project, *names: str) -> None:
    folder = project.defs / "docs" / "inbox"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.jsonl").write_text('{"id": 1}\n')


@pytest.mark.slow
def test_files_of_a_folder_become_partitions_when_the_state_is_refreshed(project: Project) -> None:
    written(project, "inbox/{partition}.jsonl")
    files(project, "b", "a", "über %1")
    (project.defs / "docs/inbox/notes.txt").touch()
    refreshed(project)
    with project.loaded() as definitions:
        assert keys_of(definitions) == ["a", "b", "über %251"]
        job = definitions.resolve_job_def("docs_pipeline")
        assert job.execute_in_process(partition_key="über %251").success

    files(project, "c")
    with project.loaded() as definitions:
        assert keys_of(definitions) == ["a", "b", "über %251"]
    refreshed(project)
    with project.loaded() as definitions:
        assert keys_of(definitions) == ["a", "b", "c", "über %251"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objects", "folder", "keys"),
    [
        (("in/a", "in/b", "in/deep/c", "other/d", "e"), "in/", ["a", "b"]),
        (("e", "x/y"), "", ["e"]),
    ],
)
def test_objects_of_a_bucket_are_listed_once_and_definitions_load_without_a_network(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    objects: tuple[str, ...],
    folder: str,
    keys: list[str],
) -> None:
    obstore = pytest.importorskip("obstore", reason="obstore is not installed")
    from obstore.store import S3Store

    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    with s3_server() as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        store = S3Store("results", endpoint=address, client_options={"allow_http": True})
        for name in objects:
            obstore.put(store, f"{name}.jsonl", b'{"id": 1}\n')
        written(project, f"s3://results/{folder}{{partition}}.jsonl", root="s3://results/root")
        refreshed(project)
        with project.loaded() as definitions:
            job = definitions.resolve_job_def("docs_pipeline")
            assert job.execute_in_process(partition_key=keys[-1]).success
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # nobody answers
    with project.loaded() as definitions:
        assert keys_of(definitions) == keys


WRONG: list[tuple[str, str, str]] = [
    ("inbox/all.jsonl", "", "source is .*; it must be a path or URL with {partition}"),
    ("inbox/{partition:%Y}.jsonl", "", "without a format"),
    ("https://host/{partition}.jsonl", "", "object store"),
    ("inbox/{partition}.jsonl", "partitions_def: {type: static, partition_keys: [a]}", "left out"),
    ("empty/{partition}.jsonl", "", "has no files"),
]


@pytest.mark.parametrize(("source", "more", "said"), WRONG)
def test_what_cannot_be_listed_is_an_error_with_file_and_line(
    project: Project, source: str, more: str, said: str
) -> None:
    path = written(project, source, more=more)
    files(project, "a")
    with pytest.raises(DataOpsError, match=said) as raised:
        refreshed(project)
    assert f"{path}:" in str(raised.value)


def test_missing_and_damaged_states_name_the_command(project: Project) -> None:
    path = written(project, "inbox/{partition}.jsonl")
    files(project, "a")
    assert _error(project).count("never listed: run `dg utils refresh-defs-state`") == 1
    assert f"{path}:4, source" in _error(project)
    key = refreshed(project)
    (state,) = (one for one in project.sandbox.project_root.rglob("state*") if one.is_file())
    before = json.loads(state.read_text())
    for content, said in (
        ("{", "is damaged"),
        ("[]", "is damaged"),
        (json.dumps({**before, "version": 2}), "has version 2, not 1"),
        (json.dumps({**before, "source": "s3://b/{partition}"}), "lists s3://b/{partition}, not"),
    ):
        state.write_text(content)
        assert said in _error(project)
        assert key in _error(project)


def _error(project: Project) -> str:
    with pytest.raises(Exception) as raised, project.loaded():  # noqa: PT011 - Dagster wraps it
        pass
    error: BaseException | None = raised.value
    while not isinstance(error, DataOpsError):
        assert error is not None
        error = error.__cause__ or error.__context__
    return str(error)


@pytest.mark.slow
def test_the_command_of_dg_refreshes_the_state(project: Project, tmp_path: Path) -> None:
    pytest.importorskip("dagster_dg_cli", reason="dagster-dg-cli is not installed")
    import subprocess
    import sys

    written(project, "inbox/{partition}.jsonl")
    files(project, "a", "b")
    root = project.sandbox.project_root
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    paths = os.pathsep.join([str(root), str(root / "src"), str(Path(__file__).parents[3])])
    done = subprocess.run(
        [str(Path(sys.executable).parent / "dg"), "utils", "refresh-defs-state"],
        cwd=root,
        env=os.environ | {"DAGSTER_HOME": str(home), "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with project.loaded() as definitions:
        assert keys_of(definitions) == ["a", "b"]


@pytest.mark.slow
def test_the_scaffold_has_a_file_for_each_partition(project: Project) -> None:
    project.sandbox.scaffold_component(
        ListedPipelineComponent, defs_path="docs", scaffold_params=None
    )
    refreshed(project)
    with project.loaded() as definitions:
        job = definitions.resolve_job_def("docs_pipeline")
        assert job.execute_in_process(partition_key="first").success

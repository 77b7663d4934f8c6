"""Tests of prune: folders of no asset or partition are listed, and deleted on demand."""

import runpy
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops.assets.pruning import prune
from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.errors import ConfigurationError, FolderLockedError
from tests.command_line import main

CODE = """
import dagster as dg
from dagster_dataops import DataOpsResource, build_definitions, data, pipeline

with pipeline({name!r}) as ppl:
    ppl.add({node!r}, data.text.Normalize(input_key="text"))
    ppl.add("split", data.sample.Split({{"train": 0.5, "test": 0.5}}), inputs=[{node!r}])

def texts({argument}):
    return [{{"text": str(number)}} for number in range(20)]

parts = {partitions}
defs = build_definitions(
    ppl, source=texts, resource=DataOpsResource(root={root!r}), partitions_def=parts, report=True
)
"""


@pytest.fixture
def location(tmp_path: Path) -> Callable[..., Path]:
    """Write a code location; materialize it if asked."""

    def write(
        file: str, node: str = "clean", name: str = "docs", keys: Any = None, *, run: bool = True
    ) -> Path:
        path = tmp_path / file
        values = {
            "node": node,
            "name": name,
            "argument": "key" if keys else "",
            "partitions": f"dg.StaticPartitionsDefinition({keys})" if keys else None,
            "root": str(tmp_path / "root"),
        }
        path.write_text(textwrap.dedent(CODE.format(**values)))
        if run:
            defs = runpy.run_path(str(path))["defs"]
            job = defs.resolve_job_def(f"{name}_pipeline")
            for key in keys or [None]:
                assert job.execute_in_process(partition_key=key).success
        return path

    return write


def listed(found: Any, root: Path) -> list[str]:
    return [str(one.path.relative_to(root)) for one in found]


@pytest.mark.slow
def test_the_folders_of_known_assets_are_not_listed(
    location: Callable[..., Path], tmp_path: Path
) -> None:
    file = location("one.py")
    found, text = prune(str(tmp_path / "root"), files=[str(file)])
    assert found == []
    assert text.startswith("0 folders of no asset or partition below ")


@pytest.mark.slow
def test_a_renamed_node_and_a_renamed_pipeline_are_listed_with_their_space(
    location: Callable[..., Path], tmp_path: Path
) -> None:
    location("other.py", name="gone")
    location("old.py", node="washed")
    file = location("new.py")
    root = tmp_path / "root"
    found, text = prune(str(root), files=[str(file)])
    assert listed(found, root) == [
        "docs/washed",
        "gone/clean",
        "gone/report",
        "gone/split",
        "gone/texts",
    ]
    assert all(one.size_bytes > 0 for one in found)
    assert "docs/washed" in text
    assert "nothing is deleted without --yes" in text
    assert (root / "docs/washed").exists()


@pytest.mark.slow
def test_deleted_partitions_are_listed(location: Callable[..., Path], tmp_path: Path) -> None:
    location("old.py", keys=["a", "b", "../c"])
    file = location("new.py", keys=["a", "../c"], run=False)
    root = tmp_path / "root"
    found, _ = prune(str(root), files=[str(file)])
    assert set(listed(found, root)) >= {
        "docs/clean/partitions/b",
        "docs/split/train/partitions/b",
        "docs/texts/partitions/b",
    }
    assert {one.path.name for one in found} == {"b"}


@pytest.mark.slow
def test_folders_are_deleted_only_if_asked(
    location: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    location("other.py", name="gone")
    file = location("new.py")
    root = tmp_path / "root"
    (root / "mine").mkdir()
    (root / "mine" / "notes.txt").write_text("keep")
    for option in ([], ["--dry-run"]):
        assert main(["prune", str(root), "-f", str(file), *option]) == 0
        assert (root / "gone/clean").exists()
    assert main(["prune", str(root), "-f", str(file), "--yes"]) == 0
    assert not (root / "gone").exists()
    assert (root / "docs/clean/clean_results.jsonl").exists()
    assert (root / "mine/notes.txt").exists()
    assert "deleted" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.slow
def test_nothing_is_deleted_where_a_newer_version_has_written(
    location: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    location("other.py", name="gone")
    file = location("new.py")
    root = tmp_path / "root"
    manifest = root / "gone/clean/clean_results.jsonl.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"6-little"', b'"7-little"'))
    assert main(["prune", str(root), "-f", str(file), "--yes"]) == 1
    assert f"{manifest} has format 7-little, of a newer version" in capsys.readouterr().err
    assert (root / "gone/split").exists()


@pytest.mark.slow
def test_all_code_locations_of_a_root_are_given_together(
    location: Callable[..., Path], tmp_path: Path
) -> None:
    files = [str(location("one.py")), str(location("two.py", name="two"))]
    found, _ = prune(str(tmp_path / "root"), files=files)
    assert found == []


@pytest.mark.slow
def test_a_folder_in_which_a_run_works_is_kept(
    location: Callable[..., Path], tmp_path: Path
) -> None:
    location("old.py", node="washed")
    file = location("new.py")
    folder = tmp_path / "root/docs/washed"
    lock = FolderLock(folder, "a run", 0.0)
    try:
        with pytest.raises(FolderLockedError):
            prune(str(tmp_path / "root"), files=[str(file)], delete=True)
    finally:
        lock.release()
    assert (folder / "washed_results.jsonl").exists()


@pytest.mark.slow
def test_dynamic_partitions_need_the_instance_that_knows_them(
    location: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location("old.py", keys=["a", "b"])
    file = location("new.py", keys=["a"], run=False)
    text = file.read_text().replace("StaticPartitionsDefinition(['a'])", "x")
    file.write_text(text.replace("dg.x", "dg.DynamicPartitionsDefinition(name='files')"))
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    root = tmp_path / "root"
    with pytest.raises(ConfigurationError, match="DAGSTER_HOME"):
        prune(str(root), files=[str(file)])
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions("files", ["a"])
    found, _ = prune(str(root), files=[str(file)])
    assert {one.path.name for one in found} == {"b"}


def test_wrong_roots_and_definitions_are_refused(
    location: Callable[..., Path], tmp_path: Path
) -> None:
    file, root = str(location("one.py")), str(tmp_path / "root")
    empty = tmp_path / "empty"
    empty.mkdir()
    nothing = tmp_path / "nothing.py"
    nothing.write_text("import dagster as dg\n")
    bare = tmp_path / "bare.py"
    bare.write_text("import dagster as dg\ndefs = dg.Definitions()\n")
    for place, files, said in (
        (str(empty), [file], "no asset is there"),
        (str(tmp_path / "missing"), [file], "a folder that exists"),
        ("https://host/root", [file], "a path on this machine"),
        (root, [], "with assets"),
        (root, [str(bare)], "with assets"),
        (root, [str(nothing)], "a module with dg.Definitions"),
        (root, [str(tmp_path / "missing.py")], "a Python file"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            prune(place, files=files, delete=True)
    assert (tmp_path / "root/docs/clean").exists()


@pytest.mark.slow
def test_definitions_of_a_function_are_found_in_a_module(
    location: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = location("old.py", node="washed")
    shutil.copy(file, tmp_path / "lazy_location.py")
    lazy = tmp_path / "lazy_location.py"
    lazy.write_text(
        lazy.read_text().replace("defs = build", "@dg.definitions\ndef defs():\n  return build")
    )
    monkeypatch.chdir(tmp_path)
    found, _ = prune(str(tmp_path / "root"), modules=["lazy_location"])
    assert found == []

"""Tests of names, links and modes of files: no path leaves the root, no stored code is run."""

import ast
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dagster_dataops
from dagster_dataops import Selector, config, pipeline
from dagster_dataops.assets.runtime.asset_paths import folder_of
from dagster_dataops.data import data_register
from dagster_dataops.errors import (
    OperatorDefinitionError,
    PipelineDefinitionError,
    StorageError,
)
from tests.examples import at_most
from tests.execution.helpers import (
    expected_results,
    lines,
    node,
    operator_for,
    plan,
    run,
    write_input,
)
from tests.journals import Checkpoint, RunFingerprint, fresh
from tests.nodes import FolderLock, Root, draft_of, existing, published, write_records
from tests.registries import OperatorRegistry

_SOURCES = sorted(Path(dagster_dataops.__file__).parent.rglob("*.py"))
_HOSTILE = ["..", ".", "", "/", "/etc", "../..", "a/../../b", "\0", "a\0b", "CON", "NUL", "aux.txt"]
_HOSTILE += [
    ".lock",
    ".a_results.jsonl.draft",
    "checkpoints",
    "~",
    "~root",
    "$HOME",
    "%2e%2e",
    "n" * 300,
]
_HOSTILE += ["a b", " ", "-rf", "é", "\u202e", "\u2025", "\uff0e\uff0e", "\udcff", "a\nb", "*", "|"]
_NAMES = st.sampled_from(_HOSTILE) | st.text(
    st.characters() | st.sampled_from("./\\\0~%\udcff"), max_size=40
)


def _everything_below(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent) / name for name in (*folders, *files))


@pytest.mark.slow
@settings(max_examples=at_most(60))
@given(st.lists(_NAMES, min_size=1, max_size=3), st.none() | _NAMES)
def test_files_of_assets_and_partitions_of_any_name_are_below_the_root(
    key: list[str], partition: str | None
) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "outer" / "root"
        folder = folder_of(Root(root), key, partition)
        FolderLock(folder.path, "run", 0).release()
        for path in (folder.result, folder.errors, folder.input, folder.manifest):
            write_records(path, [{"n": 1}], "test")
        assert {path.name for path in Path(place).iterdir()} == {"outer"}
        assert {path.name for path in (Path(place) / "outer").iterdir()} == {"root"}
        found = {path.name for path in folder.path.iterdir()}
        assert len(found) == 5
        assert folder.path.resolve().is_relative_to(root.resolve())


@settings(max_examples=at_most(100))
@given(_NAMES)
def test_names_of_operators_groups_pipelines_and_nodes_are_plain_or_refused(name: str) -> None:
    registry = OperatorRegistry(print)

    def keep(record: dict[str, object]) -> None:
        return None

    keep.__name__ = keep.__qualname__ = name
    plain = name.isidentifier() and name.isascii() and not name.startswith("_")
    given_name = [
        (OperatorDefinitionError, lambda: registry("data.fine")(keep)),
        (OperatorDefinitionError, lambda: registry.new_group(name)),
        (OperatorDefinitionError, lambda: registry(f"data.{name}")),
        (PipelineDefinitionError, lambda: pipeline().add(name, act_on)),
    ]
    for error, give in given_name:
        if plain:
            with suppress(error):  # a few have a special meaning, such as "source"
                give()
        else:
            with pytest.raises(error):
                give()
    if name and not plain and not name.startswith("_"):
        with pytest.raises(PipelineDefinitionError):
            pipeline(name)


@data_register("data.escapes")
def act_on(record):
    return record


@pytest.mark.parametrize("name", ["n" * 151, "n" * 300])
def test_a_name_too_long_for_its_files_is_refused_before_anything_runs(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(PipelineDefinitionError, match="longer than 150 bytes"), pipeline() as ppl:
        ppl.add(name, act_on)
    with pytest.raises(PipelineDefinitionError, match="longer than 150 bytes"), pipeline(name) as p:
        p.add("fine", act_on)


def test_a_node_with_the_longest_name_is_published(root: Path) -> None:
    name = "n" * 150
    with pipeline(name) as ppl:
        ppl.add(name, act_on(_concurrency_mode="single"))
    assert ppl([{"n": 1}]) == [{"n": 1}]
    assert (root / name / name / f"{name}_results.jsonl").exists()


@pytest.mark.parametrize("text", ["../outside", "a/../../outside", "./x/.."])
def test_a_root_is_exactly_where_its_path_leads(tmp_path: Path, text: str) -> None:
    """Dots in the setting are the user's own; nothing is added to where they lead."""
    (tmp_path / "a" / "x").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    where = tmp_path / "a" / "x" / text
    where.mkdir(parents=True, exist_ok=True)
    before = set(_everything_below(tmp_path))
    with config.temporary(data_process_path=where):
        act_on(_concurrency_mode="single")([{"n": 1}])
    made = set(_everything_below(tmp_path)) - before
    assert made
    assert all(path.is_relative_to(where.resolve()) for path in made)


_PLANTED = ("result", "errors", "manifest", "input")


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
@pytest.mark.parametrize("mode", ["single", "process"])
def test_links_among_a_nodes_files_are_never_followed(tmp_path: Path, mode: str, kind: str) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    folder = node(tmp_path / "root")
    folder.checkpoints.mkdir(parents=True)
    planted = [getattr(folder, name) for name in _PLANTED]
    planted += [draft_of(path) for path in planted]
    planted.append(draft_of(draft_of(folder.manifest)))
    for path in planted:
        path.symlink_to(precious) if kind == "symbolic" else path.hardlink_to(precious)
    records = plan(["keep", "fail", "expand"] * 4)
    halves = [write_input(tmp_path / f"{n}.jsonl", records[n::2]) for n in range(2)]
    run(operator_for(mode, 2), halves, folder)
    assert precious.read_text() == "precious"
    assert folder.result.read_bytes() == expected_results([*records[0::2], *records[1::2]])
    assert not folder.result.is_symlink()
    assert not folder.errors.is_symlink()


def test_a_link_in_place_of_the_journal_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    folder = tmp_path / "checkpoints"
    content = fresh(folder)
    content.folder.mkdir(parents=True)
    (content.folder / "journal").symlink_to(precious)
    job = operator_for("single", 1).__dataops__
    with pytest.raises(StorageError, match="open the journal"):
        Checkpoint(content, RunFingerprint.of(job, "stat:1"), "run", 1.0)
    assert precious.read_text() == "precious"


def test_checkpoints_linked_to_another_disk_are_used_and_cleared(tmp_path: Path) -> None:
    folder = node(tmp_path)
    folder.path.mkdir()
    (tmp_path / "fast-disk").mkdir()
    folder.checkpoints.symlink_to(tmp_path / "fast-disk")
    dataset = write_input(tmp_path / "input.jsonl", [{"n": 1}])
    for name in ("first", "second"):
        run(act_on(_concurrency_mode="single"), dataset, folder, run=name)
    assert folder.result.read_bytes() == lines([{"n": 1}])


@pytest.mark.parametrize("name", ["²", "1/segment-x.jsonl"])
def test_files_of_others_among_the_checkpoints_are_passed_over(tmp_path: Path, name: str) -> None:
    folder = node(tmp_path)
    (folder.checkpoints / "1").mkdir(parents=True)
    (folder.checkpoints / name).touch()
    content = existing(folder.checkpoints)[0]
    job = operator_for("single", 1).__dataops__
    Checkpoint(content, RunFingerprint.of(job, "stat:1"), "run", 1.0).close()


def test_a_manifest_leads_to_no_other_file(tmp_path: Path) -> None:
    """The manifest does not name the result: it is always the file in the node's folder."""
    folder = node(tmp_path)
    dataset = write_input(tmp_path / "input.jsonl", [{"n": 1}])
    run(act_on(_concurrency_mode="single"), dataset, folder)
    text = folder.manifest.read_text()
    assert str(folder.path) not in text
    folder.manifest.write_text(text.replace('"run": "test"', '"run": "../../../etc/passwd"'))
    found = published(folder)
    assert found is not None
    assert found[0].path == folder.result


_RUNNING = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "yaml", "runpy", "code"}


_USING_YAML = {
    "declared_form.py",
    "energon_layout.py",
    "energon_preparation.py",
    "metadataset_nodes.py",
    "metadataset_plan.py",
}


def _imports(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for item in ast.walk(tree):
        match item:
            case ast.Import(names=names):
                found |= {alias.name.split(".")[0] for alias in names}
            case ast.ImportFrom(module=str(module)):
                found.add(module.split(".")[0])
    return found


def _calls(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for item in ast.walk(tree):
        match item:
            case ast.Call(func=ast.Name(id=name)):
                found.add(name)
            case ast.Call(func=ast.Attribute(attr=name)):
                found.add(f".{name}")
    return found


def _used_in(path: Path) -> tuple[set[str], set[str]]:
    """Return the imports and the calls of a file; to keep the trees of all would take longer."""
    tree = ast.parse(path.read_text())
    return _imports(tree), _calls(tree)


@pytest.mark.slow
def test_only_messages_from_the_parent_are_unpickled() -> None:
    used = [(path, *_used_in(path)) for path in _SOURCES]
    called = {path.name: calls for path, _, calls in used}
    pickling = {path.name for path, imports, _ in used if imports & _RUNNING}
    # They read their own temporary files, or objects of the run, by marshal, which runs no code.
    sorting = {"external_sort.py", "ranking.py", "keyed_parts.py", "dataset_stages.py"}
    sorting |= {"repeated_parts.py", "similar_partitions.py"}
    own_processes = {"shard_process.py", "tasks.py", "channel.py"}
    own_copy = "service_copies.py"  # of an object of this process
    kept = "kept_values.py"  # its own temporary files, of which it holds the digests
    spans = "span_file.py"  # files of this user, written by processes of the run elsewhere
    assert pickling - _USING_YAML - own_processes == {
        *("pickling.py", "sent_code.py", "callers.py", "factories.py", "torch_dataset.py"),
        *(*sorting, own_copy, kept, spans),
    }
    for name in _USING_YAML:  # neither runs code
        assert not called[name] & {".load", ".load_all", ".unsafe_load", ".full_load"}, name
    for name in ("factories.py", "sent_code.py"):  # they pickle only
        assert not called[name] & {".load", ".loads"}, name
    for path, _, calls in used:
        # Connection.recv() unpickles its message, Connection.recv_bytes() does not.
        receiving = {".recv"} if path.name != "channel.py" else set()  # of a socket
        assert not calls & {"eval", ".read_pickle", *receiving}, path.name
        # They compile source text; a chain's holds nothing but numbers of parts. Samples of a
        # declared type run the file that the dataset.yaml of a dataset that is trusted names.
        compiling = path.parent.name in {"selectors", "chains"} or path.name == "typed_samples.py"
        assert "exec" not in calls or compiling, path.name


@given(st.text(alphabet="ab'\"\\{}()#:;=*-+/\x00", min_size=1, max_size=20))
def test_nothing_in_a_selector_is_run(key: str) -> None:
    selector = Selector(f"x.{key}")
    assert selector.values({"x": {key: 1}}) == [1]
    assert selector.map(lambda value: value + 1, {"x": {key: 1}}) == {"x": {key: 2}}

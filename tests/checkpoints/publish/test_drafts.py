"""All outputs of a node are published together, or none, whenever the process dies."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.checkpoints.publish.drafts import RoutedWriter
from tests.execution.helpers import plan, run, write_input
from tests.execution.splitting import check_manifests, expected, operator_for, splits, written
from tests.faults.crashing import DyingAfter, in_child
from tests.nodes import JsonlWriter, Manifest, NodeFolder, ResumePolicy, commit, published_manifest

_OLD = plan(["train", "test", "fail", "both"])
_NEW = plan(["several", "test", "drop", "fail", "train", "both", "fail", "changed"])
# Every step of publishing: (class or module, function, call, whether just before it).
_STEPS: dict[str, tuple[Any, str, int, bool]] = {
    **{f"after draft {number}": (JsonlWriter, "finish", number, False) for number in range(1, 4)},
    "before the manifest's draft": (commit, "write_draft", 1, True),
    "after the manifest's draft": (commit, "write_draft", 1, False),
    **{f"after rename {number}": (Path, "replace", number, False) for number in range(1, 8)},
    "before the checkpoints are removed": (commit, "remove_checkpoints", 1, True),
    "after the checkpoints are removed": (commit, "remove_checkpoints", 1, False),
    "before the first manifest of an output": (commit, "write_durably", 1, True),
    "after the first manifest of an output": (commit, "write_durably", 1, False),
    "after the second manifest of an output": (commit, "write_durably", 2, False),
    "after everything is done": (commit, "_finish", 1, False),
}


def _check_whole(folder: NodeFolder) -> None:
    """Each output is that of the old run or of the new one, and its manifest is of its bytes."""
    old, new = expected(_OLD), expected(_NEW)
    found = written(folder)
    for name in found:
        assert found[name] in (old[name], new[name])
    check_manifests(folder)
    if published_manifest(folder) is not None:
        assert found in (old, new)


@pytest.mark.parametrize("policy", [ResumePolicy.AUTO, ResumePolicy.NEVER], ids=["auto", "never"])
@pytest.mark.parametrize("step", _STEPS)
def test_a_death_while_publishing_leaves_all_outputs_or_none(
    tmp_path: Path, step: str, policy: ResumePolicy
) -> None:
    folder = splits(tmp_path)
    operator = operator_for("single")
    run(operator, write_input(tmp_path / "old.jsonl", _OLD), folder)
    assert written(folder) == expected(_OLD)
    dataset = write_input(tmp_path / "new.jsonl", _NEW)

    def publish() -> None:
        owner, name, calls, before = _STEPS[step]
        dying = DyingAfter(getattr(owner, name), calls, before=before)
        pytest.MonkeyPatch().setattr(owner, name, dying)
        run(operator, dataset, folder, run="killed")

    assert in_child(publish) == DyingAfter.STATUS
    _check_whole(folder)
    run(operator, dataset, folder, run="next", resume=policy, earlier_runs=frozenset({"killed"}))
    assert written(folder) == expected(_NEW)
    manifest = published_manifest(folder)
    assert manifest is not None
    assert manifest.rows_in == len(_NEW)
    for place, own in manifest.parts(folder).values():
        assert Manifest.load(place.manifest) == own
    for place in (folder, *folder.outputs.values()):
        assert not list(place.path.glob(".*.draft"))


def test_lines_go_to_the_files_of_their_outputs(tmp_path: Path) -> None:
    folder = splits(tmp_path)
    with ExitStack() as stack:
        writer = RoutedWriter(folder, stack)
        writer.write(b'{"n":0}\n{"n":1}\n{"n":2}\n', [1, 0, 1])
        writer.write(b"", [])
        writer.write(b'{"n":3}\n', [0])
        made = writer.finish()
    assert (made.rows, made.size_bytes) == (4, 32)
    assert [facts["rows_out"] for facts in writer.outputs.values()] == [2, 2]
    assert writer.outputs["train"]["folder"] == "train"


def test_a_line_without_an_output_is_an_error(tmp_path: Path) -> None:
    with ExitStack() as stack, pytest.raises(ValueError, match="zip"):
        writer = RoutedWriter(splits(tmp_path), stack)
        writer.write(b'{"n":0}\n{"n":1}\n', [0])

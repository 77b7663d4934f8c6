from pathlib import Path

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.execution.gathering import gathered
from tests.execution.helpers import act, node, run, write_input


def _dataset(path: Path, content: bytes) -> JsonlDataset:
    path.write_bytes(content)
    return JsonlDataset.of_file(path)


def test_a_single_input_is_taken_as_it_is(tmp_path: Path) -> None:
    dataset = _dataset(tmp_path / "a", b"{}\n")
    assert gathered([dataset], tmp_path / "joined") is dataset
    assert not (tmp_path / "joined").exists()


def test_several_are_joined_line_by_line(tmp_path: Path) -> None:
    contents = [b'{"a":1}', b"", b'\xef\xbb\xbf{"b":2}\n\n', b'{"c":3}\r\n{"d":4}']
    parts = [_dataset(tmp_path / str(n), content) for n, content in enumerate(contents)]
    joined = gathered(parts, tmp_path / "joined")
    assert joined.read() == [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}]
    assert joined.path.read_bytes().endswith(b"\n")
    assert joined.size_bytes == joined.path.stat().st_size
    assert joined.rows is None


def test_known_rows_are_added_up(tmp_path: Path) -> None:
    handles = [
        JsonlDataset(_dataset(tmp_path / str(n), b"{}\n" * n).path, 3 * n, rows=n) for n in (2, 3)
    ]
    assert gathered(handles, tmp_path / "joined").rows == 5


def test_the_same_content_has_the_same_identity(tmp_path: Path) -> None:
    parts = [_dataset(tmp_path / name, b"{}\n") for name in "ab"]
    first = gathered(parts, tmp_path / "one")
    assert gathered(parts, tmp_path / "two").identity == first.identity


def test_a_run_leaves_no_gathered_input_behind(tmp_path: Path) -> None:
    parts = [write_input(tmp_path / name, [{"n": 1, "do": "keep", "text": name}]) for name in "ab"]
    run(act(_concurrency_mode="single"), parts, node(tmp_path))
    assert [record["text"] for record in JsonlDataset.of_file(node(tmp_path).result)] == ["a", "b"]
    assert not node(tmp_path).input.exists()

"""The names of files in shards: the key of their sample, and the part of it that they are."""

import pytest

from dagster_dataops import read_tar
from tests.training.filestores.shards import write_tar


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.txt", ("a", "txt")),
        ("d/x.y.txt", ("d/x", "y.txt")),
        ("d.v1/z.txt", ("d.v1/z", "txt")),
        ("./q.txt", ("./q", "txt")),
        ("UP.TXT", ("UP", "TXT")),
        ("noext", None),
        (".hidden.txt", None),
        ("d/.hidden.txt", None),
        ("__meta__/x.txt", None),
    ],
)
def test_a_name_is_divided_at_the_first_dot_of_its_last_component(name, expected, tmp_path):
    path = write_tar(tmp_path / "shard.tar", [(name, b"content")])
    found = [
        (sample["__key__"], part)
        for sample in read_tar(path)
        for part, content in sample.items()
        if content == b"content"
    ]
    assert found == ([] if expected is None else [expected])

"""Tests of dagster_dataops.training.filestores.sample_names."""

import pytest

from dagster_dataops.training.filestores.sample_names import split_name


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
def test_a_name_is_divided_at_the_first_dot_of_its_last_component(name, expected):
    assert split_name(name) == expected

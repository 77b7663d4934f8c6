"""Tests of dagster_dataops.filestores.confinement."""

import pytest

from dagster_dataops.errors import PathEscapeError
from dagster_dataops.filestores.confinement import confined


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "a\0b", "", "."])
def test_a_name_that_leads_out_is_refused(name):
    with pytest.raises(PathEscapeError, match="store of pictures"):
        confined(name, "store of pictures")


def test_a_name_gets_its_plain_form():
    assert confined("./a//b.txt", "s") == "a/b.txt"

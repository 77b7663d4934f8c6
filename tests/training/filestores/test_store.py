"""Tests of dagster_dataops.training.filestores.store."""

import pytest

from dagster_dataops.errors import PathEscapeError
from dagster_dataops.training.filestores.folder_store import FolderStore


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "a\0b", "", "."])
def test_a_name_that_leads_out_is_refused(name, tmp_path):
    with pytest.raises(PathEscapeError, match="store of pictures"):
        FolderStore(str(tmp_path)).named("store of pictures").confined(name)


def test_a_name_gets_its_plain_form(tmp_path):
    assert FolderStore(str(tmp_path)).confined("./a//b.txt") == "a/b.txt"

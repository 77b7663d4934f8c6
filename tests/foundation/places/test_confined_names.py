"""Tests of names from files and objects as paths: they stay below their folder, or are refused."""

import os
import pickle
from pathlib import Path, PureWindowsPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops.errors import PathEscapeError
from dagster_dataops.foundation.places.confined_names import below, confined, is_plain
from tests.each import each
from tests.examples import at_most

_PARTS = [
    "..",
    ".",
    "",
    "/",
    "a",
    "a.b",
    "...",
    "~",
    "\0",
    "\\",
    "C:",
    "\ud800",
    "\udcff",
    " ",
    "é",
]
_NAMES = st.lists(st.sampled_from(_PARTS), max_size=5).map("/".join) | st.text(
    st.characters() | st.sampled_from("./\\\0~"), max_size=20
)
ESCAPES = [
    "",
    ".",
    "..",
    "/",
    "/etc/passwd",
    "../x",
    "a/../../x",
    "a/..",
    "./a",
    "a/.",
    "a//b",
    "a/",
]
ESCAPES += ["\0", "a\0b", "//a", "\ud800"]


@settings(max_examples=at_most(200))
@given(_NAMES)
def test_a_name_is_below_its_folder_or_refused(name: str) -> None:
    root = Path("/srv/root")
    try:
        path = below(root, name, "the head")
    except PathEscapeError:
        return
    assert os.path.normpath(path) == str(path) != str(root)
    assert path.relative_to(root).as_posix() == name


@each("name", [*ESCAPES, None, 1, b"a", ["a"]])
def test_what_leads_out_of_its_folder_is_refused(name: object) -> None:
    with pytest.raises(PathEscapeError, match="leads out") as caught:
        confined(name, "memory://bucket/head.json")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert "memory://bucket/head.json" in str(copy)


@each("part", ["a", "a.b", "...", "~", "-rf", " a", "é", "\udcff", "a b", "C:", "a\\b"])
def test_any_other_name_of_a_file_is_plain(part: str) -> None:
    assert is_plain(part, windows=False)


@settings(max_examples=at_most(100))
@given(st.text(st.sampled_from("aC:\\/. "), max_size=6))
def test_on_windows_a_plain_name_is_one_part_without_a_drive(part: str) -> None:
    if is_plain(part, windows=True):
        assert PureWindowsPath(part).parts == (part,)
        assert not PureWindowsPath(part).drive

"""Files that options name count by their content."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest

from dagster_dataops import FileContent, Operational, chain, data_register
from dagster_dataops.operators.options.file_content import content_of
from tests.each import each
from tests.execution.helpers import TINY, cut_by, node, run, write_input
from tests.nodes import ResumePolicy

PathText = Annotated[str | os.PathLike[str], FileContent]
STOP: Annotated[Any, Operational] = {"at": None}


class Reading(data_register.new_group("file_content_tests")):
    """Writes the text of a file, or what is given in its place."""

    def __init__(
        self,
        source: PathText | list[str] | None = None,
        *,
        several: list[PathText] | Mapping[str, PathText] = (),
        plain: str = "",
        quiet: Annotated[str, FileContent, Operational] = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        named = isinstance(source, (str, os.PathLike)) and Path(source).is_file()
        self.text = Path(source).read_text() if named else repr(source)

    def forward(self, record):
        if record["n"] == STOP["at"]:
            raise KeyboardInterrupt
        return {"n": record["n"], "text": self.text}


@data_register("data.file_content_tests")
def by_function(record, source: "Annotated[str, FileContent]" = ""):
    return record | {"text": Path(source).read_text()}


def digest_of(**options: Any) -> str:
    return Reading(**options).__dataops__.options_digest


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("one")
    return path


def a_folder(path: Path) -> Path:
    (path.parent / "model" / "inner").mkdir(parents=True)
    (path.parent / "model" / "a.txt").write_text("a")
    (path.parent / "model" / "inner" / "link").symlink_to(path)
    (path.parent / "model" / "inner" / "around").symlink_to(path.parent / "model")
    return path.parent / "model"


@each(
    "options_of",
    [
        lambda path: {"source": str(path)},
        lambda path: {"source": path},
        lambda path: {"several": [str(path)]},
        lambda path: {"several": {"a": path, "b": "missing"}},
        lambda path: {"source": a_folder(path)},
    ],
)
def test_other_content_at_the_same_path_is_another_option(
    options_of: Callable[[Path], dict[str, Any]], file: Path
) -> None:
    options = options_of(file)
    before = digest_of(**options)
    file.write_text("two")
    assert digest_of(**options) != before
    file.unlink()
    file.write_text("one")
    assert digest_of(**options) == before


def test_an_empty_path_does_not_name_the_working_directory() -> None:
    assert content_of("") == ""


def test_the_names_of_the_files_of_a_folder_count(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "a").write_text("1")
    before = digest_of(source=tmp_path / "model")
    (tmp_path / "model" / "a").rename(tmp_path / "model" / "b")
    assert digest_of(source=tmp_path / "model") != before


@each("options", [{"source": ["{}"]}, {"plain": "{}"}, {"quiet": "{}"}, {"source": "{}.missing"}])
def test_what_is_no_marked_path_of_a_file_counts_by_its_value(
    options: dict[str, Any], file: Path
) -> None:
    filled = {
        name: [str(file)] if isinstance(value, list) else value.format(file)
        for name, value in options.items()
    }
    before = digest_of(**filled)
    file.write_text("two")
    assert digest_of(**filled) == before


def test_the_digest_of_an_option_without_file_is_that_of_an_operator_without_mark(
    registry: Any,
) -> None:
    @registry("data.marks")
    def marked(record, source: Annotated[str, FileContent] = "o200k_base"):
        return record

    @registry("data.marks")
    def unmarked(record, source: str = "o200k_base"):
        return record

    assert marked().__dataops__.options_digest == unmarked().__dataops__.options_digest


def test_a_relative_path_and_the_annotation_of_a_function_as_text_count(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    before = by_function(source=file.name).__dataops__.options_digest
    file.write_text("two")
    assert by_function(source=file.name).__dataops__.options_digest != before


# ---------------------------------------------------------------- runs


def alone(path: Path) -> Any:
    return Reading(path, _concurrency_mode="single")


def in_chain(path: Path) -> Any:
    return chain(alone(path))


@pytest.mark.parametrize("make", [alone, in_chain])
@pytest.mark.parametrize("content", ["two", "one"])
def test_a_killed_run_goes_on_only_with_the_same_content(
    make: Callable[[Path], Any], content: str, file: Path, tmp_path: Path
) -> None:
    dataset = write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(20)])
    folder = node(tmp_path / "root")
    STOP["at"] = 12
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        cut_by(patch, TINY)
        run(make(file), dataset, folder, run="killed", resume=ResumePolicy.AUTO)
    STOP["at"] = None
    file.unlink()
    file.write_text(content)

    report = run(make(file), dataset, folder, resume=ResumePolicy.AUTO)

    assert {record["text"] for record in report.dataset.read()} == {content}
    if content == "one":
        assert report.notes[0].startswith("resuming: 12 ")
    else:
        assert "starting afresh, without 12 records settled by run killed" in report.notes[0]
        assert "its options have changed since (the content of the file of '" in report.notes[0]
        assert "source')" in report.notes[0]


def test_a_finished_result_is_made_again_and_an_operator_reads_its_replaced_file_again(
    file: Path, tmp_path: Path
) -> None:
    dataset = write_input(tmp_path / "input.jsonl", [{"n": 1}])
    folder, operator = node(tmp_path / "root"), Reading(file, _concurrency_mode="single")
    for content, reused in [("one", False), ("one", True), ("two", False), ("two", True)]:
        file.write_text(content)
        report = run(operator, dataset, folder, reuse_finished=True, resume=ResumePolicy.AUTO)
        assert (report.dataset.read(), report.reused) == ([{"n": 1, "text": content}], reused)


def test_a_deleted_file_does_not_matter_to_an_operator_that_has_read_it(
    file: Path, tmp_path: Path
) -> None:
    operator = Reading(file)
    file.unlink()
    dataset = write_input(tmp_path / "input.jsonl", [{"n": 1}])
    report = run(operator, dataset, node(tmp_path / "root"))
    assert report.dataset.read() == [{"n": 1, "text": "one"}]

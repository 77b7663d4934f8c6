"""Tests of artefacts in pipelines and in operators that are called in plain Python."""

import json
from pathlib import Path

import pytest

from dagster_dataops import (
    To,
    config,
    data_register,
    load_artefact,
    load_result,
    pipeline,
    read_sequence,
)
from dagster_dataops.errors import (
    OperatorOptionError,
    PipelineDefinitionError,
    ResultMissingError,
)
from tests.nodes import OperatorExecutor

group = data_register.new_group("artefact_nodes_tests")
RECORDS = [{"text": "a b"}, {"text": "b c"}]


class Vocabulary(group):
    def __init__(self, least=1, **kwargs):
        super().__init__(**kwargs)
        self.least = least

    def build(self, records, folder):
        counts: dict[str, int] = {}
        for record in records:
            for word in record["text"].split():
                counts[word] = counts.get(word, 0) + 1
        kept = [word for word, count in counts.items() if count >= self.least]
        (folder / "words.json").write_text(json.dumps(sorted(kept)))


class Known(group):
    """Keep known words; the vocabulary is read in ``__init__``."""

    def __init__(self, vocabulary, **kwargs):
        super().__init__(_max_workers=2, **kwargs)
        self.folder = vocabulary
        self.words = json.loads((vocabulary / "words.json").read_text())

    def forward(self, record):
        assert type(self.folder) is type(Path())
        record["known"] = [word for word in record["text"].split() if word in self.words]


class KnownLater(group):
    """The same, read for each record; async."""

    def __init__(self, vocabulary, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary = vocabulary

    async def forward(self, record):
        words = json.loads((self.vocabulary / "words.json").read_text())
        record["known"] = [word for word in record["text"].split() if word in words]


@data_register("data.artefact_nodes_tests")
def known_by_function(record, vocabulary: Path):
    words = json.loads((vocabulary / "words.json").read_text())
    record["known"] = [word for word in record["text"].split() if word in words]


class ByVocabulary(group, outputs=("known", "unknown")):
    """Send texts of known words to one output, others to the other."""

    def __init__(self, vocabulary, **kwargs):
        super().__init__(**kwargs)
        self.words = json.loads((vocabulary / "words.json").read_text())

    def forward(self, record):
        whole = all(word in self.words for word in record["text"].split())
        return To("known" if whole else "unknown")


class KnownKept(group):
    """A selection."""

    def __init__(self, vocabulary, **kwargs):
        super().__init__(**kwargs)
        self.words = json.loads((vocabulary / "words.json").read_text())

    def sketch(self, record):
        return all(word in self.words for word in record["text"].split())

    def keep(self, sketches):
        return sketches


class Merged(group):
    """An artefact of artefacts."""

    def __init__(self, parts, **kwargs):
        super().__init__(**kwargs)
        self.parts = parts

    def build(self, records, folder):
        words = {w for part in self.parts for w in json.loads((part / "words.json").read_text())}
        (folder / "words.json").write_text(json.dumps(sorted(words)))


def known(records) -> list[list[str]]:
    return [record["known"] for record in records]


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
@pytest.mark.parametrize("operator", [Known, known_by_function])
def test_the_option_is_the_path_of_the_folder_in_every_mode(mode: str, operator) -> None:
    with pipeline("docs") as ppl:
        ppl.vocabulary = Vocabulary(least=2)
        ppl.known = operator(vocabulary=ppl.vocabulary, _concurrency_mode=mode)
    assert known(ppl(RECORDS)) == [["b"], ["b"]]


def test_async_and_selection_operators_take_artefacts() -> None:
    with pipeline("docs") as ppl:
        ppl.vocabulary = Vocabulary(least=2)
        ppl.known = KnownLater(vocabulary=ppl.vocabulary)
        ppl.kept = KnownKept(vocabulary=ppl.vocabulary)
    assert ppl(RECORDS) == []
    assert known(load_result(config.data_process_path / "docs" / "known")) == [["b"], ["b"]]


def test_a_node_after_an_artefact_takes_the_records_before_it() -> None:
    with pipeline() as ppl:
        ppl.vocabulary = Vocabulary()
        ppl.known = Known(vocabulary=ppl.vocabulary)
        ppl.second = Vocabulary()
        ppl.again = Known(vocabulary=ppl.second)
    nodes = ppl.graph.nodes
    assert [nodes[name].inputs[0] for name in nodes] == ["source", "source", "known", "known"]


def test_artefacts_stand_inside_lists_and_take_artefacts_themselves() -> None:
    with pipeline("docs") as ppl:
        ppl.often = Vocabulary(least=2)
        ppl.all = Vocabulary()
        ppl.merged = Merged(parts=[ppl.often, ppl.all])
        ppl.known = Known(vocabulary=ppl.merged)
    assert known(ppl(RECORDS)) == [["a", "b"], ["b", "c"]]


def test_a_pipeline_that_ends_with_an_artefact_returns_its_path() -> None:
    with pipeline("docs") as ppl:
        ppl.vocabulary = Vocabulary()
    path = ppl(RECORDS)
    assert path == load_artefact(config.data_process_path / "docs" / "vocabulary").path
    assert ppl.materialize(RECORDS)["vocabulary"].artefact == path
    assert "done, 1 file" in repr(ppl)


def test_a_nested_pipeline_keeps_its_artefacts() -> None:
    with pipeline("inner") as inner:
        inner.vocabulary = Vocabulary(least=2)
        inner.known = Known(vocabulary=inner.vocabulary)
    with pipeline("vocabularies") as ending:
        ending.vocabulary = Vocabulary()
    with pipeline("docs") as ppl:
        ppl.first = inner
        ppl.other = ending
        ppl.again = Known(vocabulary=ppl.other)
    node = ppl.graph.nodes["first_known"]
    assert node.artefacts == ("first_vocabulary",)
    assert node.operator.__dataops__.unknown_options == ()
    assert ppl.graph.nodes["again"].inputs == ("first_known",)
    assert known(ppl(RECORDS)) == [["a", "b"], ["b", "c"]]


def test_an_operator_with_several_results_takes_an_artefact_and_one_is_built_of_a_result() -> None:
    with pipeline("inner") as inner:
        inner.often = Vocabulary(least=2)
        inner.split = ByVocabulary(vocabulary=inner.often)
        inner.add("rare", Vocabulary(), inputs=inner.split.unknown)
        inner.add("known", Known(vocabulary=inner.rare), inputs=inner.split.known)
    records = [*RECORDS, {"text": "b"}]
    assert known(inner(records)) == [["b"]]
    with pipeline("outer") as outer:
        outer.first = inner
    assert outer.graph.nodes["first_rare"].inputs == ("first_split.unknown",)
    assert outer.graph.nodes["first_split"].artefacts == ("first_often",)
    assert known(outer(records)) == [["b"]]


@pytest.mark.parametrize("wanted", ["split", "split.known"])
def test_a_result_of_records_is_no_artefact(wanted: str) -> None:
    said = pytest.raises(PipelineDefinitionError, match=f"names '{wanted}' in option")
    with said, pipeline("docs") as ppl:
        ppl.often = Vocabulary()
        ppl.split = ByVocabulary(vocabulary=ppl.often)
        given = ppl.split.known if "." in wanted else ppl.split
        ppl.add("again", Known(vocabulary=given), inputs=ppl.split.known)


def test_called_alone_it_returns_a_path_that_others_take() -> None:
    path = Vocabulary(least=2)(RECORDS)
    assert isinstance(path, Path)
    assert known(Known(vocabulary=path)(RECORDS)) == [["b"], ["b"]]
    assert known(Known(vocabulary=load_artefact(path))(RECORDS)) == [["b"], ["b"]]
    assert known(Known(vocabulary=load_artefact(path.parents[1]))(RECORDS)) == [["b"], ["b"]]


def test_settings_of_the_use_come_before_those_of_init_and_of_the_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Set(group):
        _max_workers = 3
        _retries = 4

        def __init__(self, vocabulary, **kwargs):
            super().__init__(_max_workers=5, _timeout=7, **kwargs)

        def forward(self, record):
            return record

    used = {}
    run = OperatorExecutor.run

    def noted(self, operator, inputs, folder):
        used[folder.name] = operator.__dataops__.resolved
        return run(self, operator, inputs, folder)

    monkeypatch.setattr(OperatorExecutor, "run", noted)
    with pipeline("docs") as ppl:
        ppl.vocabulary = Vocabulary()
        ppl.first = Set(vocabulary=ppl.vocabulary, _timeout=9, _concurrency_mode="thread")
        ppl.second = Set(vocabulary=ppl.vocabulary)
    ppl(RECORDS)
    first, second = used["first"], used["second"]
    assert (first.max_workers, first.retries, first.timeout) == (5, 4, 9)
    assert first.concurrency_mode == "thread"
    assert (second.max_workers, second.retries, second.timeout) == (5, 4, 7)


def test_a_reader_cannot_take_a_node() -> None:
    @data_register("data.artefact_nodes_tests", rewrite_func="stream")
    def words_of(vocabulary):
        return read_sequence([])

    with pipeline() as ppl:
        ppl.vocabulary = Vocabulary()
    with pytest.raises(OperatorOptionError, match="a reader is read before the pipeline runs"):
        words_of(vocabulary=ppl.vocabulary)


def test_an_equal_artefact_changes_nothing_and_another_one_makes_its_users_run_again() -> None:
    with pipeline("docs") as ppl:
        ppl.vocabulary = Vocabulary(least=2)
        ppl.known = Known(vocabulary=ppl.vocabulary)
    root = config.data_process_path / "docs"
    with config.temporary(data_process_resume=True):
        ppl(RECORDS)
        again = ppl.materialize(RECORDS)
        assert [report.reused for report in again.values()] == [True, True]
        version = load_artefact(root / "vocabulary").path
        (version / "words.json").unlink()
        third = ppl.materialize(RECORDS)
        assert [report.reused for report in third.values()] == [False, True]
        with pipeline("docs") as other:
            other.vocabulary = Vocabulary(least=1)
            other.known = Known(vocabulary=other.vocabulary)
        fourth = other.materialize(RECORDS)
        assert [report.reused for report in fourth.values()] == [False, False]
        assert known(fourth["known"].dataset) == [["a", "b"], ["b", "c"]]


def test_the_same_artefact_at_another_place_is_the_same_option(tmp_path: Path) -> None:
    digests = []
    for place in ("one", "two"):
        with config.temporary(data_process_path=tmp_path / place):
            operator = Known(vocabulary=Vocabulary()(RECORDS))
            digests.append(operator.__dataops__.options_digest)
    assert digests[0] == digests[1]
    other = Known(vocabulary=Vocabulary(least=2)(RECORDS))
    assert other.__dataops__.options_digest not in digests


class Stops(group):
    """Stop at the first record of a run, or at none."""

    def __init__(self, vocabulary, **kwargs):
        super().__init__(_concurrency_mode="single", _ignore_errors=False, **kwargs)

    def forward(self, record):
        if record["text"] == FAILING["text"]:
            raise ValueError("not yet")


FAILING = {"text": "b c"}


@pytest.mark.parametrize(("least", "resumed"), [(2, 1), (1, 0)])
def test_an_unfinished_run_resumes_only_with_an_equal_artefact(least: int, resumed: int) -> None:
    vocabulary = Vocabulary(least=2)(RECORDS)
    FAILING["text"] = "b c"
    with config.temporary(data_process_resume=True):
        with pytest.raises(Exception, match="not yet"):
            Stops(vocabulary=vocabulary)(RECORDS)
        FAILING["text"] = ""
        with pipeline() as ppl:
            ppl.Stops = Stops(vocabulary=Vocabulary(least=least)(RECORDS))
        assert ppl.materialize(RECORDS)["Stops"].rows_resumed == resumed


def test_failed_records_are_retried_with_the_artefact_that_is_there() -> None:
    with pipeline("docs") as ppl:
        ppl.vocabulary = Vocabulary(least=2)
        ppl.fails = FailsOnce(vocabulary=ppl.vocabulary)
    FailsOnce.failing = True
    assert len(ppl(RECORDS)) == 1
    FailsOnce.failing = False
    with config.temporary(data_process_resume="failed_records"):
        assert [record["size"] for record in ppl(RECORDS)] == [1, 1]


class FailsOnce(group):
    _concurrency_mode = "single"

    def __init__(self, vocabulary, **kwargs):
        super().__init__(**kwargs)
        self.words = json.loads((vocabulary / "words.json").read_text())

    def forward(self, record):
        if "c" in record["text"] and switches().failing:
            raise ValueError(record)
        record["size"] = len(self.words)


def switches():
    return group.FailsOnce


FailsOnce.failing = False


def test_a_missing_result_of_a_root_in_memory_is_named_by_its_url(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(config, "data_process_path", "memory://bucket/missing")
    with pytest.raises(ResultMissingError, match="No result at memory://bucket/missing/node: "):
        load_artefact(config.results_root().path / "node")


def test_load_artefact_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ResultMissingError, match="no \\*_results.jsonl is there"):
        load_artefact(tmp_path)
    with pipeline("docs") as ppl:
        ppl.vocabulary = Vocabulary()
        ppl.known = Known(vocabulary=ppl.vocabulary)
    ppl(RECORDS)
    with pytest.raises(ResultMissingError, match="holds records and is no artefact"):
        load_artefact(config.data_process_path / "docs" / "known")
    version = load_artefact(config.data_process_path / "docs" / "vocabulary").path
    (version / "words.json").write_text("[]")
    for place in (version, version.parents[1]):
        with pytest.raises(ResultMissingError, match="words.json was changed"):
            load_artefact(place)

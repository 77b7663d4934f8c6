import pickle
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import data, load_artefact, pipeline
from dagster_dataops.errors import DefinitionError, NewerVersionError, StorageError

OLD = [{"text": "One, two"}, {"text": "three four five six seven eight nine"}, {"text": None}]
NEW = [{"text": "one two"}, {"text": "One, two"}, {"text": "ten"}, {"text": ""}]


@pytest.mark.slow
def test_records_of_the_other_dataset_are_dropped(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_bytes(b"\n".join(orjson.dumps(record) + b"\n" for record in OLD))
    for reference in (OLD, path, str(path)):
        assert data.dedup.Against(reference)(NEW) == [NEW[0], NEW[2]]
        assert data.dedup.Against(reference, normalize="datajuicer")(NEW) == [NEW[2]]


def test_urls_are_compared_as_pages_and_records_without_one_stay(root: Path) -> None:
    old = [{"url": "http://www.a.org/?b=1"}, {"url": None}]
    new = [{"url": "https://a.org?b=1#x"}, {"url": "a.org/c"}, {"url": ""}, {"text": "x"}]
    assert data.dedup.Against(old, by="url")(new) == new[1:]


def test_similar_texts_are_dropped(root: Path) -> None:
    words = [f"w{number}" for number in range(300)]
    new = [{"text": " ".join([*words[:150], "new", *words[151:]])}, {"text": "other words"}]
    assert data.dedup.Against([{"text": " ".join(words)}], by="near")(new) == [new[1]]


@pytest.mark.parametrize("max_bytes", [10, 1 << 20])
@pytest.mark.parametrize("by", ["exact", "near"])
def test_an_index_is_an_artefact(root: Path, by: str, max_bytes: int) -> None:
    index = data.dedup.Index(by, max_memory_mb=1, _concurrency_mode="single")
    index._max_bytes = max_bytes
    path = index([*OLD, *OLD])
    assert {one.name for one in Path(path).iterdir()} == {"keys", "options.json"}
    operator = data.dedup.Against(path, by, _concurrency_mode="process", _max_workers=2)
    dropped = [] if by == "near" else [NEW[0]]
    assert operator(NEW) == [*dropped, NEW[2]]
    assert pickle.loads(pickle.dumps(operator._seen)).__contains__(b"x" * 16) is False
    with pytest.raises(DefinitionError, match="was built with"):
        data.dedup.Against(path, by, input_key="other")


@pytest.mark.parametrize("max_bytes", [100, 1 << 20])
def test_an_index_has_each_key_once_in_order(tmp_path: Path, max_bytes: int) -> None:
    index = data.dedup.Index()
    index._max_bytes = max_bytes
    index.build(iter([{"text": str(number % 300)} for number in range(500)]), tmp_path)
    keys = (tmp_path / "keys").read_bytes()
    split = [keys[at : at + 16] for at in range(0, len(keys), 16)]
    assert len(split) == 300
    assert split == sorted(set(split))
    assert {one.name for one in tmp_path.iterdir()} == {"keys", "options.json"}


def test_an_index_is_a_node_of_a_pipeline(root: Path) -> None:
    with pipeline("docs") as ppl:
        ppl.index = data.dedup.Index()
        ppl.new = data.dedup.Against(ppl.index)
    assert ppl(OLD) == []
    assert load_artefact(root / "docs" / "index").files == 2


def test_an_index_by_a_function_is_known_in_another_process(root: Path) -> None:
    def words_of() -> Any:
        def words(text: str) -> list[str]:
            return text.split()

        return words

    path = data.dedup.Index("near", words=words_of())(OLD)
    assert data.dedup.Against(path, "near", words=words_of())(OLD) == []


def test_an_empty_index_knows_nothing(root: Path) -> None:
    assert data.dedup.Against(data.dedup.Index()([]))(NEW) == NEW


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by": "x"}, "by is 'x'; use one of 'exact'"),
        ({"reference": ["x"]}, "element 0 is a str"),
    ],
)
def test_wrong_options_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        data.dedup.Against(**{"reference": [], **given})


def test_a_reference_without_the_column_is_refused():
    with pytest.raises(DefinitionError, match="no record of reference .*'text'.*mean 'txet'"):
        data.dedup.Against([{"txet": "a"}, {"id": 1, "txet": "b"}])
    assert data.dedup.Against([])([{"text": "a"}]) == [{"text": "a"}]


@pytest.mark.parametrize("number", [2, 7.5, "7", "8-little"])
def test_an_index_of_a_newer_version_is_refused(tmp_path: Path, number: Any) -> None:
    data.dedup.Index().build(iter(OLD), tmp_path)
    options = tmp_path / "options.json"
    facts = orjson.loads(options.read_bytes())
    assert facts.pop("format") == 1
    options.write_bytes(orjson.dumps(facts | {"format": number}))
    with pytest.raises(NewerVersionError, match=f"options.json has format {number}, .* reads 1"):
        data.dedup.Against(tmp_path)
    options.write_bytes(orjson.dumps(facts))  # as before there were numbers of formats
    assert data.dedup.Against(tmp_path)(NEW) == [NEW[0], NEW[2]]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        *(b'{"format":%s}' % each for each in (b"null", b"0", b"-1", b"true", b'"x"', b"[1]")),
    ],
)
def test_a_damaged_index_is_refused(tmp_path: Path, content: bytes) -> None:
    data.dedup.Index().build(iter(OLD), tmp_path)
    (tmp_path / "options.json").write_bytes(content)
    with pytest.raises(DefinitionError, match=r"is no folder of dedup\.Index: options\.json: "):
        data.dedup.Against(tmp_path)


def test_keys_that_were_cut_short_are_refused(tmp_path: Path) -> None:
    data.dedup.Index().build(iter(OLD), tmp_path)
    with (tmp_path / "keys").open("r+b") as file:
        file.truncate(17)
    with pytest.raises(StorageError, match="its size is no multiple of 16 bytes"):
        data.dedup.Against(tmp_path)

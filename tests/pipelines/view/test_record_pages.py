"""Tests of the pages with records: paging, search, dropped and failed records, escaping."""

import json
from pathlib import Path
from urllib.parse import quote, urlencode

import orjson
import pytest

from dagster_dataops import config, data, data_register, pipeline
from tests.each import each
from tests.nodes import NodeFolder
from tests.parted_results import put_in_parts
from tests.pipelines.view.conftest import COUNT, HOSTILE, judged
from tests.viewed_pages import Page, Viewer, viewing

KEPT = "looks/judged"


def numbers_of(page: Page) -> list[str]:
    """Return the line numbers of the records of a page."""
    return [cells[0] for cells in page.rows[1:] if cells]


def test_the_first_page_shows_the_graph_and_the_numbers_of_all_nodes(viewer: Viewer):
    page = viewer.page("/")
    assert page.status == 200
    cells = {row[0]: row[2:6] for row in page.rows[1:]}
    assert cells["looks / judged"] == ["300", "264", "30", "36"]
    assert cells["looks / parts"][1].startswith("264 (train ")
    addresses = {given.get("href") for tag, given in page.tags if tag == "a"}
    assert {"/records/looks/judged", "/dropped/looks/judged", "/failed/looks/judged"} <= addresses
    assert "in.jsonl" in page.text
    assert [given["class"] for tag, given in page.tags if given.get("class") == "funnel"]


def test_records_are_shown_page_by_page(viewer: Viewer):
    first = viewer.page(f"/records/{KEPT}")
    assert numbers_of(first) == [str(n) for n in range(1, 26)]
    assert "1 to 25 of 264" in first.text
    second = viewer.page(f"/records/{KEPT}{first.links['Next']}")
    assert numbers_of(second) == [str(n) for n in range(26, 51)]
    last = viewer.page(f"/records/{KEPT}{second.links['Last']}")
    assert numbers_of(last) == [str(n) for n in range(251, 265)]
    assert "Next" not in last.links
    assert numbers_of(viewer.page(f"/records/{KEPT}{last.links['Previous']}"))[0] == "226"
    assert len(numbers_of(viewer.page(f"/records/{KEPT}?rows=100&from=60"))) == 100


@each("wanted", ["0", "-5", "x", "9" * 30, "1e3", "٣", ""])
def test_numbers_that_are_none_show_a_page(viewer: Viewer, wanted: str):
    page = viewer.page(f"/records/{KEPT}?{urlencode({'from': wanted, 'rows': wanted})}")
    assert (page.status, len(numbers_of(page))) == (200, 25)


def test_a_search_finds_a_text_in_any_column_in_upper_and_lower_case(viewer: Viewer):
    page = viewer.page(f"/records/{KEPT}?q=FOX+217+")
    assert len(numbers_of(page)) == 1
    assert "1 found in all 264 records" in page.text
    assert page.marked("mark") == ["fox 217"]


@pytest.mark.slow
def test_conditions_on_columns_must_all_hold(viewer: Viewer):
    def found(*conditions: tuple[str, str, str]) -> int:
        query = [("rows", "100")]
        for column, test, value in conditions:
            query += [("column", column), ("is", test), ("value", value)]
        page = viewer.page(f"/records/{KEPT}?{urlencode(query)}")
        return len(numbers_of(page))

    assert found(("n", "is at least", "290")) == 9
    assert found(("n", "is at least", "290"), ("n", "is at most", "291")) == 2
    assert found(("n", "is", "217")) == found(("n", "is", "217.0")) == 1
    assert found(("copy", "is there", "")) == 30
    assert found(("copy", "is missing", ""), ("n", "is at most", "9")) == 7
    assert found(("level.high", "is", "true"), ("n", "is at most", "160")) == 8
    assert found(("text", "contains", "FOX 21 ")) == 1
    assert found(("nothing", "contains", "x")) == 0
    assert found(("n", "is no test", "1"), ("", "is", "x")) == 100  # neither is one


def test_a_search_finds_what_json_escapes_and_what_is_not_ascii(root: Path, tmp_path: Path):
    texts = [
        'say "hi"',
        "back\\slash",
        "tab\there",
        "Straße",
        "Οδός",
        "中文字",
        "ﬁne",
        "plain kilo",
    ]
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(f"{json.dumps({'text': one})}\n" for one in texts))
    with pipeline("texts") as ppl:
        ppl.same = data.text.Replace("no such text", "")
    ppl.materialize(path)
    with viewing(root) as viewer:
        wanted = ['"hi"', "\\s", "tab\there", "STRASSE", "ΟΔΌΣ", "文", "FINE", "KILO"]
        for line, text in enumerate(wanted, 1):
            page = viewer.page(f"/records/texts/same?{urlencode({'q': text})}")
            assert numbers_of(page) == [str(line)], text


@pytest.mark.slow
def test_texts_of_records_and_addresses_are_never_markup(viewer: Viewer):
    hostile = quote(HOSTILE, safe="")
    for path in (
        f"/records/{KEPT}",
        f"/records/{KEPT}?q={hostile}&column={hostile}&is={hostile}&value={hostile}",
        f"/dropped/{KEPT}",
        f"/dropped/{KEPT}?reason={hostile}",
        f"/failed/{KEPT}",
        f"/changes/{KEPT}",
        f"/numbers/{KEPT}",
        f"/record/{KEPT}?line=1",
        f"/input/{KEPT}?input=0&line=4",
        f"/input/{KEPT}?input=0&line=5",
        f"/records/{hostile}",
        f"/{hostile}",
    ):
        page = viewer.page(path)
        scripts = page.marked("script")
        assert len(scripts) == sum(tag == "script" for tag, _ in page.tags), path
        assert all("navigator.clipboard" in one for one in scripts), path
        assert "b" not in {tag for tag, given in page.tags if "aria-current" not in given}, path
    assert HOSTILE in viewer.page(f"/records/{KEPT}").text


def test_what_a_page_leaves_out_is_counted(root: Path, tmp_path: Path):
    path = tmp_path / "wide.jsonl"
    record = {f"column{n}": n for n in range(70)} | {"text": "some words"}
    path.write_text(json.dumps(record) + "\n" + json.dumps({"text": "x"}) + "\n")
    with pipeline("wide") as ppl:
        ppl.same = data.text.Normalize()
        ppl.long = data.filters.WordCount(max_words=1)
    ppl.materialize(path)
    with viewing(root) as viewer:
        for page in ("records/wide/same", "record/wide/same?line=1", "dropped/wide/long"):
            assert "and 11 more columns" in viewer.page(f"/{page}").text, page
        assert "At most 40 columns are shown." in viewer.page("/numbers/wide/same").text
        result = root / "wide" / "same" / "same_results.jsonl"
        result.write_bytes(result.read_bytes() + b"[1]\nno JSON\n")
        numbers = viewer.page("/numbers/wide/same?all=1").text
        assert "Of all 2 records." in numbers
        assert "2 lines are left out" in numbers


@pytest.mark.slow
def test_the_form_of_a_search_has_no_more_conditions_than_are_tested(viewer: Viewer):
    for number, fields in ((0, 1), (5, 6), (6, 6), (7, 6)):
        query = urlencode([("column", "n"), ("is", "is there"), ("value", "")] * number)
        page = viewer.page(f"/records/{KEPT}?{query}")
        names = [given.get("name") for tag, given in page.tags if tag == "input"]
        form = page.source.partition("</form>")[0].count('name="column"')
        assert (form, names.count("q")) == (fields, 1)


@pytest.mark.slow
def test_dropped_records_are_shown_with_their_reason(viewer: Viewer):
    page = viewer.page(f"/dropped/{KEPT}")
    assert [cells[:3] for cells in page.rows[1:4]] == [
        [str(line), "three & <b>more</b>", str(line - 1)] for line in (4, 14, 24)
    ]
    assert "1 to 25 of 30" in page.text
    chosen = viewer.page(f"/dropped/{KEPT}?{urlencode({'reason': 'three & <b>more</b>'})}&from=26")
    assert numbers_of(chosen) == ["254", "264", "274", "284", "294"]
    assert viewer.page(f"/dropped/{KEPT}?reason=another").rows == []


def test_a_filter_of_the_library_tells_the_numbers_behind_a_drop(root: Path):
    with pipeline("short") as ppl:
        ppl.long = data.filters.WordCount(min_words=5)
    ppl.materialize([{"text": "one two three"}, {"text": "one two three four five six"}])
    with viewing(root) as viewer:
        page = viewer.page("/dropped/short/long")
        # The records of a call in Python are gone.
        assert "there is no such file" in page.text


def test_numbers_and_texts_that_were_found_are_shown(root: Path, tmp_path: Path):
    source = tmp_path / "in.jsonl"
    ngram = "alpha beta gamma delta epsilon zeta eta theta"
    rows = [{"text": f"Well, {ngram.title()}, and so on."}, {"text": "one two"}, {"text": "x " * 9}]
    source.write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    bench = tmp_path / "bench.jsonl"
    bench.write_text(json.dumps({"query": ngram, "label": "iota"}) + "\n")
    with pipeline("found") as ppl:
        ppl.clean = data.decontaminate.NGrams(
            benchmark=str(bench), ngram_size=8, find_query_ngrams=True
        )
        ppl.long = data.filters.WordCount(min_words=5)
    ppl.materialize(source)
    with viewing(root) as viewer:
        contaminated = viewer.page("/dropped/found/clean")
        assert ngram in contaminated.text
        assert contaminated.marked("mark") == [ngram.title()]
        short = viewer.page("/dropped/found/long")
        assert "num_words 2" in short.text
        assert "min_words=5" in short.text


@pytest.mark.slow
def test_duplicates_are_shown_side_by_side_with_the_record_that_was_kept(
    root: Path, tmp_path: Path
):
    source = tmp_path / "in.jsonl"
    words = " ".join(f"word{n}" for n in range(60))
    texts = ["something else entirely that is here", f"{words} old", "another", f"{words} new"]
    texts += ["another"]
    rows = (json.dumps({"text": text, "id": n}) for n, text in enumerate(texts))
    source.write_text("".join(f"{one}\n" for one in rows))
    with pipeline("pairs") as ppl:
        ppl.exact = data.dedup.Exact()
        ppl.near = data.dedup.NearDuplicate(threshold=0.6)
    with pipeline("hashes") as other:
        other.near = data.dedup.SimHash(max_distance=12, blocks=13)
    other.materialize(source)
    ppl.materialize(source)
    with viewing(root) as viewer:
        exact = viewer.page("/dropped/pairs/exact")
        assert "line 5 is a duplicate of line 3" in exact.text
        for near in map(viewer.page, ["/dropped/pairs/near", "/dropped/hashes/near"]):
            assert "line 4 is a duplicate of line 2" in near.text
            assert {"old", "new"} <= {*near.marked("del"), *near.marked("ins")}


@pytest.mark.slow
@each("keep", ["first", "longest", "stars"])
def test_a_record_with_the_same_url_is_shown_beside_the_one_that_was_kept(
    root: Path, tmp_path: Path, keep: str
):
    source = tmp_path / "in.jsonl"
    texts, stars = ["a", "b", "ccc", "dddd", ""], [5, 1, 2, 3, 4]
    urls = ["http://a.b/c", "http://x.y/", "https://www.a.b/c?utm_id=1", "http://a.b/c#d", ""]
    rows = zip(texts, stars, urls, strict=True)
    lines = [json.dumps({"text": text, "stars": star, "url": url}) for text, star, url in rows]
    source.write_text("\n".join([*lines, lines[-1]]) + "\n")
    with pipeline(keep) as ppl:
        ppl.once = data.dedup.Url(keep=keep)
    ppl.materialize(source)
    kept, others = (4, (1, 3)) if keep == "longest" else (1, (3, 4))
    with viewing(root) as viewer:
        page = viewer.page(f"/dropped/{keep}/once")
    assert page.text.count("is a duplicate of") == 2
    for line in others:
        assert f"line {line} is a duplicate of line {kept}" in page.text


def test_failed_records_are_grouped_by_cause(viewer: Viewer):
    page = viewer.page(f"/failed/{KEPT}")
    causes = [cells[:2] for cells in page.rows[1:]]
    assert causes == [["ValueError", "30"], ["KeyError", "6"]]
    assert "line 5 ValueError" in page.text
    only = viewer.page(f"/failed/{KEPT}?group=1")
    assert "1 to 6 of 6" in only.text
    assert "line 5 ValueError" not in only.text
    assert viewer.page(f"/failed/{KEPT}?group=77").status == 200


@pytest.mark.slow
def test_a_record_is_followed_through_all_nodes(viewer: Viewer):
    page = viewer.page(f"/record/{KEPT}?line=1")
    assert page.marked("del") == ["brown"]
    assert page.marked("ins") == ["red"]
    steps = page.text.partition("Through the nodes")[2]
    assert ["judged" in steps, "long" in steps, "parts" in steps] == [True] * 3
    assert "in.jsonl, line 1" in steps
    dropped = viewer.page(f"/input/{KEPT}?input=0&line=4")
    assert "dropped: three & <b>more</b>" in dropped.text
    assert "failed: ValueError" in viewer.page(f"/input/{KEPT}?input=0&line=5").text
    assert viewer.page(f"/record/{KEPT}?line=999").status == 409
    assert viewer.page(f"/input/{KEPT}?input=3&line=1").status == 409


def test_each_output_of_a_node_has_its_records(viewer: Viewer):
    train = viewer.page("/records/looks/parts")
    test = viewer.page(f"{train.links['test']}")
    assert " of 264" not in train.text
    total = [int(page.text.partition("1 to 25 of ")[2].split()[0]) for page in (train, test)]
    assert sum(total) == 264
    assert viewer.page("/records/looks/parts?output=none").status == 409
    assert viewer.page("/record/looks/parts?output=test&line=2").status == 200


def test_partitions_and_nested_folders_have_pages_of_their_own(root: Path, source: Path):
    with config.temporary(data_process_path=root / "group"):
        judged().materialize(source)
    (root / "group" / "looks" / "judged").rename(root / "group" / "looks" / "moved")
    partition = root / "plain" / "partitions" / "2024-01 a"
    partition.mkdir(parents=True)
    with viewing(root) as viewer:
        page = viewer.page("/")
        assert "group/looks/moved / judged" in page.text
        assert viewer.page("/records/group/looks/moved/judged").status == 200


def test_distributions_tell_what_they_are_of(viewer: Viewer):
    page = viewer.page(f"/numbers/{KEPT}")
    assert "Of all 264 records." in page.text
    assert "median" in page.text
    assert "greatest 299" in page.text
    assert viewer.page(f"/numbers/{KEPT}?all=1").text.count("Of all 264 records.") == 1


def test_changes_are_marked_word_by_word(viewer: Viewer):
    page = viewer.page(f"/changes/{KEPT}")
    assert set(page.marked("del")) == {"brown"}
    assert set(page.marked("ins")) == {"red"}
    assert f"of {COUNT - 36} records that were compared" in page.text


@pytest.mark.slow
def test_an_empty_root_says_so_and_shows_a_run_that_comes_later(root: Path, source: Path):
    root.mkdir()
    with viewing(root) as viewer:
        assert "Nothing is published" in viewer.page("/").text
        judged().materialize(source)
        while "judged" not in viewer.page("/").text:
            pass
        assert viewer.page(f"/records/{KEPT}").status == 200


def test_a_node_without_a_result_says_why(root: Path, source: Path):
    judged().materialize(source)
    (root / "looks" / "long" / "long_results.jsonl.json").unlink()
    (root / "looks" / "long" / "checkpoints").mkdir()
    with viewing(root) as viewer:
        assert viewer.page("/").status == 200
        assert viewer.page("/records/looks/long").status == 404


def test_a_result_that_was_replaced_is_shown_with_the_numbers_of_its_own_lines(
    root: Path, source: Path
):
    judged().materialize(source)
    result = root / KEPT / "judged_results.jsonl"
    with viewing(root) as viewer:
        assert numbers_of(viewer.page(f"/records/{KEPT}?from=201"))[0] == "201"
        rows = b"".join(orjson.dumps({"new": n}) + b"\n" for n in range(1000))
        result.with_suffix(".draft").write_bytes(rows)
        result.with_suffix(".draft").replace(result)
        page = viewer.page(f"/records/{KEPT}?from=201")
        assert [cells[:2] for cells in page.rows[1:3]] == [["201", "200"], ["202", "201"]]
        assert "is not the one that the run published" in page.text
        assert "of 1,000" in page.text
        result.unlink()
        gone = viewer.page(f"/records/{KEPT}")
        assert gone.status == 409
        assert "there is no such file" in gone.text


def test_lines_that_are_no_records_or_very_long_are_bounded(root: Path, source: Path):
    judged().materialize(source)
    result = root / KEPT / "judged_results.jsonl"
    long = b'{"text": "' + b"x" * (3 << 20) + b'"}'
    lines = [
        b'{"n": 1}',
        b"\xff\xfe not UTF-8",
        b"",
        b"[1, 2]",
        long,
        b"  ",
        b'{"n": 12345678901234567890123}',
    ]
    result.write_bytes(b"\n".join([*lines, b'{"last": true}']))
    with viewing(root) as viewer:
        page = viewer.page(f"/records/{KEPT}")
        assert numbers_of(page)[:3] == ["1", "2", "4"]
        assert numbers_of(page)[-1] == "8"
        assert "3,145,740 bytes" in page.text
        assert len(page.source) < 100_000
        whole = viewer.page(f"/record/{KEPT}?line=5")
        assert len(whole.source) < 200_000
        assert "its beginning is shown" in whole.text
        assert viewer.page(f"/records/{KEPT}?q=true").text.count("1 found") == 1
        assert numbers_of(viewer.page(f"/records/{KEPT}?from=6")) == ["8"]


@each(
    "path",
    [
        f"/records/{KEPT}?from=201",
        f"/records/{KEPT}?q=fox",
        f"/record/{KEPT}?line=1",
        f"/input/{KEPT}?input=0&line=4",
        f"/dropped/{KEPT}",
        f"/failed/{KEPT}",
        f"/numbers/{KEPT}?all=1",
    ],
)
def test_every_page_names_the_error_of_a_file_that_cannot_be_indexed(
    viewer: Viewer, monkeypatch: pytest.MonkeyPatch, path: str
):
    def failing(*_: object, **__: object) -> None:
        raise OSError("the disk is broken")

    monkeypatch.setattr(
        "dagster_dataops.pipelines.view.records.line_starts.LineStarts.made", failing
    )
    page = viewer.page(path)
    assert "the disk is broken" in page.text
    assert "No record" not in page.text


def test_a_result_in_parts_is_read_like_one_file(root: Path, source: Path):
    judged().materialize(source)
    put_in_parts(NodeFolder(root / KEPT, "judged"), 100)
    with viewing(root) as viewer:
        page = viewer.page(f"/records/{KEPT}?from=99")
        assert numbers_of(page)[:3] == ["99", "100", "101"]
        assert len(numbers_of(viewer.page(f"/records/{KEPT}?q=fox+217+"))) == 1


def test_an_artefact_shows_its_files(root: Path, source: Path):
    class Lines(data_register.new_group("looked_at_artefacts")):
        def build(self, records, folder: Path) -> None:
            (folder / "lines.txt").write_text(str(sum(1 for _ in records)))

    with pipeline("built") as ppl:
        ppl.lines = Lines()
    ppl.materialize(source)
    with viewing(root) as viewer:
        assert "lines.txt" in viewer.page("/records/built/lines").text
        assert "It is not known which records" in viewer.page("/dropped/built/lines").text


@pytest.mark.slow
def test_a_pipeline_in_a_file_is_shown_with_the_nodes_that_were_not_run(tmp_path: Path, root: Path):
    file = tmp_path / "looked_definitions.py"
    file.write_text(
        "from dagster_dataops import data, pipeline\n"
        "with pipeline('filed') as ppl:\n"
        "    ppl.clean = data.text.Normalize()\n"
        "    ppl.long = data.filters.WordCount()\n"
    )
    with viewing(f"{file}:ppl") as viewer:
        assert viewer.page("/").rows == []
        (root / "filed").mkdir(parents=True)
        while not (rows := viewer.page("/").rows):
            pass
        assert [row[:2] for row in rows[1:]] == [["clean", "not run"], ["long", "not run"]]


def test_results_in_a_bucket_are_shown(source: Path):
    with config.temporary(data_process_path="memory://viewed/prefix"):
        judged().materialize(source)
    with viewing("memory://viewed/prefix") as viewer:
        assert "looks / judged" in viewer.page("/").text
        assert numbers_of(viewer.page(f"/records/{KEPT}?from=201"))[0] == "201"
        assert len(numbers_of(viewer.page(f"/records/{KEPT}?q=fox+217+"))) == 1
        assert viewer.page("/records/looks/parts/test").status == 200
        assert numbers_of(viewer.page(f"/dropped/{KEPT}"))[:2] == ["4", "14"]

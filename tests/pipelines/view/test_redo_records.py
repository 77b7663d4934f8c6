"""Tests of the view: the condition that processes the records of a page again."""

import base64
import hashlib
import json
import random
import re
import shlex
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from dagster_dataops import Drop, config, data, data_register, pipeline
from tests.each import each
from tests.pipelines.view.conftest import judged
from tests.viewed_pages import Page, Viewer, viewing

data_register.new_group("redone_page")
CALLED: list[int] = []
RECORDS = 40
NODE = "pages/redone"
REASON = 'it\'s \\ too "long" é <b>'


@data_register("data.redone_page", _concurrency_mode="single", _stop_after_failures=0)
def act(record: dict[str, Any]) -> Any:
    """Drop, fail, and change, by the number of the record."""
    number = record["n"]
    CALLED.append(number)
    if number % 8 == 1:
        return Drop(REASON) if number % 16 == 1 else []
    if number % 8 == 2:
        raise ValueError(f"page {number} of 'a.pdf' is (bad)" if number % 16 == 2 else "no page")
    if number % 8 == 3:
        raise KeyError(f"column {number}")
    columns = {
        "mixed": [None, True, "true", 5, "5", 5.5, [1]][number % 7],
        "a.b": number,
        "meta": {"lang": "EN" if number % 2 else "de (CH)", "`odd`": number},
    }
    return {**record, **columns, **({"late": number} if number > 30 else {})}


@pytest.fixture
def shown(root: Path, tmp_path: Path) -> Path:
    """The source of a result that is shown."""
    source = tmp_path / "in.jsonl"
    source.write_text("".join(f'{{"n":{n},"name":"Record {n}"}}\n' for n in range(RECORDS)))
    run(source)
    return source


def run(source: Path, **resume: Any) -> None:
    with pipeline("pages") as ppl:
        ppl.redone = act()
    with config.temporary(**resume):
        ppl.materialize(source)


def copied(page: Page) -> dict[str, str]:
    """Return the texts to copy, by the beginning of their titles."""
    titles = re.findall(r'<p id="redo-title-\d+">(.*?)[,;:]', page.source)
    texts = re.findall(r'<pre id="redo-\d+"[^>]*>(.*?)</pre>', page.source, re.DOTALL)
    return dict(zip(titles, map(unescape, texts), strict=True))


def chosen_by(text: str) -> dict[str, str]:
    """Return the value of the variable that a command sets."""
    name, _, value = shlex.split(text)[0].partition("=")
    assert name == "DATAOPS_DATA_PROCESS_RESUME"
    chosen: dict[str, str] = json.loads(value)
    return chosen


def searched(*conditions: tuple[str, str, str]) -> str:
    pairs = [
        pair for one in conditions for pair in zip(("column", "is", "value"), one, strict=True)
    ]
    return f"/records/{NODE}?rows=100&{urlencode(pairs)}"


def lines_of(page: Page, column: str) -> list[int]:
    """Return the numbers in a column of the table."""
    at = page.rows[0].index(column)
    return [int(row[at].replace(",", "")) for row in page.rows[1:]]


SEARCHES: Sequence[Sequence[tuple[str, str, str]]] = [
    [("n", "is", "12")],
    [("n", "is at least", "12.5"), ("n", "is at most", "20")],
    [("name", "contains", "RECORD 2")],
    [("name", "contains", "4")],
    [("name", "is", "Record 7")],
    [("name", "is not", "Record 7")],
    [("mixed", "is", "true")],
    [("mixed", "is", "5")],
    [("mixed", "is", "5.50")],
    [("mixed", "is not", "5")],
    [("mixed", "is missing", "")],
    [("mixed", "is there", "")],
    [("late", "is missing", "")],
    [("late", "is there", "")],
    [("a.b", "is at least", "30")],
    [("meta.lang", "contains", "de (c")],
    [("meta.lang", "is", "de (CH)"), ("name", "contains", "record")],
]


@pytest.mark.slow
def test_the_records_that_a_search_shows_are_those_that_are_processed_again(shown: Path):
    for search in SEARCHES:
        with viewing(config.data_process_path) as viewer:
            page = viewer.page(searched(*search))
        assert page.rows, search
        assert "Redo the records of this search" in page.text
        wanted = lines_of(page, "n")
        CALLED.clear()
        run(shown, data_process_resume=chosen_by(copied(page)["On the command line"]))
        assert wanted == CALLED, search


FILTERS = {
    "all dropped": (f"/dropped/{NODE}", lambda n: n % 8 == 1),
    "a reason": (
        f"/dropped/{NODE}?{urlencode({'reason': REASON})}",
        lambda n: n % 16 == 1,
    ),
    "no reason": (f"/dropped/{NODE}?reason=", lambda n: n % 16 == 9),
    "all failed": (f"/failed/{NODE}", lambda n: n % 8 in {2, 3}),
}


def test_the_records_of_a_reason_or_a_cause_are_processed_again(shown: Path):
    filters = dict(FILTERS)
    with viewing(config.data_process_path) as viewer:
        page = viewer.page(f"/failed/{NODE}")
        for group in range(len(page.rows) - 1):
            group_page = viewer.page(f"/failed/{NODE}?group={group}")
            numbers = {int(n) for n in re.findall(r"&#34;n&#34;:(\d+)", group_page.source)}
            assert numbers
            filters[f"group {group}"] = (f"/failed/{NODE}?group={group}", numbers.__contains__)
    for name, (address, holds) in filters.items():
        with viewing(config.data_process_path) as viewer:
            texts = copied(viewer.page(address))
        CALLED.clear()
        chosen = chosen_by(texts["On the command line"])
        run(shown, data_process_resume=chosen)
        assert [n for n in range(RECORDS) if holds(n)] == CALLED, (name, chosen)
        launchpad = texts["In the launchpad"].removeprefix("resume: {records: ").removesuffix("}")
        assert json.loads(launchpad) == chosen["records"]


NO_CONDITION = {
    "any column": (f"/records/{NODE}?q=record", "a condition names its columns"),
    "a list": (searched(("mixed", "is", "[1]")), "compare no lists"),
    "null": (searched(("mixed", "is", "null")), "use `is missing`"),
    "a backquote": (searched(("meta.`odd`", "is at least", "0")), "cannot be written"),
    "an empty text": (searched(("name", "contains", "")), "use `is there`"),
}


@each("name", NO_CONDITION)
def test_a_filter_that_no_condition_expresses_says_why(name: str, shown: Path):
    address, reason = NO_CONDITION[name]
    with viewing(config.data_process_path) as viewer:
        page = viewer.page(address)
    assert "These records cannot be chosen to be processed again: " in page.text
    assert reason in page.text
    assert "<script" not in page.source


def test_records_that_cannot_be_processed_one_by_one_say_why(root: Path, tmp_path: Path):
    source = tmp_path / "in.jsonl"
    source.write_text('{"text":"a"}\n{"text":"a"}\n{"text":"b"}\n')
    with pipeline("untraced") as other:
        other.upper = data.text.Normalize(input_key="text", _trace=False)
    other.materialize(source)
    with viewing(root) as viewer:
        page = viewer.page("/records/untraced/upper?column=text&is=is&value=a")
    assert "_trace=False" in page.text


def test_an_output_of_several_says_that_conditions_read_all(viewer: Viewer):
    page = viewer.page("/records/looks/parts?column=n&is=is+at+least&value=0")
    assert "conditions read the lines of all outputs" in page.text


def test_records_without_a_filter_are_not_offered(viewer: Viewer):
    assert "redo-1" not in viewer.page("/records/looks/judged").source


def test_a_result_of_dagster_shows_the_command_for_its_asset(root: Path, source: Path):
    judged().materialize(source)
    path = root / "looks/judged/judged_results.jsonl.json"
    manifest = path.read_text()
    run_id = json.loads(manifest)["run"]
    path.write_text(manifest.replace(run_id, "5b3f7cb0-1111-4222-8333-123456789abc"))
    with viewing(root) as viewer:
        page = viewer.page("/dropped/looks/judged?reason=three+%26+%3Cb%3Emore%3C%2Fb%3E")
    assert shlex.split(copied(page)["On the command line"]) == [
        *["python", "-m", "dagster_dataops", "run", "looks/judged", "-m", "MODULE"],
        *["--redo-records", "drop_reason == 'three & <b>more</b>'"],
    ]


def test_only_the_script_that_copies_may_run(viewer: Viewer):
    page = viewer.page("/dropped/looks/judged")
    (script,) = page.marked("script")
    assert "clipboard" in script
    digest = base64.b64encode(hashlib.sha256(unescape(script).encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page.headers["content-security-policy"]


@data_register("data.redone_page", _concurrency_mode="single", _stop_after_failures=0)
def refuse(record: dict[str, Any]) -> Any:
    """Fail with a message of the record."""
    CALLED.append(record["n"])
    raise ValueError(record["message"])


@pytest.mark.slow
def test_a_cause_with_any_message_has_a_condition_for_it_alone(root: Path, tmp_path: Path):
    chance = random.Random(3)
    pieces = ["row ", "12", "3.5", "'x'", '"q"', "`t`", "{a", "0xff", "\n", "(", "*", "[", "\\"]
    pieces += ["|", "^", "$", "é", "…", "don't ", "a longer text of a message " * 4]
    messages = ["".join(chance.choices(pieces, k=chance.randrange(1, 7))) for _ in range(30)]
    source = tmp_path / "in.jsonl"
    source.write_text(
        "".join(f"{json.dumps({'n': n, 'message': one})}\n" for n, one in enumerate(messages))
    )
    with pipeline("messages") as ppl:
        ppl.refuse = refuse()
    ppl.materialize(source)
    with viewing(root) as viewer:
        for group in range(30):
            page = viewer.page(f"/failed/messages/refuse?group={group}&rows=100")
            lines = [int(line) - 1 for line in re.findall(r'record of line (\d+)"', page.source)]
            if not lines:
                break
            CALLED.clear()
            chosen = chosen_by(copied(page)["On the command line"])
            with config.temporary(data_process_resume=chosen):
                ppl.materialize(source)
            assert lines == CALLED or "begins in the same way" in page.text, chosen
    assert group > 5

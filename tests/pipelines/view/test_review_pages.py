"""Tests of the pages on which people decide about records."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import File, config, data, data_register, pipeline
from dagster_dataops.errors import ConfigurationError, RunStoppedError, RunWaitingError
from tests.each import each
from tests.viewed_pages import Page, Viewer, viewing

HOSTILE = '<script>document.title="broken"</script>'
RECORDS = [{"n": n, "text": f"text {n}\r\nof {HOSTILE}", "size": n / 2} for n in range(4)]
PATH = "/review/asked/ask"
SAVED = "decided-in-view.jsonl"


def asked(**options: Any) -> Any:
    """Return a pipeline whose node asks."""
    choices = ["keep", "drop", "unsure & odd"]
    with pipeline("asked") as ppl:
        ppl.ask = data.review.Ask(
            ["text", "size"],
            choices,
            **{"edit": ["text", "size"], "instructions": "Good?"} | options,
        )
    return ppl


def waits(ppl: Any, records: Any = RECORDS) -> None:
    with pytest.raises(RunWaitingError):
        ppl(records)


@pytest.fixture
def folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a review that waits."""
    monkeypatch.setattr(config, "data_process_resume", True)
    waits(asked())
    return root / "asked" / "ask" / "review"


@pytest.fixture
def viewer(folder: Path, root: Path) -> Iterator[Viewer]:
    with viewing(root, []) as found:
        yield found


def field(page: Page, name: str) -> str:
    """Return the value of a field of the form."""
    values = [of.get("value") for tag, of in page.tags if tag == "input" and of.get("name") == name]
    return values[-1] or ""


def form_of(page: Page, decision: str, **changed: str) -> dict[str, str]:
    """Return a form as a browser sends it."""
    texts = page.source.split('<textarea name="')[1:]
    shown = {
        text.partition('"')[0]: text.partition(">\n")[2].partition("</textarea>")[0]
        for text in texts
    }
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&#34;", '"'), ("&amp;", "&")):
        shown = {name: text.replace(entity, character) for name, text in shown.items()}
    sent = {name: text.replace("\r", "").replace("\n", "\r\n") for name, text in shown.items()}
    hidden = {name: field(page, name) for name in ("id", "reviewer")}
    return {**hidden, **sent, "comment": "", "decision": decision, **changed}


def saved(folder: Path) -> list[tuple[str, Any]]:
    """Return decision and changes of each line that was saved."""
    lines = map(orjson.loads, (folder / SAVED).read_bytes().splitlines())
    return [(line["decision"], line["edited"]) for line in lines]


def test_decisions_of_the_page_are_taken_by_the_next_run_and_change_what_was_changed(
    viewer: Viewer, folder: Path
):
    page = viewer.page(PATH)
    assert "4 of 4 questions open" in page.text
    assert "Good?" in page.text
    page = viewer.send(PATH, form_of(page, "keep"))
    assert "Saved: keep" in page.text
    page = viewer.send(PATH, form_of(page, "drop", comment="why & <how>"))
    page = viewer.send(PATH, form_of(page, "keep", **{"edited:text": "a\r\nb", "edited:size": "7"}))
    assert "with 2 changes" in page.text
    waits(asked())
    page = viewer.send(PATH, form_of(page, "unsure & odd"))
    assert "Nothing is open here" in page.text
    assert saved(folder)[2] == ("keep", {"text": "a\nb", "size": 7})

    assert list(asked()(RECORDS)) == [
        {**RECORDS[0], "review": "keep"},
        {**RECORDS[2], "text": "a\nb", "size": 7, "review": "keep"},
        {**RECORDS[3], "review": "unsure & odd"},
    ]
    assert "No run waits for a decision" in viewer.page(PATH).text


def test_a_decision_is_changed_and_taken_back_until_a_run_has_taken_it(
    viewer: Viewer, folder: Path
):
    page = viewer.page(PATH)
    first = field(page, "id")
    viewer.send(PATH, form_of(page, "keep"))
    page = viewer.page(f"{PATH}?id={first}")
    assert "Decision; now keep" in page.text
    page = viewer.send(PATH, form_of(page, "drop", **{"edited:size": "9"}))
    assert saved(folder) == [("drop", {"size": 9})]
    page = viewer.page(f"{PATH}?id={first}")
    assert form_of(page, "")["edited:size"] == "9"
    assert "Taken back" in viewer.send(PATH, form_of(page, "")).text
    assert saved(folder) == []

    viewer.send(PATH, form_of(viewer.page(f"{PATH}?id={first}"), "drop"))
    waits(asked())
    assert "A run has taken it" in viewer.page(f"{PATH}?id={first}").text
    refused = viewer.send(PATH, form_of(page, "keep"))
    assert refused.status == 422
    assert "Not saved: 'drop' was decided in" in refused.text
    assert saved(folder) == [("drop", {})]


@each(
    "case",
    [
        ({"decision": "other"}, "'other' is none of the choices: keep, drop, unsure & odd"),
        ({"decision": ""}, "choose a decision"),
        ({"edited:size": "x"}, "the new value of 'size' must be a float"),
        ({"edited:n": "1"}, "changes 'n'; reviewers may change text, size"),
        ({"id": "q123"}, "no question has the id 'q123'"),
        ({"id": ""}, "no question has the id ''"),
    ],
)
def test_what_no_file_of_decisions_may_hold_is_refused_and_what_was_written_stays(
    viewer: Viewer, folder: Path, case: Any
):
    changed, reason = case
    page = viewer.page(PATH)
    form = form_of(page, "keep", **{"edited:text": "mine", "comment": "my words"}) | changed
    refused = viewer.send(PATH, form)
    assert refused.status in {404, 422}
    assert not (folder / SAVED).exists()
    if "id" not in changed:
        assert f"Not saved: {reason}" in refused.text
        assert ">\nmine</textarea>" in refused.source
        assert field(refused, "comment") == "my words"


@each("origin", ["http://evil.example", "null", "", "https://localhost", "http://localhost:1"])
def test_forms_of_other_sites_change_nothing(viewer: Viewer, folder: Path, origin: str):
    form = form_of(viewer.page(PATH), "keep")
    assert viewer.send(PATH, form, origin=origin).status == 403
    assert viewer.send(PATH, form, host="evil.example", origin="http://evil.example").status == 403
    assert viewer.client.post(PATH, data=form).status_code == 403
    assert viewer.send("/records/asked/ask", form).status == 405
    assert not (folder / SAVED).exists()


def test_without_the_option_the_view_takes_no_decision(folder: Path, root: Path):
    with viewing(root) as viewer:
        assert viewer.page(PATH).status == 404
        assert viewer.send(PATH, {"id": "q", "decision": "keep"}).status == 405
        assert "Reviews" not in viewer.page("/").text
    with viewing(root, []) as viewer:
        assert viewer.page("/").links["Reviews: records to decide about"] == "/reviews"
        assert viewer.page("/reviews").rows[1:] == [["asked/ask", "4", "4"]]
        assert viewer.page("/review/asked/other").status == 404
        assert viewer.page(f"{PATH}?id=q1").status == 404


def test_several_reviewers_decide_for_themselves(root: Path, folder: Path):
    ppl = asked(agreement=2, instructions="Two!")
    waits(ppl)
    with viewing(root, []) as viewer:
        page = viewer.page(PATH)
        assert "Give your name first" in page.text
        for reviewer in ("ann", "bob "):
            for decision in ("keep", "drop", "keep", "keep"):
                page = viewer.page(f"{PATH}?reviewer={reviewer}")
                viewer.send(PATH, form_of(page, decision))
            assert (
                "0 of 4 questions open for you" in viewer.page(f"{PATH}?reviewer={reviewer}").text
            )
    assert len(list(ppl(RECORDS))) == 3
    assert len(saved(folder)) == 8


def test_a_question_that_was_skipped_comes_again_after_the_others(viewer: Viewer):
    page = viewer.page(PATH)
    first, skipped = field(page, "id"), viewer.page(page.links["Skip"])
    assert field(skipped, "id") != first
    for _ in range(3):
        skipped = viewer.send(PATH, form_of(skipped, "keep"))
    assert field(skipped, "id") == first


def test_decisions_of_several_pages_at_once_are_all_saved(viewer: Viewer, folder: Path):
    page = viewer.page(PATH)
    forms = [form_of(page, "keep")]
    while len(forms) < 4:
        page = viewer.page(f"{PATH}?after={field(page, 'id')}")
        forms.append(form_of(page, "keep"))
    pages: list[Page] = []
    threads = [
        threading.Thread(target=lambda form=form: pages.append(viewer.send(PATH, form)))
        for form in forms
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [page.status for page in pages] == [200] * 4
    assert len(saved(folder)) == 4
    assert len(list(asked()(RECORDS))) == 4


def test_a_damaged_file_is_named_and_nothing_is_saved(viewer: Viewer, folder: Path):
    page = viewer.page(PATH)
    (folder / "other.csv").write_text("nothing\n")
    assert "takes no decision until this file is corrected" in viewer.page(PATH).text
    (folder / SAVED).write_text("{")
    refused = viewer.send(PATH, form_of(page, "keep"))
    assert refused.status == 409
    assert "correct the file" in refused.text
    assert (folder / SAVED).read_text() == "{"
    with pytest.raises(RunStoppedError):
        asked()(RECORDS)
    (folder / "state" / "waiting.json").write_text("{")
    assert "is damaged" in viewer.page("/reviews").text
    assert viewer.page(PATH).status == 409


def test_a_damaged_review_is_listed_beside_the_others(root: Path, folder: Path):
    with pipeline("more") as ppl:
        ppl.ask = data.review.Ask("text")
    waits(ppl)
    (folder / "state" / "waiting.json").write_text("{")
    with viewing(root, []) as viewer:
        rows = sorted(viewer.page("/reviews").rows[1:])
    assert [row[0] for row in rows] == ["asked/ask", "more/ask"]
    assert "is damaged" in rows[0][1]
    assert rows[1][1:] == ["4", "4"]
    (root / "more" / "ask" / "review" / "state" / "waiting.json").write_text("{")
    with viewing(root, []) as viewer:
        assert len(viewer.page("/reviews").rows[1:]) == 2


def test_reviews_in_another_folder_are_found(root: Path, tmp_path: Path, folder: Path):
    waits(asked(to=str(tmp_path / "to"), instructions="There?"))
    with viewing(root, [str(tmp_path / "to")]) as viewer:
        names = [row[0] for row in viewer.page("/reviews").rows[1:]]
        assert names == ["asked/ask", "to/asked/ask"]
        viewer.send("/review/to/asked/ask", form_of(viewer.page("/review/to/asked/ask"), "drop"))
    assert saved(tmp_path / "to" / "asked" / "ask") == [("drop", {})]
    with pytest.raises(ConfigurationError, match="--review-in"), viewing(root, ["/no/folder"]):
        pass


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108020000009077"
    "53de0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)


def test_files_of_a_question_are_shown_and_no_others(root: Path, folder: Path):
    data_register.new_group("drawn_for_review")

    @data_register("data.drawn_for_review")
    def draw(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "picture": File(PNG, "image/png"), "pictures": ["x", record["secret"]]}

    with pipeline("drawn") as ppl:
        ppl.draw = draw()
        ppl.ask = data.review.Ask(["picture", "pictures"])
    secret = root / "secret.txt"
    secret.write_text("hidden")
    waits(ppl, [{"secret": {"file": str(secret)}}])
    with viewing(root, []) as viewer:
        page = viewer.page("/review/drawn/ask")
        (link,) = (of["src"] for tag, of in page.tags if tag == "img")
        assert link is not None
        whole = viewer.client.get(link.partition("&thumbnail")[0])
        assert whole.headers["content-type"] == "image/png"
        assert whole.content == PNG
        other = f"/review-file/drawn/ask?id={field(page, 'id')}&column=pictures&at=1"
        assert viewer.page(other).status == 404
        assert "hidden" not in viewer.page(other).source
        assert viewer.page("/review-file/drawn/ask?id=q&column=picture").status == 404

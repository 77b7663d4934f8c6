"""Killed runs of pages that are drawn and read by a model: none is lost, none is paid twice."""

import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.crashing import Script
from tests.library.documents.made_files import pdf
from tests.models.odd_server import Sent, chat_reply, odd_server

PAGES = 8
KILLS = (1, 5, 8)  # the requests that the server holds back; then the run is killed

CODE = """
from dagster_dataops import ModelClient, config, data, pipeline

config.data_process_path = HOME / "results"
config.data_process_resume = True
config.clients["default"] = ModelClient(base_url=sys.argv[1], api_key="none")
with pipeline("scans") as ppl:
    ppl.pages = data.documents.Pages()
    ppl.drawn = data.documents.ToImage(dpi=30)
    ppl.read = data.llm.ReadPage("image", model="m", _max_workers=1)
    ppl.joined = data.documents.Join()
[joined] = ppl([{"file": str(HOME / "scan.pdf")}])
(HOME / "text").write_text(joined["text"])
"""


class Pages:
    """Answers with the number of each picture; holds some requests back."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.answered: Counter[int] = Counter()
        self.held = threading.Event()
        self.killed = threading.Event()
        self.kills = list(KILLS)

    def answer(self, sent: Sent) -> object:
        content = sent.body["messages"][-1]["content"]
        (picture,) = (part["image_url"]["url"] for part in content if part["type"] == "image_url")
        number = self.numbers.setdefault(picture, len(self.numbers) + 1)
        if self.kills and number == self.kills[0]:
            self.kills.pop(0)
            self.held.set()
            self.killed.wait(60)
            raise ConnectionError  # the client is gone: nothing is answered, nothing is paid
        self.answered[number] += 1
        return chat_reply(f"page {number}")


@pytest.mark.slow
def test_a_killed_run_loses_no_page_and_pays_none_twice(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    pdf(tmp_path / "scan.pdf", [f"# {number}" for number in range(PAGES)])
    script = Script(tmp_path, CODE)
    pages = Pages()
    with odd_server() as server:
        server.answer = pages.answer
        for _ in KILLS:
            with script.start(server.address) as process:
                assert pages.held.wait(20), script.output()
                pages.held.clear()
                process.kill()
                process.wait(30)
            pages.killed.set()
            pages.killed.clear()
        script.finish(server.address)
    text = (tmp_path / "text").read_text()
    assert [text.count(f"page {number}\n") for number in range(1, PAGES)] == [1] * (PAGES - 1)
    assert pages.answered == Counter(range(1, PAGES + 1))

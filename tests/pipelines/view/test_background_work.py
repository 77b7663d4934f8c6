"""Tests of pages beside work in the background: they wait once, and the work gives way."""

import threading
import time
from typing import Any

from dagster_dataops.pipelines.view.records.background_work import BackgroundWork, BackgroundWorks
from tests.faults.crashing import wait_until


def test_a_page_waits_for_all_its_work_no_longer_than_for_one():
    works, ended = BackgroundWorks(), threading.Event()
    begun = time.monotonic()
    with works.pages.making():
        found = [
            works.begun(number, lambda _: ended.wait(60), 5.0, urgent=True) for number in range(20)
        ]
    seconds = time.monotonic() - begun
    assert not any(work.ready for work in found)
    assert seconds < 20  # twenty waits would take a hundred seconds
    ended.set()


def test_other_threads_wait_as_long_as_they_ask():
    works = BackgroundWorks()
    with works.pages.making():
        waited: list[Any] = []
        thread = threading.Thread(
            target=lambda: waited.append(works.begun("work", lambda _: time.sleep(0.3), 30.0).ready)
        )
        thread.start()
        thread.join()
    assert waited == [True]


def test_work_pauses_while_a_page_is_made_and_goes_on_meanwhile_nevertheless():
    works = BackgroundWorks()
    stop = threading.Event()

    def count(work: BackgroundWork) -> None:
        while not stop.is_set():
            work.advance(work.done + 1, 1 << 60)

    work = works.begun("work", count, 0)
    begun = time.monotonic()
    before = work.done
    wait_until(lambda: work.done > before + 1000, 30, "the work")
    free = (work.done - before) / (time.monotonic() - begun)
    with works.pages.making():
        begun, before = time.monotonic(), work.done
        wait_until(lambda: time.monotonic() > begun + 0.5, 30, "some time")
        beside = (work.done - before) / (time.monotonic() - begun)
        assert work.done > before  # however long the page takes
    stop.set()
    assert work.wait(30)
    assert beside < free


def test_work_with_a_part_of_its_result_is_shown_at_once():
    works, ended = BackgroundWorks(), threading.Event()

    def find(work: BackgroundWork) -> None:
        work.result = ["first"]
        ended.wait(60)

    work = works.begun("search", find, 0)
    wait_until(lambda: work.result is not None, 30, "a part of the result")
    begun = time.monotonic()
    assert works.begun("search", find, 30.0).result == ["first"]
    assert time.monotonic() - begun < 15
    ended.set()

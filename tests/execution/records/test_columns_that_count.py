"""Outcomes are kept for records whose columns that count have not changed, and for no others."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import Drop, JsonlDataset, chain, data
from dagster_dataops.data import data_register
from tests.each import each
from tests.execution.helpers import node, run, write_input
from tests.library.llm.scripted_model import ScriptedModel
from tests.nodes import ResumePolicy

Rows = list[dict[str, Any]]
GROUP = "data.counting_columns"
CALLS: list[Any] = []


@data_register(GROUP, reads=["text"], _reuse_outcomes=True)
def displayed(record, log):
    noted(log)
    return {**record, "size": len(record["text"])}


@data_register(GROUP, reads=["text"], _reuse_outcomes=True)
def in_place(record, log):
    noted(log)
    record["text"] = record["text"].upper()
    record["size"] = len(record["text"])


@data_register(GROUP, reads="observed", _reuse_outcomes=True)
def observed(record, log):
    noted(log)
    if len(record["text"]) > 9 and record.get("lang") == "de":
        return Drop("long")
    return [record | {"part": part} for part in range(len(record["text"]) % 3 + 1)]


@data_register(GROUP, reads="observed", _reuse_outcomes=True)
async def observed_async(record, log):
    noted(log)
    return record | {"size": len(record["text"])}


@data_register(GROUP, _reuse_outcomes=True)
def undeclared(record, log):
    noted(log)
    return record | {"size": len(record["text"])}


@data_register(GROUP, reads="observed", _reuse_outcomes=True)
def written_by_c(record, log):
    noted(log)
    return {"text": record["text"], "json": orjson.dumps(record).decode()}


@data_register(GROUP, reads=["text"], _reuse_outcomes=True)
def careless(record, log):
    noted(log)
    return record | {"size": len(record["text"]), "lang": record.get("lang", "en")}


def noted(log: str) -> None:
    with Path(log).open("a", encoding="utf-8") as file:
        file.write("1\n")


RECORDS: Rows = [{"id": n, "text": f"text {n * 37}", "tags": [n]} for n in range(24)]
CHANGES: dict[str, Callable[[Rows], Rows]] = {
    "a column added": lambda rows: [{**row, "added": n} for n, row in enumerate(rows)],
    "a column added in front": lambda rows: [{"added": None, **row} for row in rows],
    "a value changed": lambda rows: [{**row, "tags": {"a": row["id"]}} for row in rows],
    "a column removed": lambda rows: [without(row, "tags") for row in rows],
    "keys in another order": lambda rows: [dict(reversed(row.items())) for row in rows],
    "records in another order": lambda rows: rows[::-1],
}


def without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


class Node:
    """The folder of an operator, and the number of its calls in the latest run."""

    def __init__(self, path: Path, operator: Any, mode: str = "single", **options: Any) -> None:
        path.mkdir(exist_ok=True)
        self._path, self._operator = path, operator
        self._log = path / "calls.txt"
        settings = {"_concurrency_mode": mode, "_max_workers": 2}
        self._options = {"log": str(self._log)} | settings | options

    def run(self, rows: Rows | bytes, folder: str = "kept") -> bytes:
        """Return the result for rows, or for the lines of a file."""
        self._log.unlink(missing_ok=True)
        path = self._path / f"{folder}.jsonl"
        if isinstance(rows, bytes):
            path.write_bytes(rows)
            dataset = JsonlDataset.of_file(path)
        else:
            dataset = write_input(path, rows)
        run(
            self._operator(**self._options),
            dataset,
            node(self._path / folder),
            resume=ResumePolicy.AUTO,
        )
        return node(self._path / folder).result.read_bytes()

    @property
    def calls(self) -> int:
        return self._log.read_text().count("\n") if self._log.exists() else 0

    def check(self, rows: Rows | bytes, calls: int) -> None:
        """Check the result of a run, by one without kept outcomes, and the number of its calls."""
        result = self.run(rows)
        assert self.calls == calls
        self._number = getattr(self, "_number", 0) + 1
        assert result == self.run(rows, f"anew {self._number}")


_KNOWN = {one.__name__: one for one in (displayed, in_place, observed, observed_async)}
_ASYNC = {"observed_async": "async"}


@pytest.mark.slow
@each("name", _KNOWN)
def test_a_column_that_does_not_count_costs_no_call(tmp_path: Path, name: str) -> None:
    this = Node(tmp_path / name, _KNOWN[name], _ASYNC.get(name, "thread"))
    this.run(RECORDS)
    for change in CHANGES.values():
        this.check(change(RECORDS), 0)
    spaced = "".join(f" {json.dumps(row, indent=None)}\r\n" for row in RECORDS)
    this.check(spaced.encode(), 0)


@pytest.mark.parametrize("mode", ["single", "process"])
def test_it_costs_no_call_in_any_mode(tmp_path: Path, mode: str) -> None:
    this = Node(tmp_path / "node", observed, mode)
    this.run(RECORDS)
    this.check(CHANGES["a column added"](RECORDS[::-1]), 0)


def test_new_records_and_records_whose_columns_count_are_called(tmp_path: Path) -> None:
    this = Node(tmp_path / "node", displayed)
    this.run(RECORDS)
    changed = [row | {"text": "other"} if row["id"] in {3, 9} else row for row in RECORDS]
    this.check([{"id": -1, "text": "first"}, *changed, {"text": "last"}], 4)


def test_a_chain_of_known_parts_counts_what_they_read(tmp_path: Path) -> None:
    def parts(log: str, **settings: Any) -> Any:
        upper = in_place(log=log)
        return chain(
            upper, data.shape.Drop(keys="tags"), name="parts", _reuse_outcomes=True, **settings
        )

    this = Node(tmp_path / "node", parts)
    this.run(RECORDS)
    this.check([{"added": 1} | row for row in RECORDS], 0)
    other = [without(row, "tags") if row["id"] % 2 else row for row in RECORDS]
    this.check(other, 12)  # it reads whether there is one


_WHOLE = {one.__name__: one for one in (undeclared, written_by_c)}


@each("name", _WHOLE)
def test_the_whole_record_counts(tmp_path: Path, name: str) -> None:
    this = Node(tmp_path / name, _WHOLE[name])
    this.run(RECORDS)
    this.check(RECORDS[::-1], 0)
    result = this.run([{**row, "added": 1} for row in RECORDS])
    assert this.calls >= len(RECORDS)
    assert name == "undeclared" or result.count(b'\\"added\\":1') == len(RECORDS)
    assert this.calls <= len(RECORDS) + 1  # the one that needed a real dict was repeated


def test_a_column_that_is_read_and_not_declared_counts(tmp_path: Path) -> None:
    this = Node(tmp_path / "node", careless)
    this.run(RECORDS)
    this.check([{**row, "added": 1} for row in RECORDS], 0)
    this.check([{**row, "lang": "de"} for row in RECORDS], len(RECORDS))


def test_the_columns_of_a_prompt_count(tmp_path: Path) -> None:
    model = ScriptedModel(lambda prompt, _: prompt.upper())
    prompt = "{{ text }}{% if lang is defined %} in {{ lang }}{% endif %}"

    def ask(rows: Rows) -> tuple[int, bytes]:
        operator = data.llm.Generate("small", prompt=prompt, client=model, _reuse_outcomes=True)
        dataset = write_input(tmp_path / "input.jsonl", rows)
        report = run(operator, dataset, node(tmp_path), resume=ResumePolicy.AUTO)
        return report.rows_resumed, node(tmp_path).result.read_bytes()

    ask(RECORDS)
    kept, result = ask([{"added": [1], **row} for row in RECORDS])
    assert (kept, len(model.requests)) == (24, 24)
    first = orjson.loads(result.splitlines()[1])
    assert first == {"added": [1], "id": 1, "text": "text 37", "tags": [1], "answer": "TEXT 37"}
    assert list(first) == ["added", "id", "text", "tags", "answer"]
    kept, _ = ask([{**row, "lang": "de"} for row in RECORDS])
    assert (kept, len(model.requests)) == (0, 48)


def test_an_outcome_with_the_number_of_its_record_is_not_kept(tmp_path: Path) -> None:
    operator = data.shape.AddId(by="index", _reuse_outcomes=True, _concurrency_mode="single")
    for rows in (RECORDS, RECORDS[1:]):
        dataset = write_input(tmp_path / "input.jsonl", [without(row, "id") for row in rows])
        report = run(operator, dataset, node(tmp_path), resume=ResumePolicy.AUTO)
        assert report.rows_resumed == 0
        assert [row["id"] for row in report.dataset.read()] == [
            f"{number:010d}" for number in range(len(rows))
        ]


class Batched(data_register.new_group("counting_columns"), reads="observed"):
    def __init__(self, log, **kwargs):
        super().__init__(_batch_size=5, _reuse_outcomes=True, **kwargs)
        self.log = log

    def forward_batch(self, records):
        for _ in records:
            noted(self.log)
        if any(record["text"] == "bad" for record in records):
            raise ValueError("bad")
        return [
            ValueError("odd") if record["text"] == "odd" else record | {"size": len(record["text"])}
            for record in records
        ]


class BatchedAsync(data_register.new_group("counting_columns"), reads=["text"]):
    def __init__(self, log, **kwargs):
        super().__init__(_batch_size=5, _reuse_outcomes=True, **kwargs)
        self.log = log

    async def forward_batch(self, records):
        for record in records:
            noted(self.log)
            record["size"] = len(record["text"])
        return records


_BATCHED = {
    "single": (Batched, "single"),
    "thread": (Batched, "thread"),
    "async": (BatchedAsync, "async"),
    "process": (Batched, "process"),
}


@pytest.mark.slow
@each("name", _BATCHED)
def test_columns_count_for_each_record_of_a_batch(tmp_path: Path, name: str) -> None:
    this = Node(tmp_path / name, *_BATCHED[name])
    this.run(RECORDS)
    this.check([{"added": 1} | row for row in RECORDS[::-1]], 0)
    changed = [row | {"text": "other"} if row["id"] == 4 else row for row in RECORDS]
    this.check(changed, 1)
    bad = [row | {"text": {3: "bad", 9: "odd"}.get(row["id"], row["text"])} for row in RECORDS]
    this.run(RECORDS if name == "async" else bad)
    failed = 0 if name == "async" else 2  # they have no outcomes
    this.check([without(row, "tags") for row in RECORDS], failed)


@data_register(GROUP, reads="observed", _reuse_outcomes=True, _concurrency_mode="single")
def failing(record, log):
    noted(log)
    if record["id"] % 6 == 5 and not Path(f"{log}.mended").exists():
        raise ValueError("not yet")
    return [] if record["id"] % 6 == 1 else record | {"size": len(record["text"])}


@pytest.mark.slow
@each("forms", [("jsonl", "jsonl.zst"), ("jsonl.zst", "jsonl"), ("jsonl.zst", "jsonl.zst")])
def test_outcomes_are_kept_and_failures_retried_whatever_the_form(
    tmp_path: Path, forms: tuple[str, str]
) -> None:
    """The input is compressed, too; its columns that do not count change, with its form."""
    tmp_path = tmp_path / "-".join(forms)
    tmp_path.mkdir()
    log, folder, runs = tmp_path / "calls", node(tmp_path, "made"), count()

    def step(rows: Rows, number: int, place: Any = folder, **context: Any) -> tuple[Any, int]:
        log.unlink(missing_ok=True)
        form = {"result_format": forms[number]}
        plain = write_input(tmp_path / f"{number}.jsonl", rows)
        source = run(data.shape.Fill({"none": ""}), plain, node(tmp_path, f"in{number}"), **form)
        names = {"run": f"run of {next(runs)}", "resume": ResumePolicy.AUTO}
        context = {**names, **form, **context}
        report = run(failing(log=str(log)), source.dataset, place, **context)
        calls = log.read_text().count("\n") if log.exists() else 0
        return report, calls

    report, calls = step(RECORDS, 0)
    assert (report.manifest.failed, calls) == (4, 24)
    changed = CHANGES["a value changed"](RECORDS)
    report, calls = step(changed, 1)
    assert (report.manifest.failed, calls) == (4, 4)
    assert report.dataset.path.name == f"made_results.{forms[1]}"
    assert next(iter(report.dataset))["tags"] == {"a": 0}
    Path(f"{log}.mended").touch()
    report, calls = step(changed, 1, resume=ResumePolicy.FAILED_RECORDS)
    assert (report.manifest.failed, calls) == (0, 4)
    report, calls = step(CHANGES["records in another order"](changed), 0)
    assert (report.manifest.failed, calls) == (0, 0)
    anew, _ = step(CHANGES["records in another order"](changed), 0, node(tmp_path, "anew"))
    assert anew.dataset.read() == report.dataset.read()

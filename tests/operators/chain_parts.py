"""Operators of a group of their own, for tests of chains, and what a chain of them must give."""

import asyncio
from collections.abc import Sequence
from typing import Any

from dagster_dataops import Drop, OperatorContext, To, data, data_register

Records = list[dict[str, Any]]
ACTIONS = ("keep", "change", "same", "split", "one", "empty", "drop", "fail", "wrong")

data_register.new_group("chained")


@data_register("data.chained")
def act(record: dict[str, Any], part: int = 0) -> Any:  # noqa: C901 - one case an action
    """Do what the record says for this part."""
    match record["do"][part]:
        case "keep":
            record["seen"] = [*record.get("seen", []), part]
            returned: Any = None
        case "change":
            returned = {**record, "changed": part}
        case "same":
            returned = record
        case "split":
            record["nested"] = [part]
            returned = [record, record, {**record, "third": True}]
        case "one":
            returned = [record]
        case "empty":
            returned = []
        case "drop":
            returned = Drop("unwanted")
        case "fail":
            raise ValueError(f"part {part}")
        case _:
            returned = 7
    if "nested" in record:
        record["nested"].append(part)
    return returned


@data_register("data.chained")
async def act_async(record: dict[str, Any], part: int = 0) -> Any:
    await asyncio.sleep(0)
    return act.function(record, part)  # type: ignore[attr-defined]


@data_register("data.chained", rewrite_func="forward_batch")
def act_batch(records: Records, part: int = 0) -> list[Any]:
    """Do what `act` does; raise if it raises for one of the records."""
    return [act.function(record, part) for record in records]  # type: ignore[attr-defined]


@data_register("data.chained")
def counted(record: dict[str, Any], context: OperatorContext, step: int = 1) -> Any:
    context.count(words=step)
    return {**record, "index": context.index}


@data_register("data.chained", outputs=("even", "odd"))
def by_number(record: dict[str, Any]) -> Any:
    return To("odd" if record["n"] % 2 else "even")


@data_register("data.chained", rewrite_func="forward_batch_input")
def whole(records: Records) -> Records:
    return records


class Picked(data.chained):
    def sketch(self, record: dict[str, Any]) -> Any:
        return 1

    def keep(self, sketches: Any) -> Any:
        return (True for _ in sketches)


class Built(data.chained):
    def build(self, records: Any, folder: Any) -> None:
        (folder / "number").write_text(str(sum(1 for _ in records)))


class Opened(data.chained):
    """Writes down when it is opened and closed."""

    def __init__(self, log: str, label: str, **given: Any) -> None:
        super().__init__(**given)
        self.log, self.label = log, label

    def open(self, context: OperatorContext) -> None:
        self.node = context.node
        self._note("open")

    def close(self) -> None:
        self._note("close")

    def _note(self, text: str) -> None:
        with open(self.log, "a") as file:  # noqa: PTH123
            file.write(f"{text} {self.label}\n")

    def forward(self, record: dict[str, Any]) -> Any:
        return {**record, self.label: self.node}


def funnel_of(records: Records, parts: int, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the funnel of a chain of ``act`` over ``records``, without seconds."""
    keys = ("entered", "emitted", "dropped", "failed")
    rows = [{"name": name, **dict.fromkeys(keys, 0)} for name in names]
    for record in records:
        number = 1
        for part, action in enumerate(record["do"][:parts]):
            rows[part]["entered"] += number
            if action in {"fail", "wrong"}:
                rows[part]["failed"] += 1
                break
            if action in {"empty", "drop"}:
                rows[part]["dropped"] += number
                break
            number *= 3 if action == "split" else 1
            rows[part]["emitted"] += number
    return rows

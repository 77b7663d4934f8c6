"""OneFlow's mini data loader: a custom reader and decoder, over two small part files.

The assets are the records of the reader, those of the decoder, its two outputs ``x`` and ``y``, and
a line through them. ``dg dev -f examples/mini_data_loader/definitions.py`` shows them; ``python
examples/mini_data_loader/definitions.py`` materializes them without the UI.
"""

import statistics
import sys
from itertools import chain
from pathlib import Path
from typing import Any

from dagster_dataops import (
    PartFiles,
    build_definitions,
    data_register,
    parse_numbers,
    pipeline,
)

HERE = Path(__file__).parent


@data_register("data.mini", columns={"values": list[float]})
class MiniReader(PartFiles):
    """Reads part files of two numbers per line; a record holds the rows of a batch."""

    def parse(self, line: str) -> dict[str, Any]:
        """Return the two numbers of a line."""
        return {"values": parse_numbers(line, 2)}


@data_register(
    "data.mini",
    reads={"values": list[list[float]]},
    columns={"x": list[float], "y": list[float]},
    _concurrency_mode="thread",
)
def mini_decoder(batch: dict) -> dict:
    """Split the rows of a batch into their first numbers, ``x``, and their second, ``y``."""
    x, y = zip(*batch["values"], strict=True)
    return {"x": list(x), "y": list(y)}


@data_register(
    "data.mini",
    reads=lambda column: {column: list[float]},
    columns=lambda column: {column: list[float]},
    _concurrency_mode="thread",
)
def only(batch: dict, column: str) -> dict:
    """Keep one column."""
    return {column: batch[column]}


@data_register("data.mini", rewrite_func="forward_batch_input")
def line_through(xs: list[dict], ys: list[dict]) -> list[dict]:
    """Fit a line to the points of all batches; writes ``slope`` and ``intercept``."""
    x = chain.from_iterable(batch["x"] for batch in xs)
    y = chain.from_iterable(batch["y"] for batch in ys)
    slope, intercept = statistics.linear_regression(list(x), list(y))
    return [{"slope": round(slope, 3), "intercept": round(intercept, 3)}]


reader = MiniReader(
    HERE,
    data_part_num=2,
    part_name_suffix_length=3,
    batch_size=4,
    random_shuffle=True,
    shuffle_after_epoch=True,
    seed=1,
    name="mini_reader",
)

with pipeline("mini") as ppl:
    ppl.decoded = mini_decoder()
    ppl.x = only(column="x")
    ppl.add("y", only(column="y"), inputs=[ppl.decoded])
    ppl.add("line", line_through(), inputs=[ppl.x, ppl.y])

defs = build_definitions(ppl, source=reader)


def main() -> None:
    """Materialize every asset, and print the results."""
    quiet = {"loggers": {"console": {"config": {"log_level": "WARNING"}}}}
    result = defs.resolve_job_def("mini_pipeline").execute_in_process(run_config=quiet)
    for name in ("mini_reader", *ppl.graph.nodes):
        records = result.asset_value(["mini", name]).read()
        sys.stdout.write(f"{name}: {records}\n")


if __name__ == "__main__":
    main()

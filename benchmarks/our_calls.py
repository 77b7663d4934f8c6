"""`llm.Generate` of this package, checkpointed and published, with its replies kept.

``python -m benchmarks.our_calls SPECIFICATION``, with the keys source, out, address and in_flight.
"""

from pathlib import Path

import aiohttp
import jinja2.sandbox

from benchmarks.chatting import MODEL
from benchmarks.reporting import Stopwatch
from dagster_dataops import ModelClient, config, data, pipeline
from dagster_dataops.execution.workplaces import asynchronous

IMPORTED = (aiohttp, asynchronous, jinja2.sandbox)  # like the modules of the script


def main() -> None:
    """Run the operator and report."""
    generate = data.llm.Generate  # imports the library
    watch = Stopwatch()
    given = watch.specification
    config.data_process_path = given["out"]
    client = ModelClient(base_url=given["address"], max_in_flight=given["in_flight"])
    operator = generate(
        prompt="{{ text }}", model=MODEL, client=client, _max_workers=given["in_flight"]
    )
    with pipeline("benchmark") as ppl:
        ppl.add("node", operator)
    (report,) = ppl.materialize(Path(given["source"])).values()
    watch.finish([report.dataset.path])


if __name__ == "__main__":
    main()

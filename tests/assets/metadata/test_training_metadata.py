"""Tests of dagster_dataops.assets.metadata.training_metadata."""

from pathlib import Path
from typing import Any

import dagster as dg

from dagster_dataops import DataOpsResource, build_definitions, checks, data, pipeline
from dagster_dataops.assets.metadata.markdown import INLINE_CHARACTERS
from dagster_dataops.assets.metadata.training_metadata import samples
from tests.assets.helpers import write_jsonl

CHAT = {
    "messages": [
        {"role": "user", "content": "<b>Hi</b> ```"},
        {"role": "assistant", "content": "Ho"},
    ]
}


def test_the_page_shows_what_is_trained(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", [CHAT] * 4)
    with pipeline("docs") as ppl:
        ppl.encoded = data.tokens.EncodeChat("bytes", "chatml")
    check: dict[Any, Any] = {"encoded": [checks.trained_tokens(tokenizer="bytes", samples=1)]}
    definitions = build_definitions(
        ppl, source=str(source), checks=check, resource=DataOpsResource(root=str(tmp_path / "root"))
    )

    with dg.DagsterInstance.ephemeral() as instance:
        job = definitions.resolve_implicit_global_asset_job_def()
        result = job.execute_in_process(instance=instance)
    (made,) = [
        event.step_materialization_data.materialization
        for event in result.get_asset_materialization_events()
        if event.asset_key is not None and event.asset_key.path[-1] == "encoded"
    ]
    (checked,) = [
        one for one in result.get_asset_check_evaluations() if one.check_name == "trained_tokens"
    ]

    text = str(made.metadata["dagster_dataops/trained"].value)
    assert text.startswith("| tokens | trained | share |\n")
    assert "| 304 | 48 | 15.8 % |" in text
    assert text.count("**record ") == 3
    assert len(text) >= INLINE_CHARACTERS  # the page would cut the lines off
    assert "<b>Hi</b> ```<|im_end|>\n<|im_start|>assistant\n[[Ho<|im_end|>]]\n" in text
    assert checked.passed
    assert "**record 0**" in str(checked.metadata["dagster_dataops/trained"].value)


def test_long_texts_are_shown_from_before_the_first_trained_part() -> None:
    text = samples(["a" * 5000 + "[[b]]" + "c" * 5000])

    assert "..." + "a" * 500 + "[[b]]" in text
    assert len(text) < 3200

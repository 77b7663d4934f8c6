"""Group ``llm``: operators that ask language models."""

from dagster_dataops.library.llm import (
    embedding,
    extraction,
    generation,
    judging,
    question_pairs,
    self_consistency,
    semantic_dedup,
    transcription,
    vision,
)

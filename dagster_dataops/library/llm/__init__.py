"""Group ``llm``: operators that ask language models."""

from typing import Final

MODULES: Final = (
    "embedding",
    "extraction",
    "generation",
    "judging",
    "question_pairs",
    "self_consistency",
    "semantic_dedup",
    "transcription",
    "vision",
)

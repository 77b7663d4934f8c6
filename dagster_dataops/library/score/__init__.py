"""Group ``score``: operators that give texts a score, and train the models for it."""

from dagster_dataops.library.score import (
    character_model,
    embeddings,
    linear,
    model_scores,
    perplexity,
)

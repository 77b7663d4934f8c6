"""Group ``score``: operators that give texts a score, and train the models for it."""

from typing import Final

MODULES: Final = (
    "character_model",
    "embeddings",
    "linear",
    "model_scores",
    "perplexity",
)

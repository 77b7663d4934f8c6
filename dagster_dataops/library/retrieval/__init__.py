"""Group ``retrieval``: training data for models that find passages and rank them."""

from typing import Final

MODULES: Final = (
    "hard_negatives",
    "training_forms",
)

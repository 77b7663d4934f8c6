"""Group ``images``: operators that check, measure, change, compare and score image files."""

from typing import Final

MODULES: Final = (
    "image_checking",
    "image_filters",
    "image_transforms",
    "metadata_removal",
    "model_operators",
    "perceptual_hashes",
    "similar_images",
)

"""Group ``images``: operators that check, measure, change, compare and score image files."""

from dagster_dataops.library.images import (
    checking,
    image_filters,
    metadata_removal,
    model_operators,
    near_duplicates,
    perceptual_hashes,
    transforms,
)

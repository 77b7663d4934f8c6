"""Group ``retrieval``: training data for models that find passages and rank them."""

from dagster_dataops.library.retrieval import hard_negatives, training_forms

"""Group ``decontaminate``: operators that find texts of benchmarks in training data."""

from dagster_dataops.library.decontaminate import contamination

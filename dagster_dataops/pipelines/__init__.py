"""Run pipelines and operators in plain Python."""

"""The start of a run: `start` decides how it begins, from checkpoints and results of earlier runs.

Put a new way to use records of earlier runs here, as a module that `start` calls.
"""

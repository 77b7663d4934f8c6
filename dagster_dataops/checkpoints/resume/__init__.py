"""How a run starts: `start` decides, by checkpoints and results of earlier runs.

A new way to use records of earlier runs belongs here, as a module that `start` asks.
"""

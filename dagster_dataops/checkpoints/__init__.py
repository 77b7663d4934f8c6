"""Checkpoints: settled records on disk, from the first record of a run to its published result.

Everything that must survive a crash belongs here. Nothing here runs operators.
"""

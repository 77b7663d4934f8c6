"""Operators as worker processes get them: ``ship`` gives the bytes, ``receive`` the operator."""

from dagster_dataops.operators.pickling import receive, ship

__all__ = ["receive", "ship"]

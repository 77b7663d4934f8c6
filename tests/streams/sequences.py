"""A stream of given items."""

from dagster_dataops import read_sequence


def numbers(*items):
    return read_sequence(list(items))

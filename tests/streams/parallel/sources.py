"""A stream of numbers."""

from dagster_dataops import read_sequence


def numbers(count):
    return read_sequence(list(range(count)))

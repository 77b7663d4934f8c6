"""The rows of a batch."""


def values(record):
    return [tuple(row) for row in record["values"]]

"""Data-Juicer's filters as shipped: records per CPU second of their statistics, one by one."""

import os

os.environ.update(HF_HUB_OFFLINE="1", PIP_NO_INDEX="1", UV_OFFLINE="1")

from data_juicer.ops import filter as filters
from data_juicer.utils.constant import Fields

from benchmarks.blocks import rates, records_of
from benchmarks.reporting import Stopwatch

OPERATORS = {
    "character_repetition": "CharacterRepetitionFilter",
    "word_repetition": "WordRepetitionFilter",
    "special_character_ratio": "SpecialCharactersFilter",
    "alphanumeric_ratio": "AlphanumericFilter",
    "word_count": "WordsNumFilter",
}


def made(name):
    """Return the function of a rule: a batch of one record, as these operators take batches."""
    operator = getattr(filters, OPERATORS[name])()

    def function(record):
        batch = {"text": [record["text"]], Fields.stats: [{}]}
        return list(operator.process_batched(operator.compute_stats_batched(batch)))

    return function


if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    records = records_of(given["source"])
    found = {name: rates({name: made(name)}, records)[name] for name in given["rules"]}
    watch.finish([], rates=found)

"""datatrove's filters and formatters as shipped: records per CPU second, without its executor."""

from datatrove.data import Document
from datatrove.pipeline.dedup import MinhashDedupSignature
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.pipeline.formatters import FTFYFormatter, PIIFormatter

from benchmarks.blocks import rates, records_of
from benchmarks.reporting import Stopwatch


def judged(*filters):
    """Return the function that applies filters until one drops the text."""

    def function(record):
        document = Document(text=record["text"], id="0")
        return all(one.filter(document) is True for one in filters)

    return function


def formatted(formatter):
    return lambda record: formatter.format(record["text"])


def signature(folder):
    step = MinhashDedupSignature(folder)
    return lambda record: step.get_signature(step.get_shingles(record["text"]))


def made(name, folder):
    """Return the function of a rule."""
    repetition, quality = GopherRepetitionFilter(), GopherQualityFilter()
    fineweb, c4 = FineWebQualityFilter(), C4QualityFilter()
    part = C4QualityFilter(filter_no_terminal_punct=False)
    return {
        "gopher_quality": judged(quality),
        "gopher_repetition": judged(repetition),
        "fineweb_quality": judged(fineweb),
        "c4_quality": judged(c4),
        "pretraining": judged(repetition, quality, part, fineweb),
        "replace_pii": formatted(PIIFormatter()),
        "fix_unicode": formatted(FTFYFormatter()),
        "minhash": signature(folder),
    }[name]


if __name__ == "__main__":
    watch = Stopwatch()
    given = watch.specification
    records = records_of(given["source"])
    found = {name: rates({name: made(name, given["out"])}, records) for name in given["rules"]}
    watch.finish([], rates={name: each[name] for name, each in found.items()})

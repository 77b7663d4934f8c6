"""Operators of the library, by the names of their plain versions in ``plain_rules``, in turns.

``python -m benchmarks.rules SPECIFICATION``, with the keys ``source`` and ``rules``. Reports the
records per CPU second of both, and the share of records about which they agree.
"""

from typing import Any, NamedTuple

from benchmarks import plain_rules
from benchmarks.blocks import Function, rates, records_of
from benchmarks.reporting import Stopwatch
from dagster_dataops import data


class Rule(NamedTuple):
    """An operator, its speed, and how its result is compared with that of the plain version.

    Attributes:
        operator: Its name.
        goal: Records per CPU second.
        column: The column to compare; ``None`` compares whether the record is kept.
        options: Its options.
        method: The method to measure.
        compared: Whether the plain version has the same result.
    """

    operator: str
    goal: float
    column: str | None = None
    options: dict[str, Any] = {}  # noqa: RUF012 - not changed
    method: str = "forward"
    compared: bool = True


RULES = {
    "gopher_quality": Rule("filters.GopherQuality", 4_300),
    "gopher_repetition": Rule("filters.GopherRepetition", 1_800),
    "fineweb_quality": Rule("filters.FineWebQuality", 13_000),
    "c4_quality": Rule("filters.C4Quality", 13_000),
    "pretraining": Rule("filters.Pretraining", 1_100),
    "replace_pii": Rule("pii.Replace", 30_000, "text", compared=False),  # the first address only
    "fix_unicode": Rule("text.FixUnicode", 4_000, "text", compared=False),  # ftfy's other defaults
    "character_repetition": Rule("filters.CharacterRepetition", 7_000),
    "word_repetition": Rule("filters.WordRepetition", 4_000),
    "special_character_ratio": Rule(
        "filters.SpecialCharacterRatio", 28_000, options={"character_set": "datajuicer"}
    ),
    "alphanumeric_ratio": Rule("filters.AlphanumericRatio", 45_000),
    "word_count": Rule("filters.WordCount", 20_000),
    "language": Rule("language.Identify", 750, "lang"),
    "token_count": Rule("tokens.Count", 4_500, "tokens"),
    "minhash": Rule("dedup.NearDuplicate", 6_900, method="sketch", compared=False),
    "text_hash": Rule("dedup.Exact", 196_000, method="sketch", compared=False),
}


def constructed(name: str) -> Function:
    """Return the method of the operator of a rule."""
    rule = RULES[name]
    group, _, operator = rule.operator.partition(".")
    method: Function = getattr(getattr(getattr(data, group), operator)(**rule.options), rule.method)
    return method


def agreement(name: str, ours: Function, records: list[dict[str, Any]]) -> float:
    """Return the share of records about which the operator and the plain version agree."""
    plain, column = getattr(plain_rules, name), RULES[name].column
    same = 0
    for record in records:
        made = ours(dict(record))
        kept = isinstance(made, dict)
        same += plain(dict(record)) == (made[column] if column and isinstance(made, dict) else kept)
    return same / len(records)


def main() -> None:
    """Measure and report."""
    watch = Stopwatch()
    records = records_of(watch.specification["source"])
    found = {}
    for name in watch.specification["rules"]:
        ours = constructed(name)
        each = rates({"ours": ours, "plain": getattr(plain_rules, name)}, records)
        each["same"] = agreement(name, ours, records[:500]) if RULES[name].compared else 1.0
        found[name] = each
    watch.finish([], rates=found)


if __name__ == "__main__":
    main()

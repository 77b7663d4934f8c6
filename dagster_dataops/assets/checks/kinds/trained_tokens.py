"""The check ``trained_tokens``."""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from dagster_dataops.assets.checks.declared_check import DeclaredCheck, check_kind, declared
from dagster_dataops.assets.checks.findings import Finding, Violations
from dagster_dataops.assets.checks.inspectors import Inspected, RecordInspector
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.assets.metadata.training_metadata import samples
from dagster_dataops.errors import ConfigurationError, DefinitionError, MissingExtraError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import counted, percentage
from dagster_dataops.records import NOT_TRAINED, Record

if TYPE_CHECKING:
    from dagster_dataops.library.analysis.tokenizers.tokenization import Tokenizer

_STEPS: Final = 1000  # shares of records are counted in steps of 1/1000
_RATIO: Final = {"type": "number", "minimum": 0, "maximum": 1}


@check_kind(
    {
        "type": "object",
        "properties": {
            "min_ratio": {**_RATIO, "description": "Smallest share of trained tokens."},
            "max_ratio": {**_RATIO, "description": "Largest share of trained tokens."},
            "tokenizer": {
                "type": "string",
                "description": "Tokenizer of the ids; with it, examples are shown as text.",
            },
            "special_ids": {
                "type": "object",
                "additionalProperties": {"type": "integer"},
                "description": "Ids of special tokens by name, as in tokens.EncodeChat.",
            },
            "samples": {"type": "integer", "minimum": 0, "description": "Number of examples."},
            "ids_key": {"type": "string", "description": "Column of the ids."},
            "labels_key": {"type": "string", "description": "Column of the labels."},
        },
        "additionalProperties": False,
        "description": "Limits of the share of trained tokens.",
        "examples": [{"min_ratio": 0.01, "max_ratio": 0.9}],
    }
)
def trained_tokens(  # noqa: PLR0913 - the limits, and how to show examples
    min_ratio: float = 0.01,
    max_ratio: float = 0.9,
    *,
    tokenizer: str | None = None,
    special_ids: Mapping[str, int] | None = None,
    samples: int = 5,
    ids_key: str = "input_ids",
    labels_key: str = "labels",
    name: str = "trained_tokens",
    severity: Severity | None = None,
    blocking: bool = False,
) -> DeclaredCheck:
    """Check the labels of records to train on, as ``tokens.EncodeChat`` writes them.

    Each record must have as many labels as ids. A label is the id of its token, or -100; the labels
    are not shifted. At least one token of each record must be trained. Of all tokens, ``min_ratio``
    to ``max_ratio`` must be trained: a mask that trains nothing or everything is mostly a mistake.

    Args:
        min_ratio: Smallest share of trained tokens, in [0, 1].
        max_ratio: Largest share of trained tokens, in [0, 1].
        tokenizer: The tokenizer of the ids, as in ``tokens.EncodeChat``. With it, the result shows
            the texts of the first records, with their trained parts marked.
        special_ids: Ids of special tokens by name, as in ``tokens.EncodeChat``.
        samples: How many records are shown.
        ids_key: The column of the ids.
        labels_key: The column of the labels.
        name: The name of the check.
        severity: Severity if the check fails; ``ERROR`` by default.
        blocking: Whether a failed check stops the assets downstream.

    Raises:
        ConfigurationError: The limits are not in order, or the tokenizer cannot be used.
    """
    if not 0 <= min_ratio <= max_ratio <= 1:
        raise ConfigurationError("trained_tokens", (min_ratio, max_ratio), "shares in order")
    decoder = _decoder(tokenizer, special_ids)

    def inspector() -> RecordInspector:
        return _Labels((min_ratio, max_ratio), (ids_key, labels_key), decoder, samples)

    text = f"{percentage(min_ratio)} to {percentage(max_ratio)} of the tokens are trained."
    return declared(name, text, inspector, severity, blocking=blocking)


def _decoder(tokenizer: str | None, special_ids: Mapping[str, int] | None) -> "Tokenizer | None":
    if tokenizer is None:
        return None
    from dagster_dataops.library.tokens.special_tokens import chat_tokenizer

    try:
        return chat_tokenizer(tokenizer, special_ids)
    except MissingExtraError:
        raise
    except DefinitionError as error:
        wanted = f"a tokenizer of tokens.EncodeChat: {error}"
        raise ConfigurationError("trained_tokens", tokenizer, wanted) from None


class _Labels(RecordInspector):
    """Counts the trained tokens of each record."""

    def __init__(
        self,
        limits: tuple[float, float],
        keys: tuple[str, str],
        decoder: "Tokenizer | None",
        samples_wanted: int,
    ) -> None:
        self._limits, self._keys = limits, keys
        self._decoder, self._wanted = decoder, samples_wanted
        self._violations = Violations()
        self._tokens = self._trained = self._longest = 0
        self._shares = [0] * (_STEPS + 1)
        self._samples: list[str] = []

    @override
    def see(self, start: int, record: Record) -> None:
        ids, labels = (record.get(key) for key in self._keys)
        fault = _fault(ids, labels, self._keys)
        if fault is not None:
            self._violations.add(start, *fault)
        if isinstance(ids, list) and isinstance(labels, list) and len(ids) == len(labels):
            self._count(ids, labels)

    def _count(self, ids: list[Any], labels: list[Any]) -> None:
        trained = len(labels) - labels.count(NOT_TRAINED)
        self._tokens += len(ids)
        self._trained += trained
        self._longest = max(self._longest, len(ids))
        if ids:
            self._shares[_STEPS * trained // len(ids)] += 1
        if self._decoder is not None and len(self._samples) < self._wanted:
            self._samples.append(_shown(self._decoder, ids, labels))

    @override
    def see_bad_line(self, start: int, problem: str) -> None:
        self._violations.add(start, problem, "")

    @override
    def __call__(self, inspected: Inspected) -> Finding:
        least, most = self._limits
        share = self._trained / self._tokens if self._tokens else 0.0
        count = self._violations.count
        within = least <= share <= most or not self._tokens
        text = (
            f"{percentage(share)} of {counted(self._tokens, 'tokens')} are trained; "
            f"{counted(count, 'records')} of {inspected.rows:,} have labels that cannot be right."
        )
        return Finding(
            passed=within and not count,
            text=text,
            numbers={
                "records": inspected.rows,
                "offending_records": count,
                "tokens": self._tokens,
                "trained_tokens": self._trained,
                "trained_share": round(share, 6),
                **self._spread(),
                "longest": self._longest,
            },
            violations=self._violations,
            location=inspected.dataset.location,
            state=inspected.state,
            samples=samples(self._samples) if self._samples else "",
        )

    def _spread(self) -> dict[str, float]:
        """Return the smallest, median and largest share of the records, rounded down."""
        known = [step for step, number in enumerate(self._shares) if number]
        if not known:
            return {}
        reached = list(accumulate(self._shares))
        median = bisect_left(reached, reached[-1] / 2)
        steps = {"min_share": known[0], "median_share": median, "max_share": known[-1]}
        return {key: step / _STEPS for key, step in steps.items()}


def _shown(decoder: "Tokenizer", ids: list[int], labels: list[int]) -> str:
    from dagster_dataops.library.tokens.trained_text import marked_text

    try:
        return marked_text(decoder, ids, labels)
    except Exception as error:  # noqa: BLE001 - each tokenizer has errors of its own
        return f"the tokenizer does not know the ids: {error}"


def _fault(ids: Any, labels: Any, keys: tuple[str, str]) -> tuple[str, Any] | None:
    """Return the problem of the ids and labels of a record, and the value to show; or ``None``."""
    for key, value in zip(keys, (ids, labels), strict=True):
        if not isinstance(value, list) or any(type(token) is not int for token in value):
            return f"{key} is no list of integers", value
    if len(ids) != len(labels):
        return f"{len(ids)} ids, {len(labels)} labels", ""
    if all(label == NOT_TRAINED for label in labels):
        return "no token is trained", ids
    pairs = enumerate(zip(ids, labels, strict=True))
    wrong = next((at for at, (token, label) in pairs if label not in {token, NOT_TRAINED}), None)
    if wrong is None:
        return None
    return f"label {wrong} is neither the id nor {NOT_TRAINED}", labels[wrong]

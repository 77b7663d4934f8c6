"""What a conversion cannot hold: an error of the record, or left out and counted by reason."""

import re
from collections import Counter
from typing import Final, Literal, TypeAlias

from dagster_dataops.errors import UnfitRecordError

OnLoss: TypeAlias = Literal["error", "drop"]
_WORDS: Final = re.compile(r"\w{1,40}")  # no other reason becomes a row of the asset page


class Losses:
    """Refuses or counts what a conversion leaves out of one record.

    Args:
        form: The name of the format that is written, for errors.
        on_loss: With ``error``, what the format cannot hold is an error of the record; with
            ``drop`` it is left out. ``None`` is an error, too, where there is no such option.

    Attributes:
        counts: How often something was left out, by reason.
    """

    def __init__(self, form: str, on_loss: OnLoss | None = None) -> None:
        self._form, self._on_loss = form, on_loss
        self.counts: Counter[str] = Counter()

    def lose(self, place: str, reason: str) -> None:
        """Refuse, or count, something that carries meaning.

        Args:
            place: Its path.
            reason: What it is, such as ``citations``.
        """
        if self._on_loss != "drop":
            msg = f"{place}: {self._form} cannot hold {reason.replace('_', ' ')}"
            remedy = "; set on_loss='drop' to leave it out and count it"
            raise UnfitRecordError(f"{msg}{remedy if self._on_loss else ''}")
        self.note(reason)

    def note(self, reason: str) -> None:
        """Count something that is of no use outside of its format, or made anew on the way back."""
        self.counts[reason if _WORDS.fullmatch(reason) else "other"] += 1

    def check_rest(self, rest: object, before: object, place: str) -> None:
        """Check that something is left of a content that was not empty."""
        if before and not rest:
            msg = f"{place}: {self._form} can hold nothing of it; drop the record"
            raise UnfitRecordError(msg)

    def lose_others(self, value: dict[str, object], known: set[str], place: str) -> None:
        """Refuse, or count, the keys of a dict that are not known and not null."""
        for key, item in value.items():
            if key not in known and item is not None:
                self.lose(f"{place}.{key}", key)

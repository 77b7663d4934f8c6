"""WindowFormats: whether the date formats of a path give each time window a text of its own."""

import re
from collections.abc import Sequence
from datetime import datetime

import dagster as dg


class WindowFormats:
    """The date formats of the time windows in a path."""

    def __init__(self, windows: dg.TimeWindowPartitionsDefinition, formats: Sequence[str]) -> None:
        self._windows = windows
        self._formats = list(dict.fromkeys(formats))
        self._keys: dict[str, list[str]] = {}  # of the windows up to now, by text

    def same(self, key: str) -> str | None:
        """Return the key of another window with the same texts; ``None`` if there is none.

        All windows up to now are looked through only if the formats do not say by themselves which
        window is meant: if the text of this window, or of the one before or after it, cannot be
        read back, or if two of these texts are equal, as at the end of daylight saving time.
        """
        window = self._windows.time_window_for_partition_key(key)
        before = self._windows.get_prev_partition_window(window.start)
        near = [window.start, window.end, *([] if before is None else [before.start])]
        texts = set(map(self._text, near))
        summer = window.start.replace(month=7)  # a text without a month reads as January
        if len(texts) == len(near) and all(map(self._reads_back, [*near, summer])):
            return None
        return self._other(key, self._text(window.start))

    def _text(self, start: datetime) -> str:
        return "\n".join(start.strftime(form) for form in self._formats)

    def _reads_back(self, start: datetime) -> bool:
        try:
            moment = datetime.strptime(self._text(start), "\n".join(self._formats))  # noqa: DTZ007
        except (ValueError, re.error):  # a directive that is only written, or is there twice
            return False
        return moment.replace(tzinfo=None) == start.replace(tzinfo=None)

    def _other(self, key: str, text: str) -> str | None:
        if key not in self._keys.get(text, ()):
            self._keys = {}
            for each in self._windows.get_partition_keys():
                start = self._windows.time_window_for_partition_key(each).start
                self._keys.setdefault(self._text(start), []).append(each)
        return next((known for known in self._keys.get(text, ()) if known != key), None)

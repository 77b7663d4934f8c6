"""``dedup.Url``: keep one record of each URL."""

import re
from collections.abc import Iterator
from operator import not_
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import xxhash

from dagster_dataops.library.dedup.algorithms.option_checks import need_numpy, rank_value
from dagster_dataops.library.dedup.algorithms.repeated_parts import (
    RepeatedParts,
    pack_parts,
    repeated_parts,
)
from dagster_dataops.library.dedup.algorithms.representatives import Representatives, Similarity
from dagster_dataops.library.dedup.exact import dedup
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record

_DEFAULT_PORTS: Final = frozenset({80, 443})
_TRACKING: Final = re.compile(
    r"(utm_\w+|gclid|gclsrc|dclid|fbclid|msclkid|yclid|igshid|mc_cid|mc_eid|_ga|_gl|_hsenc|_hsmi"
    r"|mkt_tok|twclid|ttclid|wickedid|vero_id|oly_enc_id|oly_anon_id)(=|$)",
    re.IGNORECASE,
)


class Url(dedup):
    """Keep one record of each URL.

    Reads ``input_key``. URLs are compared without scheme, ``www.``, default port, fragment and
    tracking parameters (``utm_...``, ``gclid``, ``fbclid`` and the like), with the host in lower
    case and the parameters in sorted order. Records without a URL stay.

    ``keep="first"`` keeps the first record in input order, ``"longest"`` the one with the longest
    text in ``text_key``, any other value the one with the largest number in the column of that
    name; ties go to the first. These two need the extra ``dedup``.

    ``"first"`` compares 128-bit digests, others 64-bit digests. The selection uses up to
    ``max_memory_mb`` MB and 5 bytes per record, then 24 bytes per record on disk; other than
    ``"first"`` 32 bytes per record.

    Args:
        input_key: Key of the URL: a column, or a selector.
        keep: Which record stays: ``first``, ``longest``, or a column whose largest number wins.
        text_key: Key of the text whose length counts with ``keep="longest"``.
        max_memory_mb: Memory in MB before files are used.
    """

    def __init__(
        self,
        input_key: str = "url",
        *,
        keep: str = "first",
        text_key: str = "text",
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column, self._text = FieldKey(input_key), FieldKey(text_key)
        self._rank_by = keep
        if keep != "first":
            need_numpy("dedup.Url")
        self._max_bytes = max_memory_mb << 20

    def sketch(self, record: Record) -> Any:
        url = canonical_url(self._column.text(record))
        if self._rank_by == "first":
            return pack_parts([url])
        text = self._text.text(record) if self._rank_by == "longest" else ""
        bucket = xxhash.xxh3_64_digest(url.encode("utf-8", "surrogatepass")).hex() if url else ""
        return [bucket, rank_value(record, self._rank_by, text)]

    def keep(self, sketches: Iterator[Any], scratch: Path) -> Iterator[bool]:
        if self._rank_by == "first":
            return map(not_, repeated_parts(sketches, scratch, self._max_bytes))
        similarity = Similarity(bands=1, linkage="kept", ranked=True)
        distinct = _distinct(sketches)
        return Representatives.of(distinct, similarity, scratch, self._max_bytes).verdicts()

    def __dataops_partitioning__(self) -> RepeatedParts | None:
        return RepeatedParts(self._max_bytes, not_) if self._rank_by == "first" else None


def _distinct(sketches: Iterator[list[Any]]) -> Iterator[list[Any]]:
    """Yield the sketches, with a bucket of its own for each record without a URL."""
    for number, (bucket, value) in enumerate(sketches):
        yield [bucket or xxhash.xxh3_64_digest(number.to_bytes(8), seed=1).hex(), value]


def canonical_url(url: str) -> str:
    """Return a URL without scheme, ``www.``, default port, fragment and tracking parameters.

    The result is such as ``example.org/path?a=1&b=2``. A text that is no URL is stripped.
    """
    url = url.strip()
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        host, port = parts.hostname or "", parts.port
    except ValueError:  # no URL
        return url
    if not host:
        return url
    host = host.rstrip(".").removeprefix("www.")
    place = host if port is None or port in _DEFAULT_PORTS else f"{host}:{port}"
    query = sorted(
        parameter
        for parameter in parts.query.split("&")
        if parameter and not _TRACKING.match(parameter)
    )
    return f"{place}{parts.path or '/'}" + (f"?{'&'.join(query)}" if query else "")

"""The table of media metadata in ``index.sqlite``, as ``energon prepare`` writes it."""

import contextlib
import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, TypeAlias

MediaFacts: TypeAlias = tuple[str, dict[str, Any]]
"""The kind of a file (``image`` or ``av``), and its facts by name."""

_TABLES: Final = """
    CREATE TABLE media_metadata (entry_key TEXT PRIMARY KEY, metadata_type TEXT NOT NULL,
        metadata_json TEXT NOT NULL);
    CREATE TABLE media_filters (filter_id INTEGER PRIMARY KEY AUTOINCREMENT,
        strategy TEXT NOT NULL, patterns TEXT,
        created_at_utc TEXT DEFAULT CURRENT_TIMESTAMP, UNIQUE(strategy, patterns));
    INSERT INTO media_filters (strategy) VALUES ('EXTENSION');
"""


def write_media_table(path: Path, facts: Iterable[tuple[str, MediaFacts]]) -> None:
    """Add the table to an index, with the facts of files by name."""
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.executescript(_TABLES)
        rows = ((name, kind, json.dumps(fields)) for name, (kind, fields) in facts)
        file.executemany("INSERT OR REPLACE INTO media_metadata VALUES (?, ?, ?)", rows)
        file.commit()


def read_media_facts(path: Path, name: str) -> MediaFacts | None:
    """Return the facts of a file; ``None`` if the index has none of it, or is none."""
    query = "SELECT metadata_type, metadata_json FROM media_metadata WHERE entry_key = ?"
    try:
        uri = f"{path.absolute().as_uri()}?immutable=1"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as file:
            row = file.execute(query, (name,)).fetchone()
    except sqlite3.OperationalError:  # there is no such file, or no such table
        return None
    return None if row is None else (row[0], json.loads(row[1]))

"""What folders hold."""

import os
from pathlib import Path


def names_in(folder: str | Path) -> list[str]:
    """Return the sorted names of the files and folders in a folder, hidden ones too."""
    return sorted(entry.name for entry in os.scandir(folder))

"""`ViewedReviews`: the reviews that people decide in a view."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.parts import function_of_part
from dagster_dataops.pipelines.view.viewed_root import ViewedRoot


class ViewedReviews:
    """The reviews of the nodes of a view, and those below other folders.

    The option ``to`` of ``review.Ask`` names such folders.

    Raises:
        ConfigurationError: There is no such folder.
    """

    def __init__(self, root: ViewedRoot, folders: Sequence[str] = ()) -> None:
        self._root = root
        self._folders = [Path(folder).expanduser().absolute() for folder in folders]
        for folder in self._folders:
            if not folder.is_dir():
                raise ConfigurationError("--review-in", str(folder), "a folder that exists")

    @property
    def paths(self) -> dict[str, Path]:
        """The folders of the reviews, by their key in addresses."""
        return dict(self._keyed())

    def _keyed(self) -> Iterator[tuple[str, Path]]:
        of_node = function_of_part("review_of_node")
        for key, node in self._root.nodes().items():
            if path := of_node(node.folder.path):
                yield key, path
        for folder in self._folders:
            for path in function_of_part("reviews_below")(folder):
                yield os.path.relpath(path, folder.parent), path

    def at(self, key: str, reviewer: str) -> Any:
        """Return the review with a key for a reviewer, a ``PageReview``; ``None`` if there is none.

        Raises:
            DataOpsError: It cannot be read.
        """
        path = self.paths.get(key)
        return None if path is None else self.review(path, reviewer)

    @staticmethod
    def review(path: Path, reviewer: str) -> Any:
        """Return the review in a folder for a reviewer, a ``PageReview``.

        Raises:
            DataOpsError: It cannot be read.
        """
        return function_of_part("page_review")(path, reviewer)

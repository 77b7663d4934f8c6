"""Optional parts: functions that they add to the core, each loaded when it is used.

The core imports no optional part: crude data and its files, loaders, clusters, models and reports.
What one of them adds is a line of the table.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias

Added: TypeAlias = Literal[
    "bytes_of_files",
    "cached_file",
    "drop_explainer",
    "file_of_store",
    "html_of",
    "page_review",
    "published_nodes",
    "review_of_node",
    "reviews_below",
    "with_lazy_files",
]

ADDED: Final[dict[Added, str]] = {
    # Where files of crude datasets lie in their shards: the first byte, and the number of bytes.
    "bytes_of_files": "dagster_dataops.training.filestores.store_opening:bytes_of_files",
    # A file of a server, which is kept in a folder of this machine.
    "cached_file": "dagster_dataops.training.filestores.cached_files:cached_file",
    # The function that explains why an operator of the library dropped records.
    "drop_explainer": "dagster_dataops.library.explaining.drop_explanations:drop_explainer",
    # A file in a store, or where it is, by the path or URL of the store and the name of the file.
    "file_of_store": "dagster_dataops.training.filestores.cached_files:file_of_store",
    # A dataset, pipeline, operator, report or trace as HTML for a notebook.
    "html_of": "dagster_dataops.pipelines.notebook_html:html_of",
    # A review that people decide on a page, by its folder and the reviewer.
    "page_review": "dagster_dataops.library.review.page_reviews:PageReview",
    # The nodes with results below some folders.
    "published_nodes": "dagster_dataops.pipelines.reporting.published_nodes:published_nodes",
    # The folder of the review in the folder of a node; those in a folder and below it.
    "review_of_node": "dagster_dataops.library.review.page_reviews:review_of_node",
    "reviews_below": "dagster_dataops.library.review.page_reviews:reviews_below",
    # A record whose references to files of stores are read when they are used.
    "with_lazy_files": "dagster_dataops.training.filestores.lazy_files:with_lazy_files",
}


def function_of_part(name: Added) -> Any:
    """Return a function of an optional part, which is imported."""
    module, _, attribute = ADDED[name].partition(":")
    return getattr(import_module(module), attribute)


def has_model_operators() -> bool:
    """Return whether the base class of operators that call models was imported.

    Otherwise no such operator exists.
    """
    return "dagster_dataops.models.model_operator" in sys.modules


def has_review_operators() -> bool:
    """Return whether ``review.Ask`` was imported; otherwise no such operator exists."""
    return "dagster_dataops.library.review.asking" in sys.modules


class NotebookHtml:
    """The attribute ``_repr_html_`` of a class: a function that returns HTML.

    It shows the object; read from the class, it shows the class. The HTML is that of
    `dagster_dataops.pipelines.notebook_html.html_of`.
    """

    __slots__ = ()

    def __get__(self, instance: object, owner: type) -> Callable[[], str]:
        """Return the function."""
        shown = owner if instance is None else instance
        return lambda: function_of_part("html_of")(shown)

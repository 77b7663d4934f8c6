"""`NotebookHtml`: what a notebook shows of an object, or of a class of operators."""

from collections.abc import Callable

from dagster_dataops.foundation.parts import function_of_part


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

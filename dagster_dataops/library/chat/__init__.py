"""Group ``chat``: operators that convert, check and render conversations.

``messages``, a list of dicts with ``role`` and ``content``, is the common form.
"""

from dagster_dataops.library.chat import conversions, rendering, validation

__all__ = ["conversions", "rendering", "validation"]

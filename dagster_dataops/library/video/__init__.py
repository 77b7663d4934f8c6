"""Group ``video``: operators that check and measure films, and take their pictures and sound."""

from typing import Final

MODULES: Final = (
    "film_extraction",
    "video_filters",
)

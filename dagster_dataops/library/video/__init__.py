"""Group ``video``: operators that check and measure films, and take their pictures and sound."""

from dagster_dataops.library.video import film_extraction, video_filters

"""Group ``video``: operators that check and measure films, and take their pictures and sound."""

from dagster_dataops.library.video import extraction, video_filters

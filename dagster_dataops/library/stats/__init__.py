"""Group ``stats``: operators that measure texts and sum up the measurements."""

from dagster_dataops.library.stats import summaries, text_signals, threshold_selection

"""Group ``audio``: operators that check, measure, resample and cut sound files."""

from dagster_dataops.library.audio import audio_filters, sound_checking, sound_transforms

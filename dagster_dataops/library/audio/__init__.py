"""Group ``audio``: operators that check, measure, resample and cut sound files."""

from typing import Final

MODULES: Final = (
    "audio_filters",
    "sound_checking",
    "sound_transforms",
)

"""Measurements of the engine's speed, as ratios to hand-written scripts and other libraries."""

"""How fast the engine is, as ratios to hand-written scripts and other libraries."""

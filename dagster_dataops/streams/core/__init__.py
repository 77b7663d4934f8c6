"""What every stream is made of: stages and cursors, sources in memory, states and seeds."""

"""The parts that every stream shares: stages and cursors, sources in memory, states and seeds."""

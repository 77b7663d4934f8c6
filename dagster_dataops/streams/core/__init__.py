"""The parts that all streams share: stages and cursors, sources in memory, states and seeds."""

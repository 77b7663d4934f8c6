"""The parts that every stream shares: stages, cursors, in-memory sources, states and seeds."""

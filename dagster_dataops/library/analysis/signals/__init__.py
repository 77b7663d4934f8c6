"""Signals of texts: numbers that filters compare with limits, as functions of an `AnalyzedText`."""

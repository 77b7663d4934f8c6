"""Which records of earlier runs count: resume, retry of failed records, reuse of outcomes."""

"""Explanations: why a job waits, what is before it, and what would start it."""

"""Batches: states, intake, waits, progress, finishing and reading."""

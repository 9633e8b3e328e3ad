"""Metric names and JSON logs."""

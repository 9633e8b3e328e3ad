"""Gridline's domain: batches, credits, capacity and lines. It knows neither HTTP nor Airflow."""

__version__ = "0.1.0"

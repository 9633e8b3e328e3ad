"""The gridline command."""

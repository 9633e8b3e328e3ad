"""The API dialects, as data."""

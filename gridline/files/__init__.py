"""Receiving, keeping and expiring customers' files."""

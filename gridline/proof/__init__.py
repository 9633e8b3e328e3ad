"""Proves a live platform from its rows and objects: every promise is looked at again, trusting no code that kept it."""

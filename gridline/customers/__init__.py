"""Accounts, their members, tokens and limits."""

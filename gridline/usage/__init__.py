"""Usage facts, written in the settling transaction."""

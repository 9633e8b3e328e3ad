"""The operator's sub-commands of `gridline`, loaded by name."""

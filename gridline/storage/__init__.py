"""The object store and the layout of every object in it."""

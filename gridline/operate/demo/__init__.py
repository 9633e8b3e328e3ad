"""`make demo`: the whole way once, from nothing to paid answers, as a customer would go it."""

"""What leaves the platform by itself: webhooks of ended batches, and customers' messages to the operator.

Written in the transaction that causes it, sent later by the keeper: at least once, never inside a transaction.
"""

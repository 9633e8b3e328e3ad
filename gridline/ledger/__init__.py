"""The books: accounts, transactions, entries, holds. The only room that moves money."""

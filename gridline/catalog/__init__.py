"""Model cards, prices and qualification."""

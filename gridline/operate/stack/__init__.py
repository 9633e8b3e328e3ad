"""The whole platform on one machine under one supervisor. Knows how parts start, not what they do."""

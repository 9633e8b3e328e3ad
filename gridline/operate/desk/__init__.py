"""What operators see and do on their pages, over all accounts. Knows no web; never shows a prompt or a result."""

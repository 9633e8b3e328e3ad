"""The typed HTTP client that the dashboard and the command line share."""

"""The control loop: starts and resumes runs, allocates, renews, expires, reconciles."""

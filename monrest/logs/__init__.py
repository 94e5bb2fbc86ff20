"""Log lines, the log cache that keeps them in SQL, and what follows: availability and outages."""

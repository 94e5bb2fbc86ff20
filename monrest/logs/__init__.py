"""Log lines and what follows from them: availability and outages."""

"""Business processes: what they are, how they are calculated, and who does it when."""

"""External commands as facts: which there are, what they take, and how their effect shows."""

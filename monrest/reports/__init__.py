"""Reports: their records, what they say, how they look, and how they get to their readers."""

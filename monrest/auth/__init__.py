"""Who is asking, what they hold and what they may see."""

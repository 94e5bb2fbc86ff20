"""The composition root: builds, starts, reloads and stops all parts."""

"""Object configuration files: reading them and expanding them as the core does."""

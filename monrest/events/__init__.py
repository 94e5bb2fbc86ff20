"""Events: what happens at the sites and in the daemon."""

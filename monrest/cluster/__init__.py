"""The cluster: nodes on one database that look at each other (frontend-data.md, section 8)."""

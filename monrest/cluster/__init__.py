"""The cluster: nodes on one database that look at each other (docs/spec/cluster.md)."""

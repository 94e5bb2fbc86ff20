"""Endpoints: declarations, routing, roles, and reading of requests."""

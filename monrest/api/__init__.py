"""What an endpoint is: declarations, routing, roles, and reading what is sent."""

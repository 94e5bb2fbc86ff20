"""The identity of a caller: users, keys, sessions, passwords, roles and contacts."""

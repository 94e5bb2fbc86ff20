"""Who somebody is: users, keys, sessions, passwords, roles and contacts."""

"""Processes, clients and scripted sites for the tests that run a whole daemon."""

"""Configured sites: their health and capabilities, selection, and asking many at once.

This room knows which cores there are and what each of them lacks; it does not know the API.
"""

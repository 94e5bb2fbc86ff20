"""Dashboards: their records, who may do what with them, scripted ones."""

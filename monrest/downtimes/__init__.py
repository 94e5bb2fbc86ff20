"""Recurring downtimes: their records, their schedules and the service that triggers them."""

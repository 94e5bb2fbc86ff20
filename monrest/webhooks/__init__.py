"""Webhooks: events that are sent to receivers, and the Alertmanager as one of them."""

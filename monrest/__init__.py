"""monrest: a REST API in front of any number of Livestatus monitoring cores."""

__version__ = "0.3.0"
__release_date__ = "2026-11-27"

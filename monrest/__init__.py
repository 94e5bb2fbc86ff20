"""monrest: a REST API in front of any number of Livestatus monitoring cores."""

__version__ = "0.1.0"

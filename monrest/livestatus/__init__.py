"""The wire to the cores: building requests, framing, one connection, a pool of them.

This room knows Livestatus (docs/spec/livestatus.md) and nothing of sites or HTTP.
"""

"""The sites of an LMD: one daemon that holds the objects of many cores (docs/spec/lmd.md)."""

"""Livestatus from the other side: reads requests and answers them over tables in memory.

A program that has objects declares them as a ``Table`` of ``Column``s (``tables``) and listens
with a ``LivestatusFactory`` (``protocol``). Answers, defects included, are those of a Naemon
(docs/spec/demo.md, "What it does as a Naemon does").
"""

"""The query engine: grammars, planning and evaluation, all pure."""

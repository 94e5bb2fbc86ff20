"""The collections of the cores: their columns, and the one road from a request to rows."""

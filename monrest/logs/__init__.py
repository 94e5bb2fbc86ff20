"""The log cache: lines of the cores' logs kept in SQL, brought up to date, read and thinned."""

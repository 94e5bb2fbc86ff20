"""An installation of the front end that this API comes from, as a configuration and a database."""

"""How fast monrest is, each line beside its limit measured in the same run: ``python -m bench``."""

"""Which modules ``make test-core`` runs against the core of the command line, and why not the others."""

from .given import GIVEN, GLOBAL

READING = {"test_any_core", "test_column_types", "test_every_column", "test_pushdown_columns"}
"""What they expect comes from the core itself."""

COMMANDS = {"test_any_commands"}
OBJECTS = {"test_any_objects"}

OF_THE_SUITE = {
    "test_commands", "test_commands_injection",
    "test_availability", "test_bad_input", "test_collections", "test_columns", "test_core_fixture",
    "test_filters", "test_formats", "test_generated", "test_http", "test_injection", "test_logs",
    "test_statistics", "test_static_columns", "test_users",
}  # fmt: skip
"""They expect the objects and states of ``tests/live/objects``, which passive results bring about."""


def why_not(module, core):
    """Why a module is left out; empty for one that runs."""
    if module in READING:
        return ""
    if module in COMMANDS:
        return "" if GIVEN.commands else "sends commands: COMMANDS=1 HOSTS=regex"
    if module in OBJECTS:
        return (
            "" if GIVEN.config else "reads the object configuration: CONFIG=/etc/naemon/naemon.cfg"
        )
    if module in OF_THE_SUITE:
        if core.lmd_sites:
            return "expects a core with the id s1, and what it is told to show at once"
        if not core.holds_the_suite:
            return "needs the objects of tests/live/objects"
        return "" if GIVEN.commands == GLOBAL else "brings objects into states: COMMANDS=all"
    return "is not about one core, or makes cores of its own"

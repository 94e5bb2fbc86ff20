"""Characters that names of a core's objects must not have, and who has them all the same.

One such name and a core refuses its whole configuration (docs/spec/bp.md, "Export"), so
that nothing is written to it for such a process.
"""

from __future__ import annotations

from collections.abc import Iterator

from monrest.base.errors import BadRequest
from monrest.bp.model import ILLEGAL, Definition
from monrest.bp.objectfile import ICINGA2
from monrest.config import BpConfig, ConfigTool
from monrest.objectconfig.files import setting


def characters(config: BpConfig, tool: ConfigTool | None) -> str:
    """Give what the core that reads the objects does not take; nothing where none reads any.

    A Nagios or Naemon says it in its main file, if that is known. Blocks.
    """
    if not config.objects_save_file:
        return ""
    if config.objects_save_format == ICINGA2:
        return "!"
    told = setting(tool.core_conf, "illegal_object_name_chars") if tool and tool.core_conf else None
    return ILLEGAL if told is None else told


def check(definition: Definition, illegal: str) -> None:
    """Raise BadRequest for a name of an object that has one of the characters."""
    for problem in problems(definition, illegal):
        raise BadRequest("invalid name of an exported object", problem)


def problems(definition: Definition, illegal: str) -> Iterator[str]:
    """Say what is wrong with the names of the objects that stand for a process."""
    if not illegal:
        return
    at = {node.id: number for number, node in enumerate(definition.nodes)}
    names = [("name", definition.name)]
    for node in definition.exported:
        where = f"nodes[{at[node.id]}]"
        names += [(f"{where}.label", node.label), (f"{where}.host_name", node.host_name)]
    for where, name in names:
        found = [one for one in dict.fromkeys(name) if one in illegal]
        if found:
            yield f"{where}: expected none of {' '.join(illegal)} in what is exported, got {name}"

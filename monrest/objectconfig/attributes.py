"""The attributes of each object type, and their values between a file and JSON.

One line of the table per attribute: its name, its type, flags (``+`` a leading plus adds to the
inherited value, ``0`` the word ``null`` cancels inheritance, ``*`` repeated lines are joined with a
comma), then ``ref=`` the type it names, ``aliases=``, ``letters=`` of an option list (``n`` none
and ``a`` all are always accepted) and ``default=`` (``=x`` copies attribute x).

Rules: docs/spec/objectconfig.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from monrest.base.errors import BadRequest


@frozen(kw_only=True)
class Attribute:
    """One attribute of an object type; ``kind`` is a word of the table's second column."""

    name: str
    kind: str
    additive: bool = False
    nullable: bool = False
    repeatable: bool = False
    ref: str = ""
    aliases: tuple[str, ...] = ()
    letters: Mapping[str, str] = {}
    default: str = ""


@frozen(kw_only=True)
class ObjectType:
    """An object type; ``spellings`` maps each accepted spelling to the attribute it means."""

    name: str
    key: tuple[str, ...]
    custom_variables: bool
    attributes: Mapping[str, Attribute]
    spellings: Mapping[str, Attribute]


_TABLE = """
[host] key=host_name custom
2d_coords coords
3d_coords coords
action_url string 0
active_checks_enabled bool aliases=checks_enabled default=1
address string default==host_name
alias string default==host_name
check_command command 0 ref=command
check_freshness bool default=0
check_interval number aliases=normal_check_interval default=5
check_period string 0 ref=timeperiod
contact_groups list +0 ref=contactgroup
contacts list +0 ref=contact
display_name string 0 default==host_name
event_handler command 0 ref=command
event_handler_enabled bool default=1
first_notification_delay number default=0
flap_detection_enabled bool default=1
flap_detection_options options letters=o:up,d:down,u:unreachable default=a
freshness_threshold int default=0
high_flap_threshold number default=0
host_name string
hostgroups list +0 ref=hostgroup aliases=host_groups
icon_image string 0
icon_image_alt string 0
initial_state choice letters=o:up,d:down,u:unreachable default=o
low_flap_threshold number default=0
max_check_attempts int
name string
notes string 0
notes_url string 0
notification_interval number default=30
notification_options options letters=d:down,u:unreachable,r:recovery,f:flapping,s:downtime
  default=a
notification_period string 0 ref=timeperiod
notifications_enabled bool default=1
obsess_over_host bool aliases=obsess default=1
parents list +0 ref=host
passive_checks_enabled bool default=1
process_perf_data bool default=1
register bool default=1
retain_nonstatus_information bool default=1
retain_status_information bool default=1
retry_interval number aliases=retry_check_interval default=1
stalking_options options letters=o:up,d:down,u:unreachable default=n
statusmap_image string 0 aliases=gd2_image
use list
vrml_image string 0
check_timeout int default=30
hourly_value int default=1
[hostgroup] key=hostgroup_name
action_url string 0
alias string default==hostgroup_name
hostgroup_members list +0* ref=hostgroup
hostgroup_name string
members list +0* ref=host
name string
notes string 0
notes_url string 0
register bool default=1
use list
[service] key=service_description,host_name,hostgroup_name custom
action_url string 0
active_checks_enabled bool default=1
check_command command 0 ref=command
check_freshness bool default=0
check_interval number aliases=normal_check_interval default=5
check_period string 0 ref=timeperiod
contact_groups list +0 ref=contactgroup
contacts list +0 ref=contact
display_name string 0 default==service_description
event_handler command 0 ref=command
event_handler_enabled bool default=1
first_notification_delay number default=0
flap_detection_enabled bool default=1
flap_detection_options options letters=o:ok,w:warning,u:unknown,c:critical default=a
freshness_threshold int default=0
high_flap_threshold number default=0
host_name list +0 ref=host aliases=host,hosts
hostgroup_name list +0 ref=hostgroup aliases=hostgroup,hostgroups
icon_image string 0
icon_image_alt string 0
initial_state choice letters=o:ok,w:warning,u:unknown,c:critical default=o
is_volatile bool default=0
low_flap_threshold number default=0
max_check_attempts int
name string
notes string 0
notes_url string 0
notification_interval number default=30
notification_options options
  letters=u:unknown,w:warning,c:critical,r:recovery,f:flapping,s:downtime default=a
notification_period string 0 ref=timeperiod
notifications_enabled bool default=1
obsess_over_service bool aliases=obsess default=1
parents service_ref +0 ref=service
passive_checks_enabled bool default=1
process_perf_data bool default=1
register bool default=1
retain_nonstatus_information bool default=1
retain_status_information bool default=1
retry_interval number aliases=retry_check_interval default=1
service_description string 0 aliases=description
servicegroups list +0 ref=servicegroup aliases=service_groups
stalking_options options letters=o:ok,w:warning,u:unknown,c:critical default=n
use list
check_timeout int default=60
hourly_value int default=1
[servicegroup] key=servicegroup_name
action_url string 0
alias string default==servicegroup_name
members pairs +0*
name string
notes string 0
notes_url string 0
register bool default=1
servicegroup_members list +0* ref=servicegroup
servicegroup_name string
use list
[contact] key=contact_name custom
address1 string 0
address2 string 0
address3 string 0
address4 string 0
address5 string 0
address6 string 0
alias string default==contact_name
can_submit_commands bool default=1
contact_name string
contactgroups list +0 ref=contactgroup aliases=contact_groups
email string 0
host_notification_commands list +0 ref=command
host_notification_options options letters=d:down,u:unreachable,r:recovery,f:flapping,s:downtime
  default=n
host_notification_period string 0 ref=timeperiod
host_notifications_enabled bool default=1
name string
pager string 0
register bool default=1
retain_nonstatus_information bool default=1
retain_status_information bool default=1
service_notification_commands list +0 ref=command
service_notification_options options
  letters=u:unknown,w:warning,c:critical,r:recovery,f:flapping,s:downtime default=n
service_notification_period string 0 ref=timeperiod
service_notifications_enabled bool default=1
use list
minimum_value int default=1
[contactgroup] key=contactgroup_name
alias string default==contactgroup_name
contactgroup_members list +0* ref=contactgroup
contactgroup_name string
members list +0* ref=contact
name string
register bool default=1
use list
[command] key=command_name
command_line string
command_name string
name string
register bool default=1
use list
[timeperiod] key=timeperiod_name
alias string
exclude list ref=timeperiod
friday ranges
monday ranges
name string
register bool default=1
saturday ranges
sunday ranges
thursday ranges
timeperiod_name string
tuesday ranges
use list
wednesday ranges
[hostdependency] key=dependent_host_name,dependent_hostgroup_name,host_name
dependency_period string 0 ref=timeperiod
dependent_host_name list +0 ref=host aliases=dependent_host
dependent_hostgroup_name list +0 ref=hostgroup aliases=dependent_hostgroup,dependent_hostgroups
execution_failure_criteria options aliases=execution_failure_options
  letters=o:up,d:down,u:unreachable,p:pending
host_name list +0 ref=host aliases=host,master_host,master_host_name
hostgroup_name list +0 ref=hostgroup aliases=hostgroup,hostgroups
inherits_parent bool default=0
name string
notification_failure_criteria options aliases=notification_failure_options
  letters=o:up,d:down,u:unreachable,p:pending
register bool default=1
use list
[servicedependency] key=dependent_service_description,host_name
dependency_period string 0 ref=timeperiod
dependent_host_name list +0 ref=host aliases=dependent_host
dependent_hostgroup_name list +0 ref=hostgroup aliases=dependent_hostgroup,dependent_hostgroups
dependent_service_description list +0 ref=service aliases=dependent_description
dependent_servicegroup_name list +0 ref=servicegroup
  aliases=dependent_servicegroup,dependent_servicegroups
execution_failure_criteria options aliases=execution_failure_options
  letters=o:ok,u:unknown,w:warning,c:critical,p:pending
host_name list +0 ref=host aliases=host,master_host,master_host_name
hostgroup_name list +0 ref=hostgroup aliases=hostgroup,hostgroups
inherits_parent bool default=0
name string
notification_failure_criteria options aliases=notification_failure_options
  letters=o:ok,u:unknown,w:warning,c:critical,p:pending
register bool default=1
service_description string +0 ref=service
  aliases=description,master_description,master_service_description
servicegroup_name list +0 ref=servicegroup aliases=servicegroup,servicegroups
use list
[hostescalation] key=host_name,hostgroup_name,first_notification,last_notification
contact_groups list +0 ref=contactgroup
contacts list +0 ref=contact
escalation_options options letters=d:down,u:unreachable,r:recovery default=a
escalation_period string 0 ref=timeperiod
first_notification int default=-2
host_name list +0 ref=host aliases=host
hostgroup_name list +0 ref=hostgroup aliases=hostgroup,hostgroups
last_notification int default=-2
name string
notification_interval number
register bool default=1
use list
[serviceescalation] key=host_name,hostgroup_name,first_notification,last_notification
contact_groups list +0 ref=contactgroup
contacts list +0 ref=contact
escalation_options options letters=w:warning,u:unknown,c:critical,r:recovery default=a
escalation_period string 0 ref=timeperiod
first_notification int default=-2
host_name list +0 ref=host aliases=host
hostgroup_name list +0 ref=hostgroup aliases=hostgroup,hostgroups
last_notification int default=-2
name string
notification_interval number
register bool default=1
service_description list +0 ref=service aliases=description
servicegroup_name list +0 ref=servicegroup aliases=servicegroup,servicegroups
use list
[hostextinfo] key=host_name,hostgroup_name
2d_coords coords
3d_coords coords
action_url string 0
host_name list 0
hostgroup_name list 0 aliases=hostgroup
icon_image string 0
icon_image_alt string 0
name string
notes string 0
notes_url string 0
register bool default=1
statusmap_image string 0 aliases=gd2_image
use list
vrml_image string 0
[serviceextinfo] key=service_description,host_name,hostgroup_name
action_url string 0
host_name list 0
hostgroup_name list 0 aliases=hostgroup
icon_image string 0
icon_image_alt string 0
name string
notes string 0
notes_url string 0
register bool default=1
service_description string 0
use list
"""


def _attribute(line: str) -> Attribute:
    name, kind, *rest = line.split(" ")
    flags = rest.pop(0) if rest and "=" not in rest[0] else ""
    settings = dict(item.split("=", 1) for item in rest)
    letters = dict(item.split(":") for item in settings.get("letters", "").split(",") if item)
    return Attribute(
        name=name,
        kind=kind,
        additive="+" in flags,
        nullable="0" in flags,
        repeatable="*" in flags,
        ref=settings.get("ref", ""),
        aliases=tuple(filter(None, settings.get("aliases", "").split(","))),
        letters=letters,
        default=settings.get("default", ""),
    )


def _read(table: str) -> dict[str, ObjectType]:
    types: dict[str, ObjectType] = {}
    for section in table.strip().replace("\n  ", " ").split("\n["):
        head, *lines = section.lstrip("[").splitlines()
        name, _, rest = head.partition("] key=")
        key, _, custom = rest.partition(" ")
        attributes = {item.name: item for item in map(_attribute, lines)}
        spellings = dict(attributes)
        for item in attributes.values():
            spellings.update(dict.fromkeys(item.aliases, item))
        types[name] = ObjectType(
            name=name,
            key=tuple(key.split(",")),
            custom_variables=custom == "custom",
            attributes=attributes,
            spellings=spellings,
        )
    return types


OBJECT_TYPES: Mapping[str, ObjectType] = _read(_TABLE)
"""Every object type by the word behind ``define``."""

IGNORED = frozenset(
    {"failure_prediction_enabled", "failure_prediction_options", "parallelize_check"}
)
"""Attributes of hosts and services that the core accepts without any effect."""

WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


_NUMBER = re.compile(r"\s*[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")


Json = str | list[str]
"""A value in an answer."""

BLANKS = " \t\r"
"""Characters that are trimmed from lines; all others, also spaces of Unicode, are text."""


NULL = "null"
"""The word that cancels inheritance."""


BARE_SEMICOLON = re.compile(r"(?<!\\);")
"""The begin of a comment: a semicolon without a backslash in front."""

_ARRAYS = frozenset({"list", "options", "pairs"})
_BREAKS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")

LONGEST_NAME = 200
"""Characters of the name of an attribute."""


def object_type(word: object) -> ObjectType:
    """The type that a ``:TYPE`` value names. Raises BadRequest."""
    kind = OBJECT_TYPES.get(word) if isinstance(word, str) else None
    if kind is None:
        raise BadRequest("bad request", f":TYPE: expected one of {', '.join(OBJECT_TYPES)}")
    return kind


def is_array(kind: str, name: str) -> bool:
    """Whether an attribute of an object type is an array of strings in JSON."""
    declared = OBJECT_TYPES.get(kind)
    attribute = None if declared is None else declared.attributes.get(name)
    if attribute is None:
        return False
    if attribute.kind == "command":
        return name == "event_handler"
    return (attribute.kind in _ARRAYS and not kind.endswith("extinfo")) or name == "use"


def to_json(kind: str, name: str, text: str) -> Json:
    """The JSON form of an attribute's text in the file."""
    return elements(text) if is_array(kind, name) else text


def elements(text: str) -> list[str]:
    """The elements of a comma separated text, trimmed, without empty ones."""
    return [part for part in map(str.strip, text.split(",")) if part]


def listed_names(text: str) -> list[tuple[str, bool]]:
    """The names of a list, and whether each is taken out of it."""
    return [(part.removeprefix("!").strip(), part.startswith("!")) for part in elements(text)]


def core_text(value: str) -> str:
    r"""The value as the core keeps it: ``\;`` has become ``;``."""
    return value.replace("\\;", ";")


def number_of(text: str) -> float:
    """The leading number of a text; other text reads as 0, as in the core."""
    match = _NUMBER.match(text)
    return float(match[0]) if match is not None else 0.0


def is_null(kind: str, name: str, text: str) -> bool:
    """Whether an attribute is set to nothing by the word ``null``."""
    attribute = OBJECT_TYPES[kind].attributes.get(name)
    return text == NULL and attribute is not None and attribute.nullable


def is_registered(attributes: Mapping[str, str | None]) -> bool:
    """Whether ``register`` makes an object more than a template."""
    return (attributes.get("register") or "").strip()[:1] != "0"


def texts(kind: str, values: Mapping[str, Any]) -> dict[str, str | None]:
    """Attributes of a request as texts for the file, by canonical name.

    None stands for ``null``; every key that begins with ``:`` is left out. Raises BadRequest that
    names the attribute.
    """
    written: dict[str, str | None] = {}
    spelled: dict[str, str] = {}
    for given, value in values.items():
        if given.startswith(":"):
            continue
        name = canonical(kind, given)
        if name in written:
            raise _wrong(given, f"it means the same as {spelled[name]}; expected one of them")
        spelled[name] = given
        written[name] = None if value is None else text_of_value(kind, name, value)
    return written


def canonical(kind: str, name: str) -> str:
    """The attribute that a name in a request means. Raises BadRequest for what is no name."""
    stripped = " ".join(name.split()) if kind == "timeperiod" else name
    attribute = OBJECT_TYPES[kind].spellings.get(stripped)
    if attribute is not None:
        return attribute.name
    if not stripped or len(stripped) > LONGEST_NAME or not stripped.isprintable():
        raise _wrong(name, "expected the name of an attribute")
    blank = kind == "timeperiod" and not stripped.startswith("_")
    if stripped[0] in "#;}{" or any(letter in ";\\" for letter in stripped):
        raise _wrong(name, "expected the name of an attribute")
    if stripped == "define" or (not blank and any(map(str.isspace, stripped))):
        raise _wrong(name, "expected the name of an attribute, without spaces")
    return stripped


def text_of_value(kind: str, name: str, value: Any) -> str:
    """The text that stands for a request's value. Raises BadRequest naming the attribute."""
    array = is_array(kind, name)
    if isinstance(value, list):
        parts = [_scalar(name, part).strip() for part in value]
        return ",".join(part for part in parts if part or not array)
    text = _scalar(name, value)
    return ",".join(elements(text)) if array else text


def _scalar(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _wrong(name, "expected a number")
        return repr(value).removesuffix(".0")
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        raise _wrong(name, "expected a text, a number, true, false or a list of them")
    return _clean(name, value)


def _clean(name: str, text: str) -> str:
    """One line that reads back as it is: line breaks become spaces, a bare ``;`` is escaped."""
    text = BARE_SEMICOLON.sub(r"\\;", _BREAKS.sub(" ", text).strip(BLANKS))
    if any((ord(letter) < 32 and letter != "\t") or 127 <= ord(letter) < 160 for letter in text):
        raise _wrong(name, "expected a text without control characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _wrong(name, "expected a text that UTF-8 can write") from None
    return text


def _wrong(name: str, expected: str) -> BadRequest:
    readable = name.encode("utf-8", "replace").decode()[:LONGEST_NAME]
    return BadRequest("bad request", f"{readable}: {expected}")

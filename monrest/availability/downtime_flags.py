"""Which objects of a report are in downtime while a log goes by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from attrs import define, field

from monrest.logs.state_events import DowntimeEvent, ObjectKey

T = TypeVar("T")


@define(eq=False)
class DowntimeFlag:
    """Whether an object is in downtime; shared by a host and its services."""

    set: bool = False


@define(eq=False)
class DowntimeFlags(Generic[T]):
    """The flags of all objects; ``objects`` are what a report knows of each, by key."""

    objects: dict[ObjectKey, T] = field(init=False, factory=dict)
    _of_host: dict[str, list[T]] = field(init=False, factory=dict)
    _flags: dict[ObjectKey, DowntimeFlag] = field(init=False, factory=dict)

    def add(self, key: ObjectKey, make: Callable[[DowntimeFlag, DowntimeFlag], T]) -> T:
        """Take in, and give, what ``make`` makes of the object's flag and that of its host."""
        own = self._flags.setdefault(key, DowntimeFlag())
        host = self._flags.setdefault((key[0], ""), DowntimeFlag())
        self.objects[key] = made = make(own, host)
        self._of_host.setdefault(key[0], []).append(made)
        return made

    def concerned(self, event: DowntimeEvent) -> Sequence[T]:
        """Give the objects whose downtime it is: that of a host is one of its services as well."""
        if event.key not in self._flags:
            return ()
        host, service = event.key
        return (self.objects[event.key],) if service else self._of_host.get(host, ())

    def follow(self, event: DowntimeEvent) -> None:
        """Set the flag; nothing happens for an object that is in no report."""
        flag = self._flags.get(event.key)
        if flag is not None:
            flag.set = event.started

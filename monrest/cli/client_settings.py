"""Address, key and user: options, environment, configuration files, in this order.

A key, user or ``insecure`` of a file belongs to the ``url`` of that file: it is used for that URL,
for one of a less important file and for the default, never for one that the command line, the
environment or a more important file names. So no key goes to a server that it was not made for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from monrest.cli.command_line import Pairs
from monrest.cli.options import DEFAULT_URL, SYSTEM_FILE
from monrest.cli.output import UsageError, note
from monrest.client.exchange import ClientError, ServerAddress, parse_address

_TIMEOUT = 60.0
_LONGEST_TIMEOUT = 1e6
_KINDS = {"url": str, "key": str, "user": str, "insecure": bool}
_WANTED = {str: "a text", bool: "true or false"}


class SettingsSource(NamedTuple):
    """One place of settings; ``explicit`` ones go with every URL."""

    name: str
    values: Mapping[str, Any]
    explicit: bool = False


class ClientSettings(NamedTuple):
    """Address, key and user for the daemon.

    ``key_source`` and ``url_source`` say in words where they come from, empty for no key.
    ``unused_key`` names a file whose key was not used because its URL is another one.
    """

    address: ServerAddress
    url_source: str
    key: str = ""
    key_source: str = ""
    unused_key: str = ""
    user: str = ""
    insecure: bool = False
    timeout: float = _TIMEOUT
    sites: tuple[str, ...] = ()
    verbose: bool = False
    quiet: bool = False

    def say(self, text: str) -> None:
        """Tell something on standard error when ``--verbose`` is given."""
        if self.verbose:
            note(text)

    def hint(self, text: str) -> None:
        """Tell something on standard error unless ``--quiet`` is given."""
        if not self.quiet:
            note(text)


def settings(
    given: Pairs,
    environment: Mapping[str, str] | None = None,
    files: Sequence[str] | None = None,
) -> ClientSettings:
    """Read all sources; ``given`` are options of the command line. Raises ClientError."""
    environment = os.environ if environment is None else environment
    options = dict(given)
    quiet = "quiet" in options
    sources = [
        _of_options(options),
        _of_environment(environment),
        *(_of_file(path, quiet=quiet) for path in files_of(environment, files)),
        SettingsSource("the default", {"url": DEFAULT_URL}),
    ]
    sources = [source for source in sources if source.values]
    url, url_source, level = next(
        (source.values["url"], source, level)
        for level, source in enumerate(sources)
        if "url" in source.values
    )
    try:
        address = parse_address(url)
    except ValueError as error:
        raise UsageError(f"the URL of {url_source.name}: {error}") from None
    usable = [source for at, source in enumerate(sources) if source.explicit or at <= level]
    key_source = next((source for source in usable if source.values.get("key")), None)
    skipped = next((source.name for source in sources if source.values.get("key")), "")
    return ClientSettings(
        address=address,
        url_source=url_source.name,
        key=_key(key_source.values["key"], key_source.name) if key_source else "",
        key_source=key_source.name if key_source else "",
        unused_key="" if key_source else skipped,
        user=_header(str(_first(usable, "user", ""))),
        insecure=bool(_first(usable, "insecure", False)),
        timeout=_seconds(options["timeout"]) if "timeout" in options else _TIMEOUT,
        sites=tuple(
            site.strip()
            for name, value in given
            if name == "backend"
            for site in value.split(",")
            if site.strip()
        ),
        verbose="verbose" in options,
        quiet=quiet,
    )


def _first(sources: Sequence[SettingsSource], name: str, otherwise: Any) -> Any:
    return next((source.values[name] for source in sources if name in source.values), otherwise)


def files_of(environment: Mapping[str, str], files: Sequence[str] | None = None) -> Sequence[str]:
    """The configuration files in the order in which they count."""
    if files is not None:
        return files
    home = environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111  start-up time
    return (f"{home}/monrest/client.toml", SYSTEM_FILE)


def _of_options(options: Mapping[str, str]) -> SettingsSource:
    values: dict[str, Any] = {
        key: options[name]
        for key, name in (("url", "url"), ("key", "key"), ("user", "auth"))
        if name in options
    }
    if "insecure" in options:
        values["insecure"] = True
    return SettingsSource("the command line", values, explicit=True)


def _of_environment(environment: Mapping[str, str]) -> SettingsSource:
    values = {
        name: environment[f"MONREST_{name.upper()}"]
        for name in ("url", "key", "user")
        if environment.get(f"MONREST_{name.upper()}")
    }
    names = " and ".join(f"MONREST_{name.upper()}" for name in values)
    return SettingsSource(f"the environment ({names})", values, explicit=True)


def _of_file(path: str, *, quiet: bool) -> SettingsSource:
    """Read a file; one that does not exist has nothing to say."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123  pathlib costs 8 ms at start
            mode = os.fstat(file.fileno()).st_mode
            raw = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return SettingsSource(path, {})
    except OSError as error:
        if not quiet:
            note(f"monrest: {path}: {error.strerror}, going on without it")
        return SettingsSource(path, {})
    import tomllib

    try:
        document = tomllib.loads(raw.decode("utf-8"))
    except ValueError as error:  # UnicodeDecodeError is one as well
        raise ClientError(f"{path}: not valid TOML: {error}") from None
    for name, value in document.items():
        kind = _KINDS.get(name)
        if kind is None:
            raise ClientError(f"{path}: {name}: unknown key, expected {', '.join(_KINDS)}")
        if not isinstance(value, kind):
            raise ClientError(f"{path}: {name}: expected {_WANTED[kind]}")
    if "key" in document and mode & stat.S_IROTH and not quiet:
        note(f"monrest: {path} holds a key and all users can read it: chmod 600 {path}")
    return SettingsSource(path, document)


def _key(text: str, source: str) -> str:
    """The key itself, read from its file when ``text`` is ``@FILE``."""
    if text.startswith("@"):
        path = os.path.expanduser(text[1:])  # noqa: PTH111  pathlib costs 8 ms at start
        try:
            with open(path, encoding="ascii") as file:  # noqa: PTH123  as above
                text = file.read()
        except OSError as error:
            raise ClientError(f"the key of {source}: {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            text = "\n"
    text = text.strip()
    if not (text.isascii() and text.isprintable() and text):
        raise ClientError(f"the key of {source}: expected letters, digits and underscores")
    return text


def _header(text: str) -> str:
    if not text.isprintable():
        raise UsageError("--auth: expected a name without control characters")
    return text


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < _LONGEST_TIMEOUT:
        raise UsageError(f"--timeout: expected seconds, got {text!r}")
    return seconds

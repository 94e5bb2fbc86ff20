"""The sites of an old installation, as tables of ``[[sites]]``, and references to them.

Rules: docs/spec/import.md, "Sites".
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from attrs import define, field, frozen

from monrest.importer.blocks import SettingBlock, items
from monrest.importer.import_lines import ImportLines, Outcome
from monrest.importer.installation import Installation
from monrest.importer.old_values import truth

KIND = "site"
_BACKEND = "Thruk::Backend"
_KEY_DIGITS = 5
_TOOL_TEXTS = ("core_conf", "core_type", "obj_check_cmd", "obj_reload_cmd", "git_base_dir")
_TOOL_LISTS = ("obj_dir", "obj_file", "obj_exclude", "obj_readonly", "obj_resource_file")
_TOOL_PATHS = frozenset({"core_conf", "git_base_dir", "obj_dir", "obj_file", "obj_resource_file"})
_UNKNOWN_OPTIONS = {
    "fallback_peer": "further addresses are for an LMD, see lmd.address",
    "proxy": "there are no proxies",
}


@frozen(kw_only=True)
class KnownSite:
    """The names by which records may refer to a site."""

    key: str
    name: str
    section: str


@define(eq=False)
class Backends:
    """``tables`` for the configuration, ``comments`` for what needs another side first.

    ``known`` are the sites that exist here.
    """

    tables: list[dict[str, Any]] = field(factory=list)
    comments: list[str] = field(factory=list)
    sites: list[KnownSite] = field(factory=list)

    def named(self, text: str) -> KnownSite | None:
        by_key, by_name = self._by_words()
        return by_key.get(text) or by_name.get(text)

    def _by_words(self) -> tuple[dict[str, KnownSite], dict[str, KnownSite]]:
        return {site.key: site for site in self.sites}, {site.name: site for site in self.sites}

    def remembered(self, value: Any) -> dict[str, str]:
        """The ids and names of sites that a record is for, all of them if empty.

        Unknown ones keep their keys.
        """
        names: dict[str, str] = {}
        by_key, by_name = self._by_words()
        whole = value if isinstance(value, Mapping) else {"backends": value}
        listed = whole.get("backends")
        for item in listed if isinstance(listed, list) else [listed]:
            pairs = item.items() if isinstance(item, Mapping) else [(item, item)]
            for key, name in pairs:
                if not isinstance(key, str) or not key:
                    continue
                site = by_key.get(key) or by_name.get(key) or by_name.get(str(name))
                names[site.key if site else key] = site.name if site else str(name or key)
        sections = whole.get("sections")
        for section in sections if isinstance(sections, list) else []:
            path = str(section).strip("/")
            for site in self.sites:
                if site.section == path or site.section.startswith(f"{path}/"):
                    names[site.key] = site.name
        return names


def read_backends(installation: Installation, default_resource: str) -> Backends:
    """All sites in their order; ``default_resource`` is the resource file of those without one."""
    backends = Backends()
    taken: set[str] = set()
    for block in (installation.main, installation.local):
        for peer in block.joined("Component", _BACKEND).inner("peer"):
            key = _key(peer, taken)
            taken.add(key)
            _read_peer(installation, backends, peer, key, default_resource)
    return backends


def _key(peer: SettingBlock, taken: Iterable[str]) -> str:
    """The key by which records name a site; it comes out as it was in the old front end."""
    given = re.sub("[^A-Za-z0-9]", "", peer.text("id"))
    if not given:
        options = peer.joined("options")
        addresses = options.all("peer")
        text = f"{addresses[0].value if addresses else ''} {peer.text('name')}"
        digest = hashlib.md5(text.encode("utf-8"), usedforsecurity=False).hexdigest()
        given = digest[:_KEY_DIGITS]
    key, number = given, 0
    while key in taken:
        key, number = f"{given}{number}", number + 1
    return key


def _read_peer(
    installation: Installation,
    backends: Backends,
    peer: SettingBlock,
    key: str,
    default_resource: str,
) -> None:
    lines = installation.lines
    name, kind = peer.text("name"), peer.text("type").lower()
    if not name or not kind:
        lines.add(KIND, peer.where, Outcome.REFUSED, "", "expected name and type")
        return
    active = peer.last("active")
    if active is not None and not truth(active.value):
        lines.add(KIND, peer.where, Outcome.LEFT, name, "it is not active")
        return
    options = peer.joined("options")
    addresses = [setting.value.strip() for setting in options.all("peer")]
    if kind == "http":
        _comment(backends, lines, peer, key, addresses)
        return
    if kind != "livestatus":
        lines.add(KIND, peer.where, Outcome.LEFT, name, "only livestatus can be asked")
        return
    if not addresses or not addresses[0]:
        lines.add(KIND, peer.where, Outcome.REFUSED, name, "expected an address")
        return
    address = _address(installation, addresses[0])
    table: dict[str, Any] = {"id": key, "name": name, "address": address}
    if section := peer.text("section").strip("/"):
        table["section"] = section
    if truth(peer.text("hidden")):
        table["hidden"] = True
    if groups := items(peer.all("groups")):
        table["groups"] = groups
    _files(installation, table, options, default_resource)
    tool = _tool(installation, peer)
    if tool:
        table["configtool"] = tool
    backends.tables.append(table)
    backends.sites.append(KnownSite(key=key, name=name, section=table.get("section", "Default")))
    lines.add(KIND, peer.where, Outcome.NEW, f"{key} {name!r} at {address}")
    _lost(lines, peer, key, options, len(addresses))


def _lost(
    lines: ImportLines, peer: SettingBlock, key: str, options: SettingBlock, addresses: int
) -> None:
    """A line for what of a site is not taken over."""
    if addresses > 1:
        lines.add(KIND, peer.where, Outcome.CHANGED, key, "only the first of its addresses is used")
    for option, reason in _UNKNOWN_OPTIONS.items():
        if setting := options.last(option):
            lines.add(KIND, setting.where, Outcome.LEFT, f"{key}: {option}", reason)
    if (display := peer.last("display")) and not truth(display.value):
        lines.add(
            KIND,
            display.where,
            Outcome.LEFT,
            f"{key}: display",
            "it is shown; hidden = true hides it",
        )
    if (setting := peer.last("authoritative")) and truth(setting.value):
        lines.add(
            KIND, setting.where, Outcome.LEFT, f"{key}: authoritative",
            "rights come from the contacts of all sites",
        )  # fmt: skip


def _address(installation: Installation, text: str) -> str:
    scheme, separator, rest = text.partition("://")
    if separator and scheme.lower() == "tls":
        return f"tls:{rest.rstrip('/')}"
    if separator:
        return f"tcp:{rest.rstrip('/')}"
    if ":" not in text:
        return f"unix:{installation.absolute(text)}"
    return f"tcp:{text}"


def _files(
    installation: Installation, table: dict[str, Any], options: SettingBlock, resource: str
) -> None:
    if table["address"].startswith("tls:"):
        for old, new in (("cert", "tls_cert_file"), ("key", "tls_key_file"),
                         ("ca_file", "tls_ca_file")):  # fmt: skip
            if text := options.text(old):
                table[new] = installation.absolute(text)
        verify = options.last("verify")
        if verify is not None and not truth(verify.value):
            table["tls_verify"] = False
        if name := options.text("verifycn_name"):
            table["tls_server_name"] = name
    if text := options.text("resource_file") or resource:
        table["resource_file"] = installation.absolute(text)


def _tool(installation: Installation, peer: SettingBlock) -> dict[str, Any]:
    block = peer.joined("configtool")
    tool: dict[str, Any] = {}
    for key in _TOOL_TEXTS:
        if text := block.text(key):
            tool[key] = installation.absolute(text) if key in _TOOL_PATHS else text
    for key in _TOOL_LISTS:
        texts = items(block.all(key), commas=False)
        if texts:
            tool[key] = [
                installation.absolute(text) if key in _TOOL_PATHS else text for text in texts
            ]
    if truth(block.text("disable")):
        tool["disable"] = True
    return tool


def _comment(
    backends: Backends, lines: ImportLines, peer: SettingBlock, key: str, addresses: list[str]
) -> None:
    """Write a site that is another front end as a comment; its secret is not taken over."""
    name = peer.text("name")
    try:
        parts = urlsplit(addresses[0] if addresses else "")
        where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
    except ValueError:
        where = "https://HOST/APP"
    table = {"id": key, "name": name, "address": where, "auth_key": "KEY OF A SUPERUSER THERE"}
    backends.comments += [
        "",
        "# Another front end: works once the other side runs monrest.",
        "# [[sites]]",
        *(
            f"# {setting_key} = {json.dumps(value, ensure_ascii=False)}"
            for setting_key, value in table.items()
        ),
    ]
    lines.add(
        KIND, peer.where, Outcome.HINT, f"{key} {name!r}",
        "a comment in the configuration: works once the other side runs monrest, with the API key "
        "of a superuser there and without a proxy",
    )  # fmt: skip

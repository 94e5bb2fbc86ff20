"""The settings of an old installation as a configuration of this one.

Rules: docs/spec/import.md, "Settings".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from attrs import define, field

from monrest.base.values import ROLES
from monrest.importer import old_values
from monrest.importer.backends import Backends
from monrest.importer.blocks import OldSetting, SettingBlock, items
from monrest.importer.import_lines import Outcome
from monrest.importer.installation import CONFIGURATION, Installation
from monrest.reports.templates import TEMPLATES

_SHORT = "authorized_for_"
_GROUPS = "authorized_contactgroup_for_"
_ADMIN_BY_BOTH = ("system_commands", "configuration_information")
_QUIET = re.compile(r"_cmd$|headers|obfuscate")
_YEAR = 365 * 86400
_LIFETIME = 604800

_SETTINGS: tuple[tuple[str, str, str, str, str], ...] = (
    ("", "use_strict_host_authorization", "flag", "auth", "strict_host_authorization"),
    ("", "api_keys_enabled", "flag", "auth", "api_keys_enabled"),
    ("", "make_auth_user_lowercase", "flag", "auth", "lowercase_user"),
    ("", "make_auth_user_uppercase", "flag", "auth", "uppercase_user"),
    ("", "cookie_secure_only", "flag", "auth", "cookie_secure"),
    ("", "max_api_keys_per_user", "whole", "auth", "max_api_keys_per_user"),
    ("", "cookie_auth_domain", "text", "auth", "cookie_domain"),
    ("", "locked_message", "text", "auth", "locked_message"),
    ("", "can_submit_commands", "flag", "commands", "can_submit_commands"),
    ("", "require_comments_for_disable_cmds", "flag", "commands", "require_comments_for_disable"),
    ("", "command_disabled", "list", "commands", "disabled"),
    ("", "command_enabled", "list", "commands", "enabled"),
    ("", "downtime_duration", "span", "commands", "downtime_duration"),
    ("", "show_full_commandline", "whole", "display", "show_full_commandline"),
    ("", "first_day_of_week", "whole", "display", "first_day_of_week"),
    ("", "show_full_commandline_source", "text", "display", "show_full_commandline_source"),
    ("", "expand_user_macros", "list", "display", "expand_user_macros"),
    ("BP", "refresh_interval", "whole", "bp", "refresh_interval"),
    ("BP", "spool_dir", "path", "bp", "spool_dir"),
    ("BP", "default_filter", "list", "bp", "default_filter"),
    ("BP", "default_state_order", "list", "bp", "default_state_order"),
    ("BP", "sync_downtime_ack_state", "whole", "bp", "sync_downtime_ack_state"),
    ("BP", "objects_save_file", "path", "bp", "objects_save_file"),
    ("BP", "objects_save_format", "text", "bp", "objects_save_format"),
    ("BP", "objects_reload_cmd", "text", "bp", "objects_reload_cmd"),
    ("BP", "pre_save_cmd", "text", "bp", "pre_save_cmd"),
    ("BP", "post_save_cmd", "text", "bp", "post_save_cmd"),
    ("BP", "post_refresh_cmd", "text", "bp", "post_refresh_cmd"),
    ("BP", "read_only", "flag", "bp", "read_only"),
    ("Reports2", "max_concurrent_reports", "whole", "reports", "concurrent"),
    ("Reports2", "report_subject_prepend", "text", "mail", "subject_prefix"),
    ("Panorama", "new_files_start_at", "whole", "panorama", "new_files_start_at"),
    ("Panorama", "readonly", "flag", "panorama", "readonly"),
    ("NodeControl", "parallel_tasks", "whole", "nodecontrol", "parallel_tasks"),
    ("ConfigTool", "obj_readonly", "texts", "configtool", "obj_readonly"),
    ("ConfigTool", "pre_obj_save_cmd", "text", "configtool", "pre_obj_save_cmd"),
    ("ConfigTool", "post_obj_save_cmd", "text", "configtool", "post_obj_save_cmd"),
    ("ConfigTool", "git_base_dir", "path", "configtool", "git_base_dir"),
)
"""Component, or nothing for plain keys, old key, kind of its value, table and key."""

_HOOKS = (
    ("BP", "bp", ("pre_save_cmd", "post_save_cmd", "post_refresh_cmd")),
    ("ConfigTool", "configtool", ("pre_obj_save_cmd", "post_obj_save_cmd")),
)
_PAGES = {"bp": "docs/spec/bp.md", "configtool": "docs/spec/objectconfig.md"}
_OAUTH = "logins of others go through a proxy, see auth.remote_user_header"
_HINTS = (
    ("default_user_name", "never taken over: every client without credentials would be this user"),
    ("auth_oauth", _OAUTH),
    ("lmd_remote", "see lmd.address"),
)
_ONLY_WHEN_TRUE = (
    ("cluster_enabled", "a cluster needs PostgreSQL and the new URLs, see [cluster]"),
    ("use_ssl_authentication", "client certificates: a proxy and auth.remote_user_header"),
)
_NEW_NAMES = "the scripts get variables with other names: MON_… "


@define(eq=False)
class Translation:
    """``document`` is the configuration; ``password`` goes into a file of its own.

    ``roles`` are rights that files of users have, by role.
    """

    installation: Installation
    backends: Backends
    roles: Mapping[str, Iterable[str]]
    document: dict[str, Any] = field(init=False, factory=dict)
    places: dict[tuple[int | str, ...], str] = field(init=False, factory=dict)
    password: str = field(init=False, default="", repr=False)
    htpasswd: bytes | None = field(init=False, default=None, repr=False)

    def translate(self) -> None:
        self._names()
        self._simple()
        self._auth()
        self._roles()
        self._commands()
        self._display()
        self._logcache()
        self._processes()
        self._mails()
        self._others()
        self._editor()
        self._hints()
        if self.backends.tables:
            self.document["sites"] = self.backends.tables

    def _last(self, key: str) -> OldSetting | None:
        """A plain key: the value of an operator, else what was shipped, else the default."""
        parts = self.installation
        return parts.local.last(key) or parts.main.last(key) or parts.cgi.last(key)

    def _all(self, key: str) -> list[OldSetting]:
        parts = self.installation
        return parts.local.all(key) or parts.main.all(key) or parts.cgi.all(key)

    def _component(self, name: str) -> SettingBlock:
        """A component; a key that an operator set replaces what was shipped."""
        main, local = (
            block.joined("Component", f"Thruk::Plugin::{name}")
            for block in (self.installation.main, self.installation.local)
        )
        keys = {setting.key for setting in local.settings}
        local.settings = [
            setting for setting in main.settings if setting.key not in keys
        ] + local.settings
        local.blocks = main.blocks + local.blocks
        return local

    def _put(self, where: str, table: str, key: str, value: Any, note: str = "") -> None:
        """Put a value into a table, and tell; values of commands and the like are not shown."""
        self.document.setdefault(table, {})[key] = value
        self.places[table, key] = where
        text = "" if _QUIET.search(key) else f" = {_display(value)}"
        outcome = Outcome.CHANGED if note else Outcome.NEW
        self._tell(where, outcome, f"{table}.{key}{text}", note)

    def _tell(self, where: str, outcome: Outcome, target: str, note: str = "") -> None:
        self.installation.lines.add(CONFIGURATION, where, outcome, target, note)

    def _take(self, setting: OldSetting | None, table: str, key: str, kind: str) -> None:
        """Put the value of a setting, with a line where it is not what it should be."""
        if setting is None or (kind != "flag" and not setting.value.strip()):
            return
        value = _READERS[kind](setting.value)
        if kind == "path":
            value = self.installation.absolute(setting.value)
        if value is None:
            self._tell(setting.where, Outcome.REFUSED, f"{table}.{key}", "expected a number")
            return
        self._put(setting.where, table, key, value)

    def _names(self) -> None:
        prefix = self._last("product_prefix")
        word = prefix.value.strip("/ ").lower() if prefix else "thruk"
        where = prefix.where if prefix else "the old words"
        self._put(where, "names", "app", word)
        self._put(where, "names", "dist", "omd")
        self._put(where, "names", "cm", "ansible")

    def _simple(self) -> None:
        for component, old, kind, table, key in _SETTINGS:
            block = self._component(component) if component else None
            if kind in ("list", "texts"):
                settings = self._all(old) if block is None else block.all(old)
                if texts := items(settings, commas=kind == "list"):
                    self._put(settings[-1].where, table, key, texts)
            else:
                setting = self._last(old) if block is None else block.last(old)
                self._take(setting, table, key, kind)
        for component, table, keys in _HOOKS:
            block = self._component(component)
            for key in keys:
                if hook := block.last(key):
                    note = f"{_NEW_NAMES}({_PAGES[table]})"
                    self._tell(hook.where, Outcome.HINT, f"{table}.{key}", note)

    def _auth(self) -> None:
        if setting := self._last("cookie_auth_session_timeout"):
            seconds = old_values.span(setting.value)
            idle = seconds if seconds and seconds > 0 else _YEAR
            self._put(setting.where, "auth", "session_idle", idle)
            if idle > _LIFETIME:
                self._put(setting.where, "auth", "session_lifetime", idle)
        failed = self._last("cookie_auth_disable_after_failed_logins")
        if failed is None:
            self._put("without a limit of failed logins", "auth", "lock_after_failed_logins", 0)
        self._take(failed, "auth", "lock_after_failed_logins", "whole")
        if setting := self._last("make_auth_replace_regex"):
            pair = old_values.replacement(setting.value)
            if pair is None:
                self._tell(setting.where, Outcome.REFUSED, "auth.user_replace",
                           "expected s/pattern/text/flags")  # fmt: skip
            else:
                self._put(setting.where, "auth", "user_replace", list(pair))
        self._passwords()

    def _passwords(self) -> None:
        parts = self.installation
        setting = self._component("ConfigTool").last("htpasswd")
        named = parts.path_here(setting.value) if setting else None
        usual = (named, parts.etc / "htpasswd", parts.etc.parent / "htpasswd")
        path = next(
            (candidate for candidate in usual if candidate is not None and candidate.is_file()),
            None,
        )
        if path is not None:
            self.htpasswd = parts.small_file("passwords", path)
            if self.htpasswd is not None:
                self._check_passwords(parts.display(path), self.htpasswd)
        elif setting is not None:
            self._tell(setting.where, Outcome.REFUSED, "auth.htpasswd_file", "no such file")

    def _check_passwords(self, source: str, content: bytes) -> None:
        from monrest.accounts.htpasswd import parse

        users, problems = parse(content)
        self.installation.lines.add(
            "passwords", source, Outcome.NEW, "auth.htpasswd_file", f"{len(users)} users"
        )
        for number, reason in problems:
            self.installation.lines.add(
                "passwords", f"{source}:{number}", Outcome.HINT, "", f"set it anew: {reason}"
            )

    def _roles(self) -> None:
        users, groups = self._of_roles(_SHORT), self._of_roles(_GROUPS)
        for role, names in self.roles.items():
            users.setdefault(role, []).extend(names)
        both = self._last("admin_role_from_system_and_conf")
        if both is None or old_values.truth(both.value):
            for table, members in (("roles", users), ("contactgroup_roles", groups)):
                first, second = (members.get(role, []) for role in _ADMIN_BY_BOTH)
                admins = [name for name in first if name in second]
                new = [admin for admin in admins if admin not in members.get("admin", [])]
                if new:
                    members["admin"] = [*members.get("admin", []), *new]
                    self._tell(
                        " + ".join(_ADMIN_BY_BOTH), Outcome.CHANGED,
                        f"auth.{table}.admin += {_display(new)}",
                        "who had both was an administrator",
                    )  # fmt: skip
        for table, members in (("roles", users), ("contactgroup_roles", groups)):
            clean = {role: list(dict.fromkeys(names)) for role, names in members.items() if names}
            if clean:
                self.document.setdefault("auth", {})[table] = clean
            for role, names in clean.items():
                self._tell(
                    f"{_SHORT}{role}", Outcome.NEW, f"auth.{table}.{role} = {_display(names)}"
                )
                for name in names:
                    if "*" in name and name != "*":
                        reason = "* stands for any text here, and names are matched whole"
                        self._tell(f"{_SHORT}{role}", Outcome.HINT, name, reason)

    def _of_roles(self, prefix: str) -> dict[str, list[str]]:
        """The names of each role: both files together, none where an operator set none."""
        parts, roles = self.installation, dict[str, list[str]]()
        keys = {
            setting.key: setting.where
            for block in (parts.cgi, parts.main, parts.local)
            for setting in block.settings
            if setting.key.startswith(prefix)
        }
        for key, where in keys.items():
            role = key.removeprefix(prefix)
            if f"{_SHORT}{role}" not in ROLES:
                self._tell(where, Outcome.LEFT, key, "there is no such role")
                continue
            settings = parts.local.all(key) or parts.main.all(key)
            if settings and not settings[-1].value.strip():
                continue
            roles[role] = items([*parts.cgi.all(key), *settings])
        return roles

    def _commands(self) -> None:
        lock = self._last("lock_author_names")
        if lock is None:
            self._put("without lock_author_names", "commands", "lock_author_names", False)
        self._take(lock, "commands", "lock_author_names", "flag")
        longest = self._last("downtime_max_duration")
        if longest is None:
            self._put("the usual limit", "commands", "downtime_max_duration", 28 * 86400)
        self._take(longest, "commands", "downtime_max_duration", "span")
        defaults = SettingBlock()
        for block in (self.installation.main, self.installation.local):
            defaults.settings += block.joined("cmd_defaults").settings
        for key in ("sticky_ack", "send_notification", "persistent_ack", "persistent_comments"):
            self._take(defaults.last(key), "commands", key, "whole")
            force = defaults.last(f"force_{key}")
            if force is not None and old_values.truth(force.value):
                self._put(force.where, "commands", key, 1, "a request may say otherwise")

    def _display(self) -> None:
        names = items([*self._all("show_custom_vars"), *self._all("expose_custom_vars")])
        for key in ("default_host_columns", "default_service_columns"):
            names += [
                item.partition(":")[0].removeprefix("cust_")
                for item in items(self._all(key))
                if item.startswith("cust_")
            ]
        if names:
            where = self._last("expose_custom_vars") or self._last("show_custom_vars")
            clean = list(dict.fromkeys(names))
            place = where.where if where else "columns of lists"
            self._put(place, "display", "expose_custom_variables", clean)
        patterns = self._all("commandline_obfuscate_pattern")
        if texts := [_referring(pattern.value) for pattern in patterns if pattern.value.strip()]:
            self._put(patterns[-1].where, "display", "commandline_obfuscate_pattern", texts)
        for key in ("server_timezone", "default_user_timezone"):
            setting = self._last(key)
            if setting is not None and _is_zone(setting.value):
                self._put(setting.where, "display", "timezone", setting.value)
                break

    def _logcache(self) -> None:
        used = self._last("logcache")
        if used is None or not used.value.strip():
            return
        self._put(used.where, "logcache", "enabled", True,
                  "it is filled from the cores: older lines than theirs are not here")  # fmt: skip
        compact = self._last("logcache_compact_duration")
        self._take(compact, "logcache", "compact_after", "span")
        self._take(self._last("logcache_clean_duration"), "logcache", "keep", "span")

    def _processes(self) -> None:
        block = self._component("BP")
        if setting := block.last("result_backend"):
            site = self.backends.named(setting.value)
            self._put(setting.where, "bp", "result_backend", site.key if site else setting.value)
        if setting := block.last("objects_templates_file"):
            self._tell(setting.where, Outcome.HINT, "etc/bp_templates.cfg",
                       "the core has to read the templates of business processes")  # fmt: skip

    def _mails(self) -> None:
        block = self._component("Reports2")
        template = block.last("default_template")
        if template is not None and template.value in TEMPLATES:
            self._put(template.where, "reports", "default_template", template.value)
        elif template is not None and template.value:
            self._tell(template.where, Outcome.LEFT, "reports.default_template", "no such template")
        if sender := block.last("report_from_email"):
            address = old_values.mail_address(sender.value)
            self._put(sender.where, "mail", "sender", address)
        headers = block.joined("default_mail_headers").settings
        if headers:
            self._put(
                headers[0].where,
                "mail",
                "headers",
                {header.key: header.value for header in headers},
            )
        kind, host = block.last("mail_type"), block.last("mail_args")
        if kind is None or kind.value.lower() != "smtp" or host is None:
            if block.settings:
                where = kind.where if kind else block.where or "mail_type"
                self._tell(where, Outcome.HINT, "mail.host", "mails need an SMTP server")
            return
        self._put(host.where, "mail", "host", host.value)
        named = block.joined("mail_named_args")
        user, password = named.last("AuthUser"), named.last("AuthPass")
        if user is not None and password is not None and user.value and password.value:
            self.password = password.value
            self._put(user.where, "mail", "username", user.value)
            self._put(user.where, "mail", "security", "starttls",
                      "a password is sent over TLS only: the server must offer it")  # fmt: skip

    def _others(self) -> None:
        control = self._component("NodeControl")
        if others := [setting for setting in control.settings if setting.key != "parallel_tasks"]:
            self._tell(others[0].where, Outcome.HINT, "[[nodecontrol.nodes]]",
                       "how hosts are reached is to be written by hand")  # fmt: skip

    def _editor(self) -> None:
        editors = []
        for block in (self.installation.main, self.installation.local):
            editors += [
                (editor, items(editor.all("groups"))) for editor in block.inner("editor", "")
            ]
            for group in block.inner("Group"):
                editors += [(editor, [group.name]) for editor in group.inner("editor", "")]
        tables = []
        for editor, groups in editors:
            table: dict[str, Any] = {"name": editor.text("name")}
            if groups:
                table["groups"] = groups
            table["files"] = [self._editor_files(files) for files in editor.inner("files", "")]
            tables.append(table)
            self._tell(editor.where, Outcome.NEW, f"[[editor]] {table['name']}")
        if tables:
            self.document["editor"] = tables

    def _editor_files(self, block: SettingBlock) -> dict[str, Any]:
        folders = [self.installation.absolute(setting.value) for setting in block.all("folder")]
        table: dict[str, Any] = {"folder": folders}
        if texts := items(block.all("filter"), commas=False):
            table["filter"] = texts
        for key in ("syntax", "action", "pre_save_cmd", "post_save_cmd"):
            if text := block.text(key):
                table[key] = text
        if summary := block.last("show_summary_prompt"):
            table["show_summary_prompt"] = old_values.truth(summary.value)
        return table

    def _hints(self) -> None:
        for key, reason in _HINTS:
            setting = self._last(key)
            if setting is not None and setting.value:
                self._tell(setting.where, Outcome.HINT, key, reason)
        for key, reason in _ONLY_WHEN_TRUE:
            setting = self._last(key)
            if setting is not None and old_values.truth(setting.value):
                self._tell(setting.where, Outcome.HINT, key, reason)
        login, certificates = self._last("use_authentication"), self._last("use_ssl_authentication")
        off = [
            setting is not None and not old_values.truth(setting.value)
            for setting in (login, certificates)
        ]
        if login is not None and all(off):
            reason = "everything was open to all; here every request has a user"
            self._tell(login.where, Outcome.HINT, "use_authentication", reason)
        for block in (self.installation.main, self.installation.local):
            for provider in block.inner("auth_oauth"):
                self._tell(provider.where, Outcome.HINT, "auth_oauth", _OAUTH)
            for word in ("User", "Group"):
                for provider in block.inner(word):
                    keys = ", ".join(dict.fromkeys(setting.key for setting in provider.settings))
                    if keys:
                        self._tell(provider.where, Outcome.LEFT, f"{word} {provider.name}: {keys}",
                                   "settings for some users alone")  # fmt: skip


def _referring(text: str) -> str:
    """A pattern of command lines, with references to groups as they are written here."""
    return re.sub(r"\$([1-9])", r"\\\1", text) if text.startswith("/") else text


def _is_zone(text: str) -> bool:
    try:
        ZoneInfo(text)
    except (OSError, ValueError, KeyError):
        return False
    return True


def _display(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return str(value)


_READERS: Mapping[str, Callable[[str], Any]] = {
    "flag": old_values.truth,
    "whole": old_values.whole,
    "span": old_values.span,
    "text": lambda text: text,
    "path": lambda text: text,
}

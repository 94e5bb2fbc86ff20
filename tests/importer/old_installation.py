"""An installation of the older front end, written by hand in the shapes that its files have."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

ROBOT, ANNA, OLD = ("robot0key0of0the0old0one_1", "anna0key0of0the0old0one_1", "kept0in0plain0text")
"""Keys as programs send them: of a superuser who acts as robot, of anna, and a dead one."""

SECRET, MAIL_PASSWORD = "old0secret0key_1", "mail-pass-word"
SECRETS = (ROBOT, ANNA, OLD, SECRET, MAIL_PASSWORD, "peer-secret", "log-secret", "$apr1$")
PASSWORD = "correct horse"
MOMENT = 1_790_000_000

MAIN = """\
# what is shipped
product_prefix = thruk
var_path  = /var/lib/thruk
cookie_auth_session_timeout = 1209600
cookie_auth_disable_after_failed_logins = 5
<cmd_defaults>
  sticky_ack     = 2
  persistent_ack = 1
  force_send_notification = 1
</cmd_defaults>
<Component Thruk::Backend>
</Component>
<Component Thruk::Plugin::ConfigTool>
  htpasswd = /etc/thruk/htpasswd
</Component>
"""

CGI = """\
use_authentication=1
default_user_name=everybody
lock_author_names=1
authorized_for_admin=boss
authorized_for_system_commands=anna,boss
authorized_for_configuration_information=anna
authorized_for_all_hosts=anna
authorized_for_all_services=anna,ops*
authorized_for_read_only=
"""

LOCAL = """\
downtime_duration = 1h
downtime_max_duration = 2d
command_disabled = 14,35-36
server_timezone = Europe/Berlin
make_auth_replace_regex = s/\\@example\\.org$//
default_user_name = somebody  # never taken
logcache = mysql://logs:log-secret@localhost:3306/logs
<Component Thruk::Plugin::BP>
  refresh_interval = 2
  result_backend   = Berlin
</Component>
<Component Thruk::Plugin::Reports2>
  report_from_email = Watch <watch@example.org>
  mail_type = smtp
  mail_args = mail.example.org
  <mail_named_args>
    AuthUser = watch
    AuthPass = mail-pass-word
  </mail_named_args>
</Component>
<Group night>
  start_page = x
</Group>
"""

SITES = """\
<Component Thruk::Backend>
  <peer>
    name    = Berlin
    id      = ber-lin
    type    = livestatus
    section = Europe/Germany
    <options>
      peer = {socket}
      peer = 192.0.2.1:6557
    </options>
  </peer>
  <peer>
    name   = Remote
    type   = http
    <options>
      peer = https://user:peer-secret@far.example.org/thruk/
      auth = peer-secret
    </options>
  </peer>
  <peer>
    name   = Gone
    type   = livestatus
    active = 0
    <options>
      peer = 192.0.2.2:6557
    </options>
  </peer>
</Component>
"""

PROCESS = {
    "name": "Mail",
    "backends": {"backends": []},
    "state_type": "soft",
    "nodes": [
        {"id": "node1", "label": "Mail", "function": "worst", "function_args": [],
         "depends": ["in"], "create_obj": 1},
        {"id": "in", "label": "Inbound", "function": "fixed", "function_args": ["OK"]},
    ],
}  # fmt: skip

REPORT = {
    "name": "Nights",
    "desc": "what went down",
    "template": "sla_outage.tt",
    "user": "anna",
    "to": "noc@example.org",
    "params": {"timeperiod": "lastweek", "sla": "99.5", "max_outages_pages": "0"},
    "send_types": [
        {"type": "week", "hour": "6", "minute": "15", "week_day": "1"},
        {"type": "week", "hour": "6", "minute": "15", "week_day": ""},
    ],
    "permissions": [{"type": "group", "name": ["ops"], "perm": "ro"}, ["group", ["ops", 1]]],
    "backends": {"backends": [{"berlin": "Berlin"}]},
    "var": {"is_running": 1},
}

DOWNTIME = {
    "target": "host",
    "host": ["web01"],
    "service": None,
    "duration": "45",
    "fixed": "1",
    "schedule": [{"type": "day", "hour": "2", "minute": "30"}],
    "backends": ["Berlin", "gone1"],
    "comment": "backup",
    "error": "not any more",
    "created_by": "boss",
}

BROADCAST = {
    "name": "Upgrade",
    "text": "tonight",
    "annotation": "info",
    "contacts": [],
    "contactgroups": ["!guests"],
    "expires": "2031-05-01 00:00:00",
    "hide_before": "",
    "author": "boss",
    "authoremail": "boss@example.org",
    "template": 0,
}

DASHBOARD = {
    "file_version": 2,
    "user": "boss",
    "description": "dropped",
    "tab": {
        "xdata": {
            "title": "Mail room",
            "backends": {"backends": [{"berlin": "Berlin"}]},
            "groups": [{"ops": "read-only"}],
        }
    },
    "panlet_1": {"xdata": {"cls": "TP.HostStatusIcon", "general": {"name": "web01"}, "state": 1}},
}

HTPASSWD = (
    "anna:$2y$04$abcdefghijklmnopqrstuuC7lsp6PmaYBVrpqh.b5cj7.tsdSxRaa\ndieter:ab1KqWxYz01Ab\n"
)


def hashed(key):
    """Under which name a key is stored."""
    return hashlib.sha256(key.encode()).hexdigest()


class OldInstallation:
    """A root file system with packages' paths, in ``folder``."""

    def __init__(self, folder, socket="/run/none/live"):
        self.folder = Path(folder)
        self.etc, self.var = self.folder / "etc/thruk", self.folder / "var/lib/thruk"
        self.write("etc/thruk/thruk.conf", MAIN)
        self.write("etc/thruk/cgi.cfg", CGI)
        self.write("etc/thruk/thruk_local.conf", LOCAL)
        self.write("etc/thruk/thruk_local.d/sites.conf", SITES.format(socket=socket))
        self.write("etc/thruk/thruk_local.d/read.me", "<never read")
        self.write("etc/thruk/htpasswd", HTPASSWD)
        self.key(ROBOT, {"superuser": 1, "force_user": "robot", "created": 1, "comment": "cron"})
        self.key(ANNA, {"user": "anna", "created": MOMENT,
                        "roles": ["authorized_for_all_hosts", "authorized_for_flying"]})  # fmt: skip
        self.data(
            f"api_keys/{hashed(ANNA)}.SHA-256.stats", {"last_used": MOMENT, "last_from": "::1"}
        )
        self.write(f"var/lib/thruk/api_keys/{OLD}", "{}")
        self.data("users/anna", {"tz": "Europe/Rome", "roles": ["authorized_for_broadcasts"],
                                 "login": {"last_success": {"time": MOMENT, "ip": "192.0.2.9"}}})  # fmt: skip
        self.data("users/jürgen k", {"tz": "Local Browser", "login": {"failed": "2", "locked": 1}})
        self.data("users/nobody", {"bookmarks": {}})
        self.write("etc/thruk/bp/7.tbp", json.dumps(PROCESS))
        self.data("bp/7.tbp.edit", PROCESS)
        self.data("bp/9.tbp.edit", {**PROCESS, "nodes": []})
        self.data("bp/7.tbp.runtime", {"status": 2})
        self.data("reports/12.rpt", REPORT)
        self.data("reports/13.rpt", {**REPORT, "template": "own.tt"})
        self.data("downtimes/4.tsk", DOWNTIME)
        self.data("downtimes/5.tsk", {**DOWNTIME, "target": "service", "hostgroup": ["web"],
                                      "host": []})  # fmt: skip
        self.data("broadcast/2026-01-02-boss.json", BROADCAST)
        self.write("etc/thruk/panorama/31.tab", json.dumps(DASHBOARD))
        self.write("etc/thruk/panorama/0.tab", "{}")
        self.write("etc/thruk/panorama/script.tab", "#!/bin/sh\necho '{}'\n").chmod(0o755)
        self.write("etc/thruk/panorama/perl.tab", "my $x = 1;\n").chmod(0o755)
        self.data(f"panorama/31.tab.{MOMENT}.a", {**DASHBOARD, "user": "anna"})
        self.data("panorama/31.tab.maint", {"maintenance": "painting"})
        self.data("teams/ops.json", {"roles": []})
        self.write("var/lib/thruk/secret.key", SECRET)
        self.write(f"var/lib/thruk/obj_retention.berlin.{'0' * 64}.dat", "pst0")

    def write(self, name, content):
        """Write a file, and give its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.utime(path, (MOMENT, MOMENT))
        return path

    def data(self, name, value):
        """Write a file of data."""
        return self.write(f"var/lib/thruk/{name}", json.dumps(value, ensure_ascii=False, indent=3))

    def key(self, key, value):
        """Store an API key."""
        return self.data(f"api_keys/{hashed(key)}.SHA-256", value)

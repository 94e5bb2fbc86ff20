"""Who may do what, written by hand: a line for every endpoint and method.

A mark for each caller:

    -  refused with 401, because no user is known
    a  allowed, and sees as much as an administrator
    f  allowed, and sees less than an administrator
    o  allowed, and gets an answer about himself, or what is the same for all
    x  refused with 403 and the words at the end of the line, such as the missing role
    n  not found (404), as what is not one's own
    b  refused with 400, because the request is about a session and came without one
    c  refused with 501, because there is no cluster here
"""

from __future__ import annotations

SYSTEM = "authorized_for_system_information"
READERS = ("read-only contact", "read_only")
"""Callers who may change nothing: x at every method but GET, also where the line says more."""
NO_CHANGE = "authorized_for_read_only forbids every change"
OWN_SESSION = ("POST /mon/login", "POST /mon/logout")
"""What readers may do all the same."""
NO_COMMAND = "you are not allowed to run this command"
BP = "authorized_for_business_processes"
NO_SYSTEM_COMMAND = "you don' have the system_commands role"
NO_LINE = "authorized_for_configuration_information"
NO_OBJECTS = "insufficient permissions for user"

# The roles: admin, host commands, hosts, service commands, services, broadcasts, business
# processes, configuration, panorama, bookmarks, read-only, reports, system commands, system.
ALL = "-aa aaaaaaaaaaaaaa aaa"
OWN = "-oo oooooooooooooo ooo"
BY_HOST = "-ff afafffffffffff afa"
BY_SERVICE = "-ff afffafffffffff ffa"
BY_BOTH = "-ff afffffffffffff ffa"
BY_CONFIGURATION = "-ff affffffaffffff ffa"
NEEDS_ADMIN = "-xx axxxxxxxxxxxxx xxa"
NEEDS_SYSTEM = "-xx axxxxxxxxxxxxa xxa"
COUNTERS = "-xx oxxxxxxxxxxxxo xxo"
REPORT_BY_HOST = "-ff axaxfxxxxxxxxx afa"
REPORT_BY_SERVICE = "-ff axfxaxxxxxxxxx ffa"
REPORT_BY_BOTH = "-ff axfxfxxxxxxxxx ffa"
REPORT_OF_HOST = "-nn axaxnxxxxxxxxx ana"
REPORT_OF_SERVICE = "-nn axnxaxxxxxxxxx nna"
CONFIG = "-xx oxxxxxxxxxxxxx xxo"
LINES = "-xx axxxxxxfxxxxxx xxa"
HOST_COMMAND = "-ox ooxxxxxxxxxxxx xoo"
HOSTGROUP_COMMAND = "-xx ooxxxxxxxxxxxx xxo"
SERVICE_COMMAND = "-ox oxxoxxxxxxxxxx xoo"
SERVICEGROUP_COMMAND = "-xx oxxoxxxxxxxxxx xxo"
CONTACT_COMMAND = "-ox oxxxxxxxxxxxxx xoo"
ADMIN_COMMAND = "-xx oxxxxxxxxxxxxx xxo"
SYSTEM_COMMAND = "-xx oxxxxxxxxxxxox xxo"
CHANGE_KEYS = "-ox ooooooooooxooo ooo"
OWN_RECORD = "-oo onnnnnnnnnnnnn noo"
CHANGE_USER = "-ox onnnnnnnnnnnnn noo"
USERS = "-ff afffffffffffff ffa"
LOCK = "-xx oxxxxxxxxxxxxx xxo"
DENIED = "permission denied"
NO_LOG = "-xx nxxxxxxxxxxxxx xxn"
CHANGE_DASHBOARD = "-xx oxxxxxxxxxxxxx xxo"
MAKE_DASHBOARD = "-ox ooooooooooxooo ooo"
BROADCASTS_ROLE = "authorized_for_broadcasts"
OF_HOST = "-oo ononnnnnnnnnnn ooo"
CHANGE_DOWNTIME = "-ox onxnnnnnnnnnnn xoo"
BROADCASTS = "-xx oxxxxoxxxxxxxx xxo"
NO_BROADCAST = "-xx nxxxxnxxxxxxxx xxn"
MAKE_DOWNTIME = "-ox ooxxxxxxxxxxxx xoo"
PUBLIC = "ooo oooooooooooooo ooo"
NO_SESSION = "-bb bbbbbbbbbbbbbb bbb"
NO_CLUSTER = "-xx cxxxxxxxxxxxxx xxc"
NO_CLUSTER_SYSTEM = "-xx cxxxxxxxxxxxxc xxc"
NO_NODE = "-xx nxxxxxxxxxxxxx xxn"
NO_NODE_SYSTEM = "-xx nxxxxxxxxxxxxn xxn"
NODES_ONLY = "xxx xxxxxxxxxxxxxx xxx"
REPORTS_ROLE = "authorized_for_reports"
MAKE_REPORT = "-xx oxxxxxxxxxxoxx xxo"
PUBLIC_REPORT = "-oo oooooooooooooo ooo"
CHANGE_REPORT = "-xx oxxxxxxxxxxxxx xxo"
NO_CONTACT = "-nn nnnnnnnnnnnnnn nnn"
PROCESSES = "-ff afffffafffffff ffa"
PROCESS = "-nn onnnnnonnnnnnn nno"
WRITE_PROCESS = "-xx oxxxxxoxxxxxxx xxo"
NO_PROCESS = "-xx nxxxxxnxxxxxxx xxn"
WEBHOOK = "-nn onnnnnnnnnnnnn nno"
DELETE_KEY = "-nx nnnnnnnnnnxnnn nnn"

TEST = "test_only=1"
TABLE: dict[str, tuple[str, str, str]] = {
    # method and path: marks, what is asked, words of the refusal
    "GET /": (ALL, "/", ""),
    "GET /index": (ALL, "/index", ""),
    # Who sees which events is in test_events.py; a stream that is right has no end.
    "GET /events": (NO_SESSION, "/events?types=nosuch", ""),
    "GET /hosts": (BY_HOST, "/hosts", ""),
    "GET /hosts/<name>": (BY_HOST, "/hosts/db01", ""),
    "GET /hosts/<name>/services": (BY_SERVICE, "/hosts/db01/services", ""),
    "GET /hosts/<name>/alerts": (BY_BOTH, "/hosts/web*/alerts?time[gte]=-1d", ""),
    "GET /hosts/<name>/notifications": (ALL, "/hosts/web*/notifications?time[gte]=-1d", ""),
    "GET /hosts/<name>/commandline": (LINES, "/hosts/db01/commandline", NO_LINE),
    "GET /hosts/totals": (BY_HOST, "/hosts/totals", ""),
    "GET /hosts/stats": (BY_HOST, "/hosts/stats", ""),
    "GET /services": (BY_SERVICE, "/services", ""),
    "GET /services/<host>/<service>": (BY_SERVICE, "/services/web02/ping", ""),
    "GET /services/<host>/<service>/commandline": (
        LINES,
        "/services/web02/ping/commandline",
        NO_LINE,
    ),
    "GET /services/totals": (BY_SERVICE, "/services/totals", ""),
    "GET /services/stats": (BY_SERVICE, "/services/stats", ""),
    "GET /hostgroups": (ALL, "/hostgroups", ""),
    "GET /hostgroups/<name>": (ALL, "/hostgroups/web", ""),
    "GET /hostgroups/<name>/stats": (BY_HOST, "/hostgroups/linux/stats", ""),
    "GET /servicegroups": (ALL, "/servicegroups", ""),
    "GET /servicegroups/<name>": (ALL, "/servicegroups/pings", ""),
    "GET /servicegroups/<name>/stats": (BY_SERVICE, "/servicegroups/pings/stats", ""),
    "GET /contacts": (BY_CONFIGURATION, "/contacts", ""),
    "GET /contacts/<name>": (BY_CONFIGURATION, "/contacts/admin", ""),
    "GET /contacts/totals": (BY_CONFIGURATION, "/contacts/totals", ""),
    "GET /contactgroups": (ALL, "/contactgroups", ""),
    "GET /contactgroups/<name>": (ALL, "/contactgroups/webteam", ""),
    "GET /timeperiods": (ALL, "/timeperiods", ""),
    "GET /timeperiods/<name>": (ALL, "/timeperiods/24x7", ""),
    "GET /commands": (NEEDS_ADMIN, "/commands", "roles: admin"),
    "GET /commands/<name>": (NEEDS_ADMIN, "/commands/ping", "roles: admin"),
    "GET /comments": (BY_BOTH, "/comments", ""),
    "GET /comments/<id>": (BY_HOST, "/comments/{comment}", ""),
    "GET /downtimes": (BY_HOST, "/downtimes", ""),
    "GET /downtimes/<id>": (BY_HOST, "/downtimes/{downtime}", ""),
    "GET /logs": (BY_BOTH, "/logs?time[gte]=-1d", ""),
    "GET /alerts": (BY_BOTH, "/alerts?time[gte]=-1d", ""),
    "GET /notifications": (ALL, "/notifications?time[gte]=-1d", ""),
    "GET /hosts/availability": (REPORT_BY_HOST, "/hosts/availability", NO_OBJECTS),
    "GET /hosts/outages": (REPORT_BY_HOST, "/hosts/outages", NO_OBJECTS),
    "GET /hosts/<name>/availability": (
        REPORT_OF_HOST,
        "/hosts/db01/availability?start=-2h&end=-1h",
        NO_OBJECTS,
    ),
    "GET /hosts/<name>/outages": (REPORT_OF_HOST, "/hosts/router1/outages", NO_OBJECTS),
    "GET /services/availability": (REPORT_BY_SERVICE, "/services/availability", NO_OBJECTS),
    "GET /services/outages": (REPORT_BY_SERVICE, "/services/outages", NO_OBJECTS),
    "GET /services/<host>/<service>/availability": (
        REPORT_OF_SERVICE,
        "/services/web02/ping/availability?start=-2h&end=-1h",
        NO_OBJECTS,
    ),
    "GET /services/<host>/<service>/outages": (
        REPORT_OF_SERVICE,
        "/services/web02/ping/outages",
        NO_OBJECTS,
    ),
    "GET /hostgroups/<name>/availability": (
        REPORT_BY_HOST,
        "/hostgroups/linux/availability",
        NO_OBJECTS,
    ),
    "GET /hostgroups/<name>/outages": (REPORT_BY_BOTH, "/hostgroups/linux/outages", NO_OBJECTS),
    "GET /servicegroups/<name>/availability": (
        REPORT_BY_SERVICE,
        "/servicegroups/pings/availability",
        NO_OBJECTS,
    ),
    "GET /servicegroups/<name>/outages": (
        REPORT_BY_BOTH,
        "/servicegroups/pings/outages",
        NO_OBJECTS,
    ),
    "GET /checks/stats": (BY_BOTH, "/checks/stats", ""),
    "GET /processinfo": (NEEDS_SYSTEM, "/processinfo", SYSTEM),
    "GET /processinfo/stats": (COUNTERS, "/processinfo/stats", SYSTEM),
    "GET /sites": (ALL, "/sites", ""),
    "GET /lmd/sites": (ALL, "/lmd/sites", ""),
    "GET /config/objects": (CONFIG, "/config/objects", "roles: admin"),
    "POST /config/objects": (
        CONFIG,
        "/config/objects :TYPE=host&:FILE=new.cfg&host_name=n1",
        "roles: admin",
    ),
    "PATCH /config/objects": (CONFIG, "/config/objects?host_name=db01 alias=x", "roles: admin"),
    "DELETE /config/objects": (CONFIG, "/config/objects?host_name=db01", "roles: admin"),
    "GET /config/fullobjects": (CONFIG, "/config/fullobjects", "roles: admin"),
    "GET /config/files": (CONFIG, "/config/files", "roles: admin"),
    "GET /config/diff": (CONFIG, "/config/diff", "roles: admin"),
    "GET /config/precheck": (CONFIG, "/config/precheck", "roles: admin"),
    "POST /config/check": (CONFIG, "/config/check", "roles: admin"),
    "POST /config/reload": (CONFIG, "/config/reload", "roles: admin"),
    "POST /config/save": (CONFIG, "/config/save", "roles: admin"),
    "POST /config/revert": (CONFIG, "/config/revert", "roles: admin"),
    "POST /config/discard": (CONFIG, "/config/discard", "roles: admin"),
    **{
        f"{method} {path}": (CONFIG, f"{asked}{body}", "roles: admin")
        for path, asked in (
            ("/config/objects/<id>", "/config/objects/abcde"),
            ("/hosts/<name>/config", "/hosts/web02/config"),
            ("/services/<host>/<service>/config", "/services/web02/ping/config"),
            ("/hostgroups/<name>/config", "/hostgroups/web/config"),
            ("/servicegroups/<name>/config", "/servicegroups/pings/config"),
            ("/contacts/<name>/config", "/contacts/olga/config"),
            ("/contactgroups/<name>/config", "/contactgroups/webteam/config"),
            ("/commands/<name>/config", "/commands/disk/config"),
            ("/timeperiods/<name>/config", "/timeperiods/24x7/config"),
        )
        for method, body in (
            ("GET", ""),
            ("POST", " alias=x&name=y"),
            ("PATCH", " alias=x"),
            ("DELETE", ""),
        )
    },
    "GET /mon/editor": (OWN, "/mon/editor", ""),
    "GET /mon/editor/file": (OWN, "/mon/editor/file", ""),
    "GET /mon/editor/files": (OWN, "/mon/editor/files", ""),
    "GET /mon": (OWN, "/mon", ""),
    "GET /mon/stats": (COUNTERS, "/mon/stats", SYSTEM),
    "GET /mon/metrics": (COUNTERS, "/mon/metrics", SYSTEM),
    "GET /mon/config": (CONFIG, "/mon/config", "roles: admin"),
    "GET /mon/whoami": (OWN, "/mon/whoami", ""),
    "GET /mon/api_keys": (OWN, "/mon/api_keys", ""),
    "POST /mon/api_keys": (CHANGE_KEYS, "/mon/api_keys comment=x", NO_CHANGE),
    "GET /mon/api_keys/<id>": (OWN_RECORD, "/mon/api_keys/{key}", ""),
    "DELETE /mon/api_keys/<id>": (DELETE_KEY, f"/mon/api_keys/{'0' * 64}", NO_CHANGE),
    "GET /mon/logcache/stats": (OWN, "/mon/logcache/stats", ""),
    "POST /mon/logcache/update": (COUNTERS, "/mon/logcache/update", SYSTEM),
    "GET /mon/jobs": (OWN, "/mon/jobs", ""),
    "GET /mon/jobs/<id>": (OWN_RECORD, "/mon/jobs/{job}", ""),
    "GET /mon/jobs/<id>/output": (OWN_RECORD, "/mon/jobs/{job}/output", ""),
    "DELETE /mon/jobs/<id>": (NO_CONTACT, "/mon/jobs/1", ""),
    "GET /mon/broadcasts": (OWN, "/mon/broadcasts", ""),
    "POST /mon/broadcasts": (BROADCASTS, "/mon/broadcasts text=x", "roles: " + BROADCASTS_ROLE),
    "GET /mon/broadcasts/<file>": (OWN, "/mon/broadcasts/{broadcast}", ""),
    "POST /mon/broadcasts/<file>": (
        BROADCASTS,
        "/mon/broadcasts/{broadcast} text=x",
        BROADCASTS_ROLE,
    ),
    "PATCH /mon/broadcasts/<file>": (
        BROADCASTS,
        "/mon/broadcasts/{broadcast} text=x",
        BROADCASTS_ROLE,
    ),
    "DELETE /mon/broadcasts/<file>": (NO_BROADCAST, "/mon/broadcasts/none", BROADCASTS_ROLE),
    "GET /mon/cluster": (COUNTERS, "/mon/cluster", SYSTEM),
    "GET /mon/cluster/<id>": (NO_NODE_SYSTEM, "/mon/cluster/node0", SYSTEM),
    "GET /mon/cluster/heartbeat": (NO_CLUSTER, "/mon/cluster/heartbeat", "roles: admin"),
    "POST /mon/cluster/heartbeat": (NO_CLUSTER, "/mon/cluster/heartbeat", "roles: admin"),
    "GET /mon/cluster/restart": (NO_CLUSTER_SYSTEM, "/mon/cluster/restart", SYSTEM),
    "POST /mon/cluster/restart": (NO_CLUSTER, "/mon/cluster/restart", "roles: admin"),
    "POST /mon/cluster/<id>/maintenance": (
        NO_NODE,
        "/mon/cluster/node0/maintenance",
        "roles: admin",
    ),
    "DELETE /mon/cluster/<id>/maintenance": (
        NO_NODE,
        "/mon/cluster/node0/maintenance",
        "roles: admin",
    ),
    "GET /mon/cluster/ping": (NODES_ONLY, "/mon/cluster/ping", "not a node of this cluster"),
    "GET /mon/healthy": (PUBLIC, "/mon/healthy", ""),
    "GET /mon/ready": (PUBLIC, "/mon/ready", ""),
    "GET /openapi.json": (PUBLIC, "/openapi.json", ""),
    "GET /mon/login": (PUBLIC, "/mon/login", ""),
    "GET /mon/recurring_downtimes": (BY_HOST, "/mon/recurring_downtimes", ""),
    "POST /mon/recurring_downtimes": (
        MAKE_DOWNTIME,
        "/mon/recurring_downtimes host=web01",
        "permission denied",
    ),
    "GET /mon/recurring_downtimes/<file>": (
        OF_HOST,
        "/mon/recurring_downtimes/{recurring}",
        "",
    ),
    "POST /mon/recurring_downtimes/<file>": (
        CHANGE_DOWNTIME,
        "/mon/recurring_downtimes/{recurring} host=web01",
        "permission denied",
    ),
    "PATCH /mon/recurring_downtimes/<file>": (
        CHANGE_DOWNTIME,
        "/mon/recurring_downtimes/{recurring} duration=5",
        "permission denied",
    ),
    "DELETE /mon/recurring_downtimes/<file>": (NO_CONTACT, "/mon/recurring_downtimes/999", ""),
    "GET /mon/bp": (PROCESSES, "/mon/bp", ""),
    "POST /mon/bp": (WRITE_PROCESS, "/mon/bp name=x", BP),
    "GET /mon/bp/<nr>": (PROCESS, "/mon/bp/{process}", ""),
    "POST /mon/bp/<nr>": (WRITE_PROCESS, "/mon/bp/{process} name=x", BP),
    "PATCH /mon/bp/<nr>": (WRITE_PROCESS, "/mon/bp/{process} template=x", BP),
    "DELETE /mon/bp/<nr>": (NO_PROCESS, "/mon/bp/1000000", BP),
    "POST /mon/bp/<nr>/refresh": (PROCESS, "/mon/bp/{process}/refresh", ""),
    "GET /mon/bp/<nr>/objects": (PROCESS, "/mon/bp/{process}/objects", ""),
    "GET /mon/bp/<nr>/objects/recursive": (PROCESS, "/mon/bp/{process}/objects/recursive", ""),
    "GET /mon/webhooks": (USERS, "/mon/webhooks", ""),
    "GET /mon/webhooks/<id>": (WEBHOOK, "/mon/webhooks/{webhook}", ""),
    "GET /mon/webhooks/<id>/deliveries": (WEBHOOK, "/mon/webhooks/{webhook}/deliveries", ""),
    "POST /mon/webhooks/<id>": (
        WEBHOOK,
        "/mon/webhooks/{webhook} name=x&url=http://192.0.2.10/",
        "",
    ),
    "PATCH /mon/webhooks/<id>": (WEBHOOK, "/mon/webhooks/{webhook} name=y", ""),
    "POST /mon/webhooks/<id>/test": (WEBHOOK, "/mon/webhooks/{webhook}/test", ""),
    "POST /mon/webhooks/<id>/resume": (WEBHOOK, "/mon/webhooks/{webhook}/resume", ""),
    "POST /mon/webhooks/<id>/rotate": (WEBHOOK, "/mon/webhooks/{webhook}/rotate", ""),
    "POST /mon/webhooks/<id>/deliveries/<nr>/resend": (
        NO_CONTACT,
        "/mon/webhooks/{webhook}/deliveries/999999/resend",
        "",
    ),
    "DELETE /mon/webhooks/<id>": (NO_CONTACT, "/mon/webhooks/999999", ""),
    "POST /mon/webhooks": (
        MAKE_DASHBOARD,
        "/mon/webhooks name=x&url=http://192.0.2.10/",
        DENIED,
    ),
    "GET /mon/panorama": (OWN, "/mon/panorama", ""),
    "POST /mon/panorama": (MAKE_DASHBOARD, "/mon/panorama", DENIED),
    "GET /mon/panorama/<nr>": (OWN, "/mon/panorama/{dashboard}", ""),
    "POST /mon/panorama/<nr>": (NO_CONTACT, "/mon/panorama/999999", ""),
    "PATCH /mon/panorama/<nr>": (CHANGE_DASHBOARD, "/mon/panorama/{dashboard} user=admin", DENIED),
    "DELETE /mon/panorama/<nr>": (NO_CONTACT, "/mon/panorama/999999", ""),
    "GET /mon/panorama/<nr>/backups": (
        CHANGE_DASHBOARD,
        "/mon/panorama/{dashboard}/backups",
        DENIED,
    ),
    "POST /mon/panorama/<nr>/maintenance": (
        CHANGE_DASHBOARD,
        "/mon/panorama/{dashboard}/maintenance text=x",
        DENIED,
    ),
    "DELETE /mon/panorama/<nr>/maintenance": (
        CHANGE_DASHBOARD,
        "/mon/panorama/{dashboard}/maintenance",
        DENIED,
    ),
    "GET /mon/node-control/nodes": (CONFIG, "/mon/node-control/nodes", "roles: admin"),
    "GET /mon/nc/nodes": (CONFIG, "/mon/nc/nodes", "roles: admin"),
    "GET /mon/node-control/nodes/<peer_key>/logs/<name>": (
        NO_LOG,
        "/mon/node-control/nodes/s1/logs/install",
        "roles: admin",
    ),
    "POST /mon/node-control/nodes/<peer_key>/cmd/<operation>": (
        CONFIG,
        "/mon/node-control/nodes/s1/cmd/gather",
        "roles: admin",
    ),
    "GET /mon/reports": (PUBLIC_REPORT, "/mon/reports", ""),
    "POST /mon/reports": (
        MAKE_REPORT,
        "/mon/reports template=problems.tt",
        "roles: " + REPORTS_ROLE,
    ),
    "GET /mon/reports/<nr>": (PUBLIC_REPORT, "/mon/reports/{report}", ""),
    "POST /mon/reports/<nr>": (
        CHANGE_REPORT,
        "/mon/reports/{report} template=problems.tt&is_public=1",
        "may only be read",
    ),
    "PATCH /mon/reports/<nr>": (CHANGE_REPORT, "/mon/reports/{report} name=x", "may only be read"),
    "DELETE /mon/reports/<nr>": (NO_CONTACT, "/mon/reports/999", ""),
    "POST /mon/reports/<nr>/generate": (PUBLIC_REPORT, "/mon/reports/{report}/generate", ""),
    "GET /mon/reports/<nr>/report": (PUBLIC_REPORT, "/mon/reports/{report}/report?type=json", ""),
    "POST /mon/login": (PUBLIC, "/mon/login login=olga&password=sesame", ""),
    "POST /mon/logout": (NO_SESSION, "/mon/logout", ""),
    "GET /mon/sessions": (OWN, "/mon/sessions", ""),
    "GET /mon/sessions/<id>": (OWN_RECORD, "/mon/sessions/{session}", ""),
    "GET /mon/users": (USERS, "/mon/users", ""),
    "GET /mon/users/<id>": (OWN_RECORD, "/mon/users/olga", ""),
    "PATCH /mon/users/<id>": (CHANGE_USER, "/mon/users/olga tz=UTC", NO_CHANGE),
    "POST /mon/users/<id>/cmd/lock": (LOCK, "/mon/users/victim/cmd/lock", "roles: admin"),
    "POST /mon/users/<id>/cmd/unlock": (LOCK, "/mon/users/victim/cmd/unlock", "roles: admin"),
    "POST /hosts/<name>/cmd/<command>": (
        HOST_COMMAND,
        f"/hosts/web01/cmd/disable_host_check {TEST}",
        NO_COMMAND,
    ),
    "POST /services/<host>/<service>/cmd/<command>": (
        SERVICE_COMMAND,
        f"/services/db01/ping/cmd/disable_svc_check {TEST}",
        NO_COMMAND,
    ),
    "POST /hostgroups/<name>/cmd/<command>": (
        HOSTGROUP_COMMAND,
        f"/hostgroups/web/cmd/disable_hostgroup_host_checks {TEST}",
        NO_COMMAND,
    ),
    "POST /servicegroups/<name>/cmd/<command>": (
        SERVICEGROUP_COMMAND,
        f"/servicegroups/pings/cmd/disable_servicegroup_svc_checks {TEST}",
        NO_COMMAND,
    ),
    "POST /contacts/<name>/cmd/<command>": (
        CONTACT_COMMAND,
        f"/contacts/olga/cmd/disable_contact_host_notifications {TEST}",
        NO_COMMAND,
    ),
    "POST /contactgroups/<name>/cmd/<command>": (
        ADMIN_COMMAND,
        f"/contactgroups/webteam/cmd/disable_contactgroup_host_notifications {TEST}",
        NO_COMMAND,
    ),
    "POST /system/cmd/<command>": (
        SYSTEM_COMMAND,
        f"/system/cmd/disable_notifications {TEST}",
        NO_SYSTEM_COMMAND,
    ),
    "POST /core/cmd/<command>": (
        SYSTEM_COMMAND,
        f"/core/cmd/disable_notifications {TEST}",
        NO_SYSTEM_COMMAND,
    ),
    "POST /cmd/<command>": (
        SYSTEM_COMMAND,
        f"/sites/s1/cmd/disable_notifications {TEST}",
        NO_SYSTEM_COMMAND,
    ),
    "POST /cmd": (
        SYSTEM_COMMAND,
        f"/cmd cmd=disable_notifications&{TEST}",
        NO_SYSTEM_COMMAND,
    ),
    "GET /cmd": (OWN, "/cmd", ""),
    "GET /cmd/<command>": (OWN, "/cmd/disable_notifications", ""),
    **{
        f"GET {path}/cmd/<command>": (OWN, f"{asked}/cmd/{command}", "")
        for path, asked, command in (
            ("/hosts/<name>", "/hosts/web01", "disable_host_check"),
            ("/services/<host>/<service>", "/services/db01/ping", "disable_svc_check"),
            ("/hostgroups/<name>", "/hostgroups/web", "disable_hostgroup_host_checks"),
            ("/servicegroups/<name>", "/servicegroups/pings", "disable_servicegroup_svc_checks"),
            ("/contacts/<name>", "/contacts/olga", "disable_contact_host_notifications"),
            ("/contactgroups/<name>", "/contactgroups/x", "enable_contactgroup_svc_notifications"),
            ("/system", "/system", "disable_notifications"),
            ("/core", "/core", "disable_notifications"),
        )
    },
    "DELETE /comments/<id>": (NO_CONTACT, "/comments/2147483646", ""),
    "DELETE /downtimes/<id>": (NO_CONTACT, "/downtimes/2147483646", ""),
}

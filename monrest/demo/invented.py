"""A site of any size for tests and benchmarks."""

from __future__ import annotations

_CHECKS = ("ping", "disk", "load", "mem", "http", "users", "procs", "traffic", "temp", "backup")

_COMMON = """
define timeperiod {
    timeperiod_name 24x7
    alias Always
    sunday 00:00-24:00
    monday 00:00-24:00
    tuesday 00:00-24:00
    wednesday 00:00-24:00
    thursday 00:00-24:00
    friday 00:00-24:00
    saturday 00:00-24:00
}
define command {
    command_name notify
    command_line /usr/bin/printf "%b" "$NOTIFICATIONTYPE$" | /usr/bin/mail -s demo $CONTACTEMAIL$
}
define contact {
    contact_name admin
    alias Administrator
    email admin@example.org
    host_notification_period 24x7
    service_notification_period 24x7
    host_notification_options d,u,r
    service_notification_options w,u,c,r
    host_notification_commands notify
    service_notification_commands notify
}
define contactgroup {
    contactgroup_name admins
    alias Administrators
    members admin
}
define host {
    name generic-host
    check_command check_host!3000.0,80%!5000.0,100%
    max_check_attempts 3
    check_interval 5
    retry_interval 1
    check_period 24x7
    notification_period 24x7
    notification_interval 60
    contact_groups admins
    notes_url https://wiki.example.org/host/$HOSTNAME$
    _DATACENTER east
    register 0
}
define service {
    name generic-service
    max_check_attempts 3
    check_interval 5
    retry_interval 1
    check_period 24x7
    notification_period 24x7
    notification_interval 60
    contact_groups admins
    action_url https://graphs.example.org/$HOSTNAME$/$SERVICEDESC$
    register 0
}
define command {
    command_name check_host
    command_line $USER1$/check_icmp -H $HOSTADDRESS$ -w $ARG1$ -c $ARG2$
}
"""


def invented_objects(hosts: int, services: int) -> str:
    """Object files of a site with that many hosts and services, these spread evenly over those."""
    text = [
        _COMMON,
        *(
            f"define command {{\ncommand_name check_{word}\n"
            f"command_line $USER1$/check_{word} -H $HOSTADDRESS$ -w $ARG1$ -c $ARG2$\n}}\n"
            f"define servicegroup {{\nservicegroup_name {word}\nalias All {word}\n}}\n"
            for word in _CHECKS
        ),
    ]
    groups = max(hosts // 50, 1)
    text += [
        f"define hostgroup {{\nhostgroup_name group-{number:03}\nalias Group {number}\n}}\n"
        for number in range(groups)
    ]
    most, rest = divmod(services, max(hosts, 1))
    for number in range(hosts):
        name = f"host-{number:05}"
        text.append(
            f"define host {{\nuse generic-host\nhost_name {name}\nalias Demo host {number}\n"
            f"address 10.{number // 65536 % 256}.{number // 256 % 256}.{number % 256}\n"
            f"hostgroups group-{number % groups:03}\n_RACK r{number % 40}\n"
            f"{'_NOTE null' if number % 7 == 0 else ''}\n}}\n"
        )
        for index in range(most + (number < rest)):
            word = _CHECKS[index % len(_CHECKS)]
            text.append(
                f"define service {{\nuse generic-service\nhost_name {name}\n"
                f"service_description {word} {index:02}\ncheck_command check_{word}!80!90\n"
                f"servicegroups {word}\n_LEVEL {index % 4}\n}}\n"
            )
    return "".join(text)

#!/bin/sh
# Install the real programs that the tests use, as Debian packages without anything recommended, and
# leave no service of theirs running. Status 0: all are there; 1: one is not and cannot be installed here, or
# is not to be (MONREST_INSTALL=0). With --plan it says what it would install, and does nothing.
set -u
PATH="$PATH:/usr/sbin:/sbin"

# Program, packages, service that the package starts (- for none), and what the tests use it for.
programs="
icinga2       icinga2-bin,icinga2-common  -                        a_core_for_the_black-box_tests
nagios4       nagios4-core                nagios4                  judges_object_files
promtool      prometheus                  prometheus               judges_metrics_and_alert_rules
chromedriver  chromium,chromium-driver    -                        shows_the_pages_of_the_explorer
prometheus-alertmanager  prometheus-alertmanager  prometheus-alertmanager  gets_alerts_of_webhooks
zsh           zsh-common,zsh              -                        completes_the_command_line
fish          fish                        -                        completes_the_command_line
curl          curl                        -                        runs_the_examples_of_the_pages
jq            jq                          -                        runs_the_examples_of_the_pages
/usr/bin/python3  python3                 -                        runs_what_the_Debian_package_brings
"

missing() {
    echo "$programs" | while read -r program packages service _; do
        [ -z "$program" ] || command -v "$program" >/dev/null 2>&1 || echo "$program $packages $service"
    done
}

cannot() {
    echo "install-cores: $1" >&2
    echo "install-cores: the tests that need it will be skipped" \
        "(with MONREST_CI set they fail)" >&2
    exit 1
}

wanted=$(missing)
[ -n "$wanted" ] || exit 0
packages=$(echo "$wanted" | cut -d' ' -f2 | tr ',\n' '  ')
# Nagios needs a mail command, and that some way to send: without one there apt chooses a mail server that
# listens. dma is none, and the smallest.
case "$packages" in
*nagios4-core*)
    command -v mail >/dev/null 2>&1 || command -v sendmail >/dev/null 2>&1 || packages="${packages}dma "
    ;;
esac
services=$(echo "$wanted" | cut -d' ' -f3 | grep -v '^-$')
if [ "${MONREST_INSTALL:-1}" = 0 ]; then
    [ "${1:-}" != --plan ] || exit 0
    cannot "missing: $packages, and MONREST_INSTALL=0 says to install nothing"
fi
if [ "${1:-}" = --plan ]; then
    echo "The tests install these system packages as root, unless MONREST_INSTALL=0:" $packages
    # shellcheck disable=SC2086  # several packages
    all=$(LC_ALL=C apt-get --simulate --no-install-recommends install $packages 2>/dev/null |
        grep '^Inst ' | cut -d' ' -f2 | tr '\n' ' ')
    [ -z "$all" ] || echo "With all that they need:" $all
    exit 0
fi
command -v apt-get >/dev/null 2>&1 || cannot "there is no apt-get; install $packages by hand"

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo"
else
    cannot "missing: $packages, and installing needs root or sudo without a password"
fi

install() {
    # shellcheck disable=SC2086  # several packages
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet \
        --no-install-recommends $packages
}

echo "install-cores: installing $packages"
install || { $as_root apt-get update --quiet && install; } ||
    cannot "apt-get could not install $packages"
# Packages start their services, now and with the machine; the tests start what they need themselves.
for service in $services; do
    $as_root service "$service" stop >/dev/null 2>&1
    $as_root update-rc.d "$service" disable >/dev/null 2>&1
done
left=$(missing)
[ -z "$left" ] || cannot "the packages are installed but not in the PATH: $left"

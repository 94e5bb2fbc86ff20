#!/bin/sh
# Install the real cores that the tests use: Icinga 2, against which the black-box tests run, and
# Nagios 4, which judges object files. Debian packages without anything recommended, and no service
# of theirs is left running. Status 0: all are there; 1: one is not and cannot be installed here.
set -u
PATH="$PATH:/usr/sbin:/sbin"

missing() {
    for program in icinga2 nagios4; do
        command -v "$program" >/dev/null 2>&1 || echo "$program"
    done
}

cannot() {
    echo "install-cores: $1" >&2
    echo "install-cores: the tests that need it will be skipped" \
        "(with MONREST_CI set they fail)" >&2
    exit 1
}

wanted=$(echo $(missing))
packages=""
case "$wanted" in *icinga2*) packages="icinga2-bin icinga2-common" ;; esac
case "$wanted" in *nagios4*) packages="$packages nagios4-core" ;; esac
[ -n "$packages" ] || exit 0
command -v apt-get >/dev/null 2>&1 ||
    cannot "missing: $wanted, and there is no apt-get; install $packages by hand"

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo"
else
    cannot "missing: $wanted, and installing needs root or sudo without a password"
fi

install() {
    # shellcheck disable=SC2086  # several packages
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet \
        --no-install-recommends $packages
}

echo "install-cores: installing $packages"
install || { $as_root apt-get update --quiet && install; } ||
    cannot "apt-get could not install $packages"
case "$packages" in *nagios4-core*)
    # Its package starts it, now and with the machine; the tests only have it check files.
    $as_root service nagios4 stop >/dev/null 2>&1
    $as_root update-rc.d nagios4 disable >/dev/null 2>&1
    ;;
esac
left=$(echo $(missing))
[ -z "$left" ] || cannot "the packages are installed but not in the PATH: $left"

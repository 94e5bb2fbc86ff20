#!/bin/sh
# Install the real Icinga 2 that the black-box tests run against: two Debian packages without
# anything recommended. Status 0: it is there; 1: it is not and cannot be installed here.
set -u

found() {
    PATH="$PATH:/usr/sbin:/sbin" command -v icinga2 >/dev/null 2>&1
}

cannot() {
    echo "install-icinga2: $1" >&2
    echo "install-icinga2: the tests against a real Icinga 2 will be skipped" \
        "(with MONREST_CI set they fail)" >&2
    exit 1
}

if found; then
    exit 0
fi
command -v apt-get >/dev/null 2>&1 ||
    cannot "icinga2 is missing and there is no apt-get; install icinga2-bin by hand"

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo"
else
    cannot "icinga2 is missing and installing it needs root or sudo without a password"
fi

install() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet \
        --no-install-recommends icinga2-bin icinga2-common
}

echo "install-icinga2: installing icinga2-bin and icinga2-common"
install || { $as_root apt-get update --quiet && install; } ||
    cannot "apt-get could not install icinga2-bin and icinga2-common"
found || cannot "the packages are installed but there is no icinga2 in the PATH"

#!/bin/sh
# Fetch the sample configurations that Debian ships with its cores and plugins into .samples/,
# without installing anything. Status 0: they are there; 1: they cannot be had here.
set -u

folder="$(dirname "$0")/../.samples"
packages="nagios4-common monitoring-plugins-basic monitoring-plugins-standard icinga2-common"

cannot() {
    echo "fetch-samples: $1" >&2
    echo "fetch-samples: the tests on the sample configurations will be skipped" \
        "(with MONREST_CI set they fail)" >&2
    exit 1
}

if [ -f "$folder/complete" ]; then
    exit 0
fi
command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 ||
    cannot "fetching the sample configurations needs apt-get and dpkg-deb"

as_root=""
if [ "$(id -u)" -ne 0 ] && command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo"
fi

work="$(mktemp -d)" && chmod 755 "$work" || cannot "there is no temporary folder"
trap 'rm -rf "$work"' EXIT
fetch() {
    (cd "$work" && apt-get download --quiet $packages)
}

echo "fetch-samples: fetching $packages"
fetch || { $as_root apt-get update --quiet && fetch; } ||
    cannot "apt-get could not download the packages"
for package in "$work"/*.deb; do
    dpkg-deb --extract "$package" "$work/root" || cannot "$package cannot be unpacked"
done
share="$work/root/usr/share"
rm -rf "$folder" && mkdir -p "$folder/plugins" || cannot "$folder cannot be written"
cp -r "$work/root/etc/nagios4" "$work/root/etc/icinga2" "$folder" &&
    cp -r "$share/doc/nagios4-common/examples" "$folder/examples" &&
    cp -r "$share"/monitoring-plugins/templates-* "$folder/plugins" &&
    cp -r "$share/icinga2/include" "$folder/icinga2/include" &&
    touch "$folder/complete" || cannot "the samples are not where they were expected"

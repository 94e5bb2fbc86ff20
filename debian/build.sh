#!/bin/sh
# Build a Debian package from a wheel: build.sh WHEEL FOLDER [OPTION OF pip install...]
#
# The package brings a virtual environment of its own in /opt/monrest, for the python3 of the Debian
# on which it is built. PIP is the pip that fills it, REVISION the Debian revision.
set -eu
umask 022

wheel=$1
folder=$2
shift 2
sources=$(dirname "$0")
python=/usr/bin/python3

if ! [ -x "$python" ] || ! command -v dpkg-deb >/dev/null; then
    echo "build.sh: a Debian package is built on Debian, with its python3" >&2
    exit 1
fi
next=$("$python" -c 'import sys; print(f"3.{sys.version_info[1] + 1}")')
# 0.3.0rc1 comes before 0.3.0.
version=$(basename "$wheel" | cut -d- -f2 | sed -E 's/([0-9])(a|b|rc|\.dev)/\1~\2/')-${REVISION:-1}

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
home=$root/opt/monrest

"$python" -m venv --without-pip "$home"
"${PIP:-pip}" --disable-pip-version-check --python "$home/bin/python" install --quiet \
    --no-compile "$@" "$wheel[postgresql,reports]"
packages=$(echo "$home"/lib/python3*/site-packages)

# What nothing here runs: tests of libraries, what they need for these, and other programs.
find "$packages" -depth -type d \( -name test -o -name tests -o -name testing -o -name _test \) \
    ! -path "$packages/monrest/*" -exec rm -rf {} +
for part in conch mail names trial words; do
    rm -rf "$packages/twisted/$part" "$packages/twisted/plugins/twisted_$part.py"
done
rm -rf "$packages/twisted/plugins/twisted_ftp.py" "$packages/twisted/plugins/twisted_socks.py" \
    "$packages/twisted/plugins/cred_sshkeys.py" "$packages/sqlalchemy/dialects/mssql" \
    "$packages/sqlalchemy/dialects/mysql" "$packages/sqlalchemy/dialects/oracle" \
    "$packages"/pillow.libs/libavif-* "$packages"/PIL/_avif*.so
find "$packages" -type f \( -name '*.c' -o -name '*.h' -o -name '*.pyi' \) -delete
# Symbols for debuggers are half of these libraries.
for library in cryptography nh3 re2 sqlalchemy wcwidth; do
    if command -v strip >/dev/null && [ -d "$packages/$library" ]; then
        find "$packages/$library" -type f -name '*.so' -exec strip --strip-unneeded {} +
    fi
done
find "$home/bin" -type f ! -name monrest ! -name twistd -delete

# The user of the daemon cannot write here: what Python and Twisted keep is made now.
if [ -e "$packages/twisted/__init__.py" ]; then
    "$home/bin/python" -B -c 'from twisted import plugin; list(plugin.getPlugins(plugin.IPlugin))'
fi
# The daemon runs without docstrings (-OO): its bytecode is that of the command as well.
"$home/bin/python" -m compileall -q -o 2 -s "$root" -p / "$packages"
sed -i '1s|python[0-9.]*$|& -OO|' "$home/bin/monrest"
grep -rlIF "$root" "$home/bin" "$home/pyvenv.cfg" | xargs sed -i "s|$root/|/|g"

mkdir -p "$root/DEBIAN" "$root/etc/monrest" "$root/usr/bin" "$root/usr/lib/systemd/system" \
    "$root/usr/share/doc/monrest" "$root/usr/share/man/man1"
ln -s /opt/monrest/bin/monrest "$root/usr/bin/monrest"
cp "$packages/monrest/etc/monrest.toml" "$root/etc/monrest/"
cp "$packages/monrest/etc/monrest.service" "$packages/monrest/etc/monrest.socket" \
    "$root/usr/lib/systemd/system/"
gzip -9n <"$home/share/man/man1/monrest.1" >"$root/usr/share/man/man1/monrest.1.gz"
gzip -9n <"$home/share/doc/monrest/CHANGELOG.md" >"$root/usr/share/doc/monrest/changelog.gz"
cp "$packages"/monrest-*.dist-info/licenses/LICENSE "$root/usr/share/doc/monrest/copyright"
ln -s /opt/monrest/share/doc/monrest/docs "$root/usr/share/doc/monrest/docs"

size=$(du -sk --exclude=DEBIAN "$root" | cut -f1)
sed -e "s|@VERSION@|$version|" -e "s|@NEXT_PYTHON@|$next|" -e "s|@SIZE@|$size|" \
    -e "s|@ARCHITECTURE@|$(dpkg --print-architecture)|" "$sources/control" >"$root/DEBIAN/control"
echo /etc/monrest/monrest.toml >"$root/DEBIAN/conffiles"
for script in postinst prerm postrm; do
    install -m 755 "$sources/$script" "$root/DEBIAN/$script"
done
mkdir -p "$folder"
dpkg-deb --root-owner-group --build "$root" "$folder"

#!/usr/bin/env bash
# The Debian packages install, the command, the library and the headers work, and no file is left after removal. Needs root
# and changes the system: for a clean root.
# Usage: deb.sh FOLDER EXAMPLES    FOLDER: of the *.deb
. "$(dirname "$0")/common.sh"
folder=$(realpath "$1") examples=$2
snapshot() { find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /var \) -prune -o -print | sort; }

snapshot >"$work/before"
apt-get install -qqy --no-install-recommends "$folder"/*.deb >"$work/log" 2>&1 || fail "$(tail "$work/log")"

expect "cpu" keel devices
graph "$work/add.keelt"
expect "[4, 6]" keel run "$work/add.keelt" -d cpu -i x=1,2 -i z=3,4
for file in /usr/share/man/man1/keel.1.gz /usr/share/man/man1/keel-run.1.gz /usr/share/bash-completion/completions/keel; do
  [ -e "$file" ] || fail "$file is not installed"
done
"$here/pkg_config.sh" /usr "$examples"
"$here/cmake.sh" /usr "$examples"

names=$(for deb in "$folder"/*.deb; do dpkg-deb --field "$deb" Package; done)
# shellcheck disable=SC2086
apt-get purge -qqy $names >"$work/log" 2>&1 || fail "$(tail "$work/log")"
snapshot >"$work/after"
diff <(grep -v "^$work" "$work/before") <(grep -v "^$work" "$work/after") || fail "these files came or went"
echo "deb: installed, ran, was compiled against and was removed:" $names

#!/usr/bin/env bash
# A program and a plugin are compiled by hand with pkg-config's flags.
# Usage: pkg_config.sh PREFIX EXAMPLES    PREFIX: where Keel is installed
. "$(dirname "$0")/common.sh"
prefix=$1 examples=$2
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
[ "$(pkg-config --modversion keel)" = "$("$prefix/bin/keel" --version | sed -E 's/^keel ([^ ]+).*/\1/')" ] || fail "versions differ"
# shellcheck disable=SC2046
cc "$here/project/apply.c" $(pkg-config --cflags --libs keel) -Wl,-rpath,"$prefix/lib" -o "$work/apply"
mkdir "$work/plugins"
# shellcheck disable=SC2046
cc -shared -fPIC -fvisibility=hidden $(pkg-config --cflags keel) "$examples/hello.c" -o "$work/plugins/keel-hello.so"

expect "2 4 6 8" "$work/apply" reference add 2
expect "2 4 6 8" "$work/apply" cpu add 2
KEEL_PLUGIN_PATH=$work/plugins expect "2 4 6 8" "$work/apply" hello add 2

# No other name of Keel's headers is in the way of a program's own.
for name in keel.h keel_base.h keel_plugin.h array.hpp; do
  # shellcheck disable=SC2046
  ! echo "#include <$name>" | cc $(pkg-config --cflags keel) -xc++ -fsyntax-only - 2>/dev/null || fail "<$name> is seen; only <keel/...> should be"
done
echo "pkg-config: a program and a plugin were compiled and ran"

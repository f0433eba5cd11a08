#!/usr/bin/env bash
# The installed tree, moved to another folder: its files are complete and find each other, its headers cite installed files
# only, programs build against it (user/cmake.sh, user/pkg_config.sh). Run by ctest; `run` does the same in a clean Debian 12.
# Usage: tree_test.sh BUILD EXAMPLES
. "$(dirname "$0")/user/common.sh"
build=$1 examples=$2
cmake --install "$build" --prefix "$work/first" >"$work/log" || fail "$(tail "$work/log")"
mv "$work/first" "$work/moved"
prefix=$work/moved

for file in bin/keel lib/libkeel.so lib/keel/plugins/keel-cpu.so lib/keel/plugins/libkdnn.so.3 lib/keel/plugins/libkomp.so.1 \
  include/keel/keel.h include/keel/keel.hpp lib/pkgconfig/keel.pc lib/cmake/keel/keel-config.cmake share/doc/keel/abi/README.md \
  share/man/man1/keel.1 share/man/man1/keel-run.1 share/bash-completion/completions/keel share/zsh/site-functions/_keel \
  share/fish/vendor_completions.d/keel.fish share/doc/keel/docs/index.md share/doc/keel/sdk/examples/run.c; do
  [ -e "$prefix/$file" ] || fail "$file is not installed"
done
if [ -e "$build/abi.json" ] && [ ! -e "$prefix/share/keel/abi.json" ]; then fail "share/keel/abi.json is not installed"; fi
[ "$(ls "$prefix/include")" = keel ] || fail "include/ holds more than keel/: $(ls "$prefix/include")"
if grep -rIl -e "$build" -e "$work/first" "$prefix"; then fail "these files name the folder of the build"; fi

# A header that names a file (abi/README.md, graph.fbs) means one below include/keel or share/doc/keel.
grep -rnoE '[A-Za-z_./]+\.(md|fbs|h|hpp|c|cc|py|json)\b' "$prefix/include/keel" | while IFS=: read -r header line cited; do
  for folder in "$(dirname "$header")" "$prefix/include" "$prefix" "$prefix/share/doc/keel" "$prefix/share/doc/keel/abi" "$prefix/share/keel"; do
    [ ! -e "$folder/$cited" ] || continue 2
  done
  case "$cited" in stddef.h | stdint.h | pthread.h | unistd.h | fcntl.h | sys/*.h | dlpack.h) continue ;; # of the system
    out.json | tools/*.py) continue ;; # a name in an example; generators of headers
  esac
  fail "${header#"$prefix"/}:$line cites $cited, which is not installed"
done

"$here/user/cmake.sh" "$prefix" "$examples"
"$here/user/pkg_config.sh" "$prefix" "$examples"
echo "tree: passed"

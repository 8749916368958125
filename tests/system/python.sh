#!/bin/sh
echo "$@" >> {log}
case "$*" in
  "-c import sys"*) echo {version} ;;
  "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  *"ruff check"*) exit 3 ;;
esac

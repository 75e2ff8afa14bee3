#!/usr/bin/env python3
"""Checks that shared libraries export what public headers declare and nothing else.

    exports.py INCLUDE LIBRARY...  INCLUDE has the installed headers
"""

import pathlib
import re
import subprocess
import sys


def name_of(symbol):
    """The qualified name of a demangled symbol, without template arguments, parameters and return type."""
    while (bare := re.sub(r"<[^<>]*>", "", symbol)) != symbol:
        symbol = bare
    return symbol.split("(")[0].split(" ")[-1].split("[")[0]


def main():
    headers = "\n".join(path.read_text(encoding="utf-8") for path in pathlib.Path(sys.argv[1]).rglob("*.h"))
    declared = set(re.findall(r"\w+", re.sub(r"//[^\n]*", "", headers)))
    failures = []
    for library in map(pathlib.Path, sys.argv[2:]):
        listing = subprocess.run(["nm", "-DC", "--defined-only", library], check=True, capture_output=True, text=True)
        symbols = [line.split(maxsplit=2)[2] for line in listing.stdout.splitlines()]
        own = [symbol for symbol in symbols if name_of(symbol).startswith("rill::")]
        for symbol in own:
            internal = [word for word in re.findall(r"\w+", name_of(symbol)) if word not in declared]
            if internal:
                failures.append(f"{library.name}: {symbol}: no public header declares {', '.join(internal)}")
        print(f"{library.name}: {library.stat().st_size // 1024} KiB, {len(own)} of {len(symbols)} symbols are rill's")
        if not own:
            failures.append(f"{library.name}: exports nothing of rill")
    if failures:
        print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

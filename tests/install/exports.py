#!/usr/bin/env python3
"""Checks that shared libraries export what public headers declare and nothing else.

    exports.py INCLUDE LIBRARY...  INCLUDE holds the installed headers
"""

import pathlib
import re
import subprocess
import sys


def main():
    headers = "\n".join(path.read_text(encoding="utf-8") for path in pathlib.Path(sys.argv[1]).rglob("*.h"))
    declared = set(re.findall(r"\w+", re.sub(r"//[^\n]*", "", headers)))
    failures = []
    for library in sys.argv[2:]:
        listing = subprocess.run(["nm", "-DC", "--defined-only", library], check=True, capture_output=True, text=True)
        symbols = [line.split(maxsplit=2)[2] for line in listing.stdout.splitlines()]
        own = [symbol for symbol in symbols if "rill::" in symbol]
        for symbol in own:
            name = re.sub(r"^(vtable for|typeinfo for|typeinfo name for|guard variable for) ", "", symbol)
            internal = [word for word in re.findall(r"[A-Za-z_]\w*", name.split("(")[0]) if word not in declared | WORDS]
            if internal:
                failures.append(f"{pathlib.Path(library).name}: {symbol}: no public header says {', '.join(internal)}")
        print(f"{pathlib.Path(library).name}: {pathlib.Path(library).stat().st_size // 1024} KiB, {len(symbols)} symbols")
        if not own:
            failures.append(f"{library}: exports nothing of rill")
    print("\n".join(failures))
    return 1 if failures else 0


# Words of demangled names that are C++'s own.
WORDS = {"std", "operator", "const", "unsigned", "long", "int", "char", "float", "double", "bool", "void", "cxx11"}

if __name__ == "__main__":
    sys.exit(main())

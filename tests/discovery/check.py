"""Compares ctest's list with the doctest programs: every case once, none missing.

    check.py CTEST BUILD_DIRECTORY PACKAGE=PROGRAM...
"""

import collections
import json
import re
import subprocess
import sys


def output_of(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def main():
    ctest, build, *programs = sys.argv[1:]
    tests = json.loads(output_of(ctest, "--show-only=json-v1", cwd=build))["tests"]
    in_ctest = collections.Counter()
    failures = []
    for test in tests:
        labels = next((p["value"] for p in test["properties"] if p["name"] == "LABELS"), [])
        in_ctest.update(labels)
        if test["name"].startswith("gradcheck") != ("gradcheck" in labels):
            failures.append(f"'{test['name']}' has the labels {labels}")
    twice = [name for name, count in collections.Counter(t["name"] for t in tests).items() if count > 1]
    failures += [f"two tests are called '{name}'" for name in twice]
    for package, program in (argument.split("=", 1) for argument in programs):
        cases = int(re.search(r"filters: (\d+)", output_of(program, "--count"))[1])
        print(f"{package}: {cases} cases, {in_ctest[package]} tests")
        if cases != in_ctest[package]:
            failures.append(f"{package}: {program} has {cases} cases, ctest lists {in_ctest[package]}")
    print("\n".join(failures))
    return 1 if failures or not programs else 0


if __name__ == "__main__":
    sys.exit(main())

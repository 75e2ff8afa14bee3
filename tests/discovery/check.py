"""Checks that ctest lists every case of the doctest programs once.

    check.py CTEST BUILD_DIRECTORY PROGRAM...
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
    in_ctest = collections.Counter(test["command"][0] for test in tests if "command" in test)
    failures = []
    for test in tests:
        labels = next((p["value"] for p in test["properties"] if p["name"] == "LABELS"), [])
        if test["name"].startswith("gradcheck") and "gradcheck" not in labels:
            failures.append(f"'{test['name']}' lacks the label gradcheck; it has {labels}")
    duplicates = [name for name, count in collections.Counter(t["name"] for t in tests).items() if count > 1]
    failures += [f"two tests are called '{name}'" for name in duplicates]
    for program in programs:
        cases = int(re.search(r"filters: (\d+)", output_of(program, "--count"))[1])
        print(f"{program}: {cases} cases, {in_ctest[program]} tests")
        if cases != in_ctest[program]:
            failures.append(f"{program} has {cases} cases, ctest lists {in_ctest[program]}")
    print("\n".join(failures))
    return 1 if failures or not programs else 0


if __name__ == "__main__":
    sys.exit(main())

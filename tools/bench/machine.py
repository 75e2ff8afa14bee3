"""Shared by the measuring scripts: the environment of the programs, and the name of what is measured."""

import os
import pathlib
import platform
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
RILL = ROOT / "build/release/bin/rill-bench"


def environment(keep=False):
    """The environment of the measured programs: OpenBLAS chooses its kernels by itself, unless `keep`."""
    drop = () if keep else ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
    env = {name: value for name, value in os.environ.items() if name not in drop}
    # Debian's PyTorch has two thread pools, OpenMP's and OpenBLAS's. If one waits by spinning, the other starves: with
    # as many threads as cores it then runs some 2.5 times slower than with one. This is its best setting.
    env.setdefault("OMP_WAIT_POLICY", "passive")
    return env


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def subject():
    """The commit and the processor, for the head of a table."""
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return f"Commit {commit.stdout.strip()}; {processor()}, {os.cpu_count()} cores"

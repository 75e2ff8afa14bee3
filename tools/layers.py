#!/usr/bin/env python3
"""Checks the layering rules of the tree: who may include whom, what headers and kernels must not contain, sizes.

    tools/layers.py              check; prints each breach as FILE:LINE: what, and ends with 1 if there is one
    tools/layers.py --report     prints the largest files and functions and the lines per folder as well
    tools/layers.py --self-test  runs the checks on small trees, each of which breaks one rule
"""

import argparse
import dataclasses
import pathlib
import re
import sys
import tempfile

ROOMS = ("core", "nn", "optim", "examples", "tools", "tests", "docs")
LIBRARIES = ("core", "nn", "optim")  # their headers are public
MAX_COLUMNS = 110
MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 50
MAX_FUSED_LINES = 90  # a fused op reads best in one piece

# The parts of the tree, and the parts whose headers each may include (its own always).
PARTS = {
    "core/kernels": (),
    "core/base": ("core/kernels",),
    "core/gemm": ("core/kernels", "core/base"),
    "core": ("core/kernels", "core/base", "core/gemm"),
    "core/ops": ("core/kernels", "core/base", "core/gemm", "core"),
    "core/io": ("core/kernels", "core/base", "core", "core/ops"),
    "nn": ("core/kernels", "core/base", "core/gemm", "core", "core/ops", "core/io"),
    "optim": ("core/kernels", "core/base", "core", "core/ops", "core/io"),
}
EVERYWHERE = tuple(PARTS)
PARTS |= {
    "examples": EVERYWHERE,
    "tools": (*EVERYWHERE, "examples"),  # the benchmarks measure examples
    "docs": EVERYWHERE,
    "tests": (*EVERYWHERE, "examples", "tools"),
}
# What tensors stand on: errors, element types, shapes, memory and threads.
BASE_FILES = ("core/error.h", "core/dtype.h", "core/shape.h", "core/shape.cpp", "core/memory.h", "core/parallel.h")
# Files of core/ that stand on the ops: the catalogue, the umbrella and what is written with them.
OPS_FILES = ("core/ops.h", "core/gradcheck.h", "core/gradcheck.cpp")
IO_FILES = ("core/core.h",)
THIRD_PARTY = {
    "cblas.h": ("core/gemm/blas.cpp", "tools/bench/floor.cpp"),
    "nlohmann/": ("core/io/safetensors_header.cpp", "examples/", "tools/", "tests/"),
    "CLI/": ("examples/", "tools/", "tests/"),
    "utf8proc.h": ("examples/", "tests/examples/"),
    "zlib.h": ("examples/", "tests/examples/"),
    "doctest/": ("tests/",),
}
FORBIDDEN_IN_PUBLIC_HEADERS = ("iostream", "regex", "cblas.h", "nlohmann/json.hpp")
THREAD_FILES = ("core/parallel/team.cpp",)
THREADS = re.compile(r"\bstd::(thread|jthread|async)\b(?!::)|\bpthread_create\b|#\s*pragma\s+omp\s+[^\n]*\bparallel\b")
IN_KERNELS = {
    "Tensor": re.compile(r"\bTensor\b"),
    "throw": re.compile(r"\bthrow\b"),
    "an allocation": re.compile(r"\bnew\b|\b(m|c|re)alloc\s*\(|\bstd::(vector|string|make_unique|make_shared)\b"),
}
KERNELS = re.compile(r"core/kernels/.+|core/gemm/(?!gemm\.|packed_matrix\.).+|optim/kernels/.+|nn/\w+/\w+_kernels\.(h|cpp)")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>]+)>|"([^"]+)")', re.MULTILINE)


@dataclasses.dataclass
class Source:
    """A file: its path in the tree, its text, and its text with comments and literals blanked."""

    path: str
    text: str
    code: str

    @property
    def is_cpp(self):
        return self.path.endswith((".h", ".cpp"))

    @property
    def is_public_header(self):
        return self.path.endswith(".h") and self.path.startswith(tuple(room + "/" for room in LIBRARIES))

    @property
    def is_kernel(self):
        return bool(KERNELS.fullmatch(self.path))

    def includes(self):
        """Pairs of line and header; a header in quotes keeps them."""
        for match in INCLUDE.finditer(self.text):
            yield line_of(self.text, match.start()), match[1] or f'"{match[2]}"'


def line_of(text, position):
    return text.count("\n", 0, position) + 1


LITERALS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL)


def blank_literals(text):
    """The text with comments, strings and character literals made spaces, line ends kept."""
    return LITERALS.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def read_tree(root):
    sources = []
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.suffix in (".h", ".cpp", ".py") and path.is_file() and "build" not in path.parts:
                text = path.read_text(encoding="utf-8")
                name = path.relative_to(root).as_posix()
                sources.append(Source(name, text, text if path.suffix == ".py" else blank_literals(text)))
    return sources


def part_of(path):
    """The part of the tree that a file belongs to."""
    for files, part in ((BASE_FILES, "core/base"), (OPS_FILES, "core/ops"), (IO_FILES, "core/io")):
        if path in files:
            return part
    folder = "/".join(path.split("/")[:2])
    if folder in ("core/memory", "core/parallel"):
        return "core/base"
    return folder if folder in PARTS else path.split("/")[0]


def target_of(header, paths):
    """The file of the tree that a header names, or None for one from outside."""
    if header.startswith("rill/"):
        return header.removeprefix("rill/")
    for folder in ("examples/", "tools/", "tests/"):
        if folder + header in paths:
            return folder + header
    return header if header in paths else None


# Each check yields (path, line, message).


def check_includes(sources):
    paths = {source.path for source in sources}
    for source in filter(lambda s: s.is_cpp, sources):
        part = part_of(source.path)
        for line, header in source.includes():
            if header.startswith('"'):
                yield source.path, line, f"include {header} in quotes; write <rill/room/name.h>"
                continue
            target = target_of(header, paths)
            if target is None:
                continue
            if target not in paths:
                yield source.path, line, f"include <{header}> names no file of the tree"
            elif part_of(target) not in (part, *PARTS[part]):
                yield source.path, line, f"{part} must not include <{header}> of {part_of(target)}"
            elif target.startswith(("core/", "nn/", "optim/")) and not header.startswith("rill/"):
                yield source.path, line, f"include <{header}> is spelled <rill/{target}>"


def check_third_party(sources):
    for source in filter(lambda s: s.is_cpp, sources):
        for line, header in source.includes():
            for prefix, allowed in THIRD_PARTY.items():
                if header.startswith(prefix) and not source.path.startswith(allowed):
                    yield source.path, line, f"include <{header}> belongs in {' '.join(allowed)} only"
            if source.is_public_header and header in FORBIDDEN_IN_PUBLIC_HEADERS:
                yield source.path, line, f"a public header must not include <{header}>"


def check_cycles(sources):
    paths = {source.path for source in sources}
    graph = {s.path: [(line, target_of(h, paths)) for line, h in s.includes()] for s in sources if s.is_cpp}
    done = set()

    def walk(path, trail):
        if path in done:
            return
        for line, target in graph.get(path, ()):
            if target in trail:
                yield path, line, "includes form a cycle: " + " -> ".join((*trail[trail.index(target):], target))
            elif target:
                yield from walk(target, (*trail, target))
        done.add(path)

    for path in graph:
        yield from walk(path, (path,))


def check_threads(sources):
    for source in filter(lambda s: s.is_cpp, sources):
        if source.path in THREAD_FILES or source.path.startswith("tests/"):
            continue
        for match in THREADS.finditer(source.code):
            line = line_of(source.code, match.start())
            yield source.path, line, f"'{match[0]}': threads start in core/parallel/team.cpp alone; use parallel_for"


def check_kernels(sources):
    for source in filter(lambda s: s.is_kernel, sources):
        for what, pattern in IN_KERNELS.items():
            for match in pattern.finditer(source.code):
                yield source.path, line_of(source.code, match.start()), f"a kernel must not contain {what}"


def check_form(sources):
    for source in sources:
        lines = source.text.count("\n")
        if lines > MAX_FILE_LINES:
            yield source.path, lines, f"{lines} lines; split files above {MAX_FILE_LINES}"
        for line, text in enumerate(source.text.splitlines(), 1):
            if len(text) > MAX_COLUMNS and source.is_cpp:
                yield source.path, line, f"{len(text)} columns; the limit is {MAX_COLUMNS}"
        if source.path.endswith(".h") and "#pragma once" not in source.text:
            yield source.path, 1, "a header needs #pragma once"
        for match in re.finditer(r"\b(TODO|FIXME|XXX)\b", source.text if source.is_cpp else ""):
            yield source.path, line_of(source.text, match.start()), f"{match[0]}: do it now or leave it out"


def check_functions(sources):
    for source in filter(lambda s: s.is_cpp and not s.path.startswith("tests/"), sources):
        limit = MAX_FUSED_LINES if source.path.startswith("nn/") else MAX_FUNCTION_LINES
        for size, line, name in functions_of(source):
            if size > limit:
                yield source.path, line, f"function {name} has {size} lines; the limit is {limit}"


SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b(?!.*\)\s*$)", re.DOTALL)
CONTROL = re.compile(r"^\s*(if|for|while|switch|catch|do|else|return)\b")


def functions_of(source):
    """Yields (lines, first line, name) of each function at namespace or class scope, found by its braces."""
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m[0]), source.code, flags=re.MULTILINE)
    stack, head, start = [], "", 0
    for match in re.finditer(r"[{};]|[^{};]+", code):
        token = match[0]
        if token not in "{};":
            start = start if head.strip() else match.start() + len(token) - len(token.lstrip())
            head += token
        elif token == "{":
            stack.append((kind_of(head, stack), head, start))
            head = "" if stack[-1][0] in ("scope", "function", "block") else head + "{"
        elif token == "}" and stack:
            kind, opened, first = stack.pop()
            if kind == "function":
                size = line_of(code, match.start()) - line_of(code, first) + 1
                yield size, line_of(code, first), name_of(opened)
            head, start = (opened + "{}", first) if kind == "init" else ("", match.end())
        elif token == ";" and not any(kind == "init" for kind, _, _ in stack):
            head = ""


def kind_of(head, stack):
    """What an opening brace opens: a scope, a function, a block inside a function, or an initialiser."""
    if any(kind in ("function", "block") for kind, _, _ in stack):
        return "block"
    if any(kind == "init" for kind, _, _ in stack):
        return "init"
    if SCOPE.search(head.split("(")[0]) and "=" not in head:
        return "scope"
    if CONTROL.match(head) or "(" not in head:
        return "init"
    constructor = re.search(r"\)\s*(?:noexcept\s*)?:(?!:)", head)
    ends_open = re.search(r"[\w>]\s*$", head) and not re.search(r"\b(const|noexcept|override|final)\s*$", head)
    if constructor and ends_open:
        return "init"
    is_body = re.search(r"[)}]\s*((const|noexcept|override|final|mutable|&&?|requires\b.*|->.*)\s*)*$", head, re.DOTALL)
    return "function" if is_body and not re.search(r"=\s*$", head) else "init"


def name_of(head):
    match = re.search(r"([~\w:]+|operator\s*[^\s(]+|operator\(\))\s*\(", head)
    return match[1] if match else "?"


CHECKS = (check_includes, check_third_party, check_cycles, check_threads, check_kernels, check_form, check_functions)


def breaches(sources):
    return sorted({breach for check in CHECKS for breach in check(sources)})


def report(sources):
    lines = {source.path: source.text.count("\n") for source in sources}
    print("largest files")
    for path in sorted(lines, key=lines.get, reverse=True)[:10]:
        print(f"{lines[path]:7}  {path}")
    found = [(size, f"{s.path}:{line} {name}") for s in sources if s.is_cpp for size, line, name in functions_of(s)]
    print("largest functions")
    for size, where in sorted(found, reverse=True)[:15]:
        print(f"{size:7}  {where}")
    folders = {}
    for path, count in lines.items():
        files, total = folders.get(str(pathlib.PurePosixPath(path).parent), (0, 0))
        folders[str(pathlib.PurePosixPath(path).parent)] = files + 1, total + count
    print("lines per folder")
    for folder, (files, total) in sorted(folders.items()):
        print(f"{total:7}  {folder} ({files} files)")
    print(f"{sum(lines.values()):7}  in all ({len(lines)} files)")


GOOD_TREE = {
    "core/gemm/blas.h": "#pragma once\nvoid blas_gemm(const float* a, long n) noexcept;\n",
    "core/gemm/blas.cpp": "#include <cblas.h>\n#include <rill/core/gemm/blas.h>\n",
    "core/tensor.h": "#pragma once\n#include <memory>\n// A Tensor, not a std::thread: \"throw\"\nclass Tensor {};\n",
    "core/parallel/team.cpp": "#include <thread>\nvoid start() { std::thread t; }\n",
    "core/ops.h": "#pragma once\n#include <rill/core/tensor.h>\n",
    "core/ops/matmul.cpp": "#include <rill/core/gemm/blas.h>\n#include <rill/core/ops.h>\n",
    "nn/recurrent/gru.h": "#pragma once\n#include <rill/core/ops.h>\n",
    "optim/sgd.h": "#pragma once\n#include <rill/core/tensor.h>\n",
    "examples/translator/text/text.h": "#pragma once\n#include <string>\n",
    "examples/hello.cpp": "#include <rill/nn/recurrent/gru.h>\n#include <rill/optim/sgd.h>\n#include <iostream>\n",
    "tests/examples/text.cpp": "#include <doctest/doctest.h>\n#include <translator/text/text.h>\n#include <thread>\nstd::thread t;\n",
}


def long_function(lines):
    return "struct S {\n  S() : a_{1} {}\n  int a_;\n};\nint f(int x) {\n" + "  x += 1;\n" * (lines - 2) + "}\n"


# Each row: the rule, the file added to the good tree (or put in place of one), and the message that must come.
BROKEN = (
    ("quotes", "nn/a.cpp", '#include "gru.h"\n', "in quotes"),
    ("core includes nn", "core/a.cpp", "#include <rill/nn/recurrent/gru.h>\n", "core must not include"),
    ("core includes an op", "core/a.cpp", "#include <rill/core/ops.h>\n", "core must not include"),
    ("products include core", "core/gemm/a.cpp", "#include <rill/core/tensor.h>\n", "core/gemm must not include"),
    ("kernel includes core", "core/kernels/a.cpp", "#include <rill/core/tensor.h>\n", "core/kernels must not include"),
    ("optim includes nn", "optim/a.cpp", "#include <rill/nn/recurrent/gru.h>\n", "optim must not include"),
    ("nn includes optim", "nn/a.cpp", "#include <rill/optim/sgd.h>\n", "nn must not include"),
    ("nn includes examples", "nn/a.cpp", "#include <translator/text/text.h>\n", "nn must not include"),
    ("second spelling", "nn/a.cpp", "#include <core/tensor.h>\n", "is spelled <rill/core/tensor.h>"),
    ("no such header", "nn/a.cpp", "#include <rill/core/none.h>\n", "names no file"),
    ("cblas elsewhere", "core/ops/a.cpp", "#include <cblas.h>\n", "<cblas.h> belongs in core/gemm/blas.cpp"),
    ("cblas in a header", "core/gemm/blas.h", "#pragma once\n#include <cblas.h>\n", "public header must not"),
    ("json in nn", "nn/a.cpp", "#include <nlohmann/json.hpp>\n", "<nlohmann/json.hpp> belongs in"),
    ("iostream in a header", "nn/a.h", "#pragma once\n#include <iostream>\n", "public header must not include <iostream>"),
    ("regex in a header", "core/a.h", "#pragma once\n#include <regex>\n", "public header must not include <regex>"),
    ("cycle", "core/tensor.h", "#pragma once\n#include <rill/core/tensor.h>\n", "cycle"),
    ("std::thread", "nn/a.cpp", "void f() { std::thread t; }\n", "core/parallel/team.cpp alone"),
    ("std::async", "examples/a.cpp", "auto x = std::async(f);\n", "core/parallel/team.cpp alone"),
    ("omp parallel", "core/ops/a.cpp", "#pragma omp parallel for\n", "core/parallel/team.cpp alone"),
    ("Tensor in a kernel", "core/kernels/a.cpp", "void f(const Tensor& x);\n", "must not contain Tensor"),
    ("throw in a kernel", "nn/recurrent/gru_kernels.h", "#pragma once\ninline void f() { throw 1; }\n", "must not contain throw"),
    ("allocation in a kernel", "core/kernels/a.cpp", "float* p = new float[3];\n", "must not contain an allocation"),
    ("long file", "core/a.cpp", "\n" * 451, "451 lines"),
    ("long function", "core/a.cpp", long_function(51), "function f has 51 lines"),
    ("long fused op", "nn/a.cpp", long_function(91), "function f has 91 lines"),
    ("long line", "core/a.cpp", "// " + "é" * 108 + "\n", "111 columns"),
    ("no pragma once", "nn/a.h", "int f();\n", "#pragma once"),
    ("TODO", "nn/a.cpp", "// TO" "DO: later\n", "leave it out"),
)
ALLOWED = (
    ("long fused op", "nn/a.cpp", long_function(90)),
    ("function at the limit", "core/a.cpp", long_function(50)),
    ("long file", "core/a.cpp", "\n" * 450),
    ("this_thread and hardware_concurrency", "nn/a.cpp", "int n = std::thread::hardware_concurrency();\n"),
    ("line at the limit", "core/a.cpp", "// " + "é" * 107 + "\n"),
    ("tools measure examples", "tools/a.cpp", "#include <translator/text/text.h>\n"),
    ("omp simd", "core/kernels/a.cpp", "#pragma omp simd\n"),
    ("words in comments and strings", "core/kernels/a.cpp", '/* Tensor\nthrow */ const char* s = "new Tensor";\n'),
)


def breaches_of(tree):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in tree.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return [f"{path}:{line}: {what}" for path, line, what in breaches(read_tree(pathlib.Path(folder)))]


def self_test():
    failures = [f"the good tree: {breach}" for breach in breaches_of(GOOD_TREE)]
    for rule, path, text, message in BROKEN:
        found = breaches_of({**GOOD_TREE, path: text})
        if not any(breach.startswith(path) and message in breach for breach in found):
            failures.append(f"{rule}: no '{message}' in {found}")
    for rule, path, text in ALLOWED:
        failures += [f"{rule}, which is allowed: {breach}" for breach in breaches_of({**GOOD_TREE, path: text})]
    print("\n".join(failures) or f"{len(BROKEN)} broken rules found, {len(ALLOWED)} allowed cases passed")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description="Checks the layering rules of the tree.")
    parser.add_argument("--report", action="store_true", help="print sizes as well")
    parser.add_argument("--self-test", action="store_true", help="check the checks")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    sources = read_tree(options.root)
    if options.report:
        report(sources)
    found = breaches(sources)
    for path, line, what in found:
        print(f"{path}:{line}: {what}")
    print(f"layers: {len(sources)} files, {len(found)} breaches" if found else f"layers: {len(sources)} files in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

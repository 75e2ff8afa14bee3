#!/usr/bin/env python3
"""Checks the layering rules of the tree: who may include whom, what headers and kernels must not contain, sizes.

    tools/layers.py           check; prints each breach as FILE:LINE: what, and ends with 1 if there is one
    tools/layers.py --report  prints the largest files and functions and the lines of each folder as well
    tools/layers.py --public  prints the paths of the public headers

The public headers are those that the CMakeLists.txt of core, nn and optim list. tests/tools/layers_test.py
checks the checks.
"""

import argparse
import dataclasses
import pathlib
import re
import sys

ROOMS = ("core", "nn", "optim", "examples", "tools", "tests", "docs")
LIBRARIES = ("core", "nn", "optim")
USERS = ("examples", "docs")  # like the programs of others, they see public headers alone
UMBRELLA = "rill.h"
MAX_PUBLIC_HEADERS = 62
MAX_SOURCES_IN_ROOM = 12  # side by side in a folder of nn
MAX_COLUMNS = 110
MAX_FILE_LINES = 400
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
    UMBRELLA: EVERYWHERE,
    "examples": (*EVERYWHERE, UMBRELLA),
    "tools": (*EVERYWHERE, UMBRELLA, "examples"),  # the benchmarks measure examples
    "docs": (*EVERYWHERE, UMBRELLA),
    "tests": (*EVERYWHERE, UMBRELLA, "examples", "tools"),
}
# What tensors stand on: errors, element types, shapes, memory and threads.
BASE_FILES = ("core/error.h", "core/dtype.h", "core/shape.h", "core/shape.cpp", "core/memory.h", "core/parallel.h")
# Files of core/ that stand on the ops: the catalogue, the umbrella and what is written with them.
OPS_FILES = ("core/ops.h", "core/extend.h", "core/gradcheck.h", "core/gradcheck.cpp")
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
PUBLIC_LIST = re.compile(r"\brill_library\(\s*(\w+)\s+HEADERS\s+([^)]*)\)")
TYPE = re.compile(r"^(?:template *<[^;{]*>\s*)?(?:class|struct|enum|enum class|union) (?:alignas\([^)]*\) )?(\w+)"
                  r"(?: final)?\s*(?::[^:;{][^;{]*)?\{", re.MULTILINE)
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
    def is_library_header(self):
        return self.path == UMBRELLA or self.path.endswith(".h") and self.room in LIBRARIES

    @property
    def room(self):
        return self.path.split("/")[0]

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


@dataclasses.dataclass
class Tree:
    """The sources of the tree, and the paths of its public headers with the list each stands in."""

    sources: list
    public: dict


def read_tree(root):
    sources = []
    for path in [root / UMBRELLA, *(path for room in ROOMS for path in sorted((root / room).rglob("*")))]:
        if path.suffix in (".h", ".cpp", ".py") and path.is_file() and "build" not in path.parts:
            text = path.read_text(encoding="utf-8")
            name = path.relative_to(root).as_posix()
            sources.append(Source(name, text, text if path.suffix == ".py" else blank_literals(text)))
    public = {UMBRELLA: "CMakeLists.txt"} if (root / UMBRELLA).exists() else {}
    for library in LIBRARIES:
        lists = root / library / "CMakeLists.txt"
        for room, headers in PUBLIC_LIST.findall(lists.read_text(encoding="utf-8") if lists.exists() else ""):
            public |= {f"{room}/{header}": f"{library}/CMakeLists.txt" for header in headers.split()}
    return Tree(sources, public)


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


def check_includes(tree):
    paths = {source.path for source in tree.sources}
    for source in filter(lambda s: s.is_cpp, tree.sources):
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


def check_public(tree):
    """What users see is closed: no header, library or program that stands for a user's needs an internal one."""
    paths = {source.path for source in tree.sources}
    for header, where in tree.public.items():
        if header not in paths:
            yield where, 1, f"{header} is no file of the tree"
    if len(tree.public) > MAX_PUBLIC_HEADERS:
        yield "core/CMakeLists.txt", 1, f"{len(tree.public)} public headers; the most is {MAX_PUBLIC_HEADERS}"
    for source in filter(lambda s: s.is_cpp, tree.sources):
        exports = [m.start() for m in re.finditer(r"#pragma GCC visibility (push\(default\)|pop)$", source.code, re.MULTILINE)]
        wanted = 2 if source.path in tree.public and "\nnamespace" in source.code else 0
        if len(exports) != wanted and source.room in (*LIBRARIES, UMBRELLA):
            yield source.path, 1, ("a public header declares between '#pragma GCC visibility push(default)' and '… pop'"
                                   if wanted else "what is internal is not exported: no '#pragma GCC visibility' here")
        for line, header in source.includes():
            target = target_of(header, paths)
            if target is None or target not in paths or target in tree.public or not header.startswith("rill/"):
                continue
            if source.path in tree.public:
                yield source.path, line, f"a public header must not include the internal <{header}>"
            elif source.room in USERS or source.room in LIBRARIES and source.room != target.split("/")[0]:
                yield source.path, line, f"{source.room} must not include the internal <{header}>; see rill/core/extend.h"


def check_third_party(tree):
    for source in filter(lambda s: s.is_cpp, tree.sources):
        for line, header in source.includes():
            for prefix, allowed in THIRD_PARTY.items():
                if header.startswith(prefix) and not source.path.startswith(allowed):
                    yield source.path, line, f"include <{header}> belongs in {' '.join(allowed)} only"
            if source.is_library_header and header in FORBIDDEN_IN_PUBLIC_HEADERS:
                yield source.path, line, f"a header must not include <{header}>"


def check_cycles(tree):
    paths = {source.path for source in tree.sources}
    graph = {s.path: [(line, target_of(h, paths)) for line, h in s.includes()] for s in tree.sources if s.is_cpp}
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


def check_threads(tree):
    for source in filter(lambda s: s.is_cpp, tree.sources):
        if source.path in THREAD_FILES or source.path.startswith("tests/"):
            continue
        for match in THREADS.finditer(source.code):
            line = line_of(source.code, match.start())
            yield source.path, line, f"'{match[0]}': threads start in core/parallel/team.cpp alone; use parallel_for"


def check_kernels(tree):
    paths = {source.path for source in tree.sources}
    for source in filter(lambda s: s.is_kernel, tree.sources):
        for line, header in source.includes():
            target = target_of(header, paths)
            if target in paths and not KERNELS.fullmatch(target) and not source.path.startswith("core/gemm/"):
                yield source.path, line, f"a kernel must not include <{header}>, which is none"
        for what, pattern in IN_KERNELS.items():
            for match in pattern.finditer(source.code):
                yield source.path, line_of(source.code, match.start()), f"a kernel must not contain {what}"


def check_rooms(tree):
    rooms = {}
    for source in tree.sources:
        if source.path.startswith("nn/") and source.path.endswith(".cpp"):
            rooms.setdefault(source.path.rsplit("/", 1)[0], []).append(source.path)
    for room, files in rooms.items():
        if len(files) > MAX_SOURCES_IN_ROOM:
            yield files[-1], 1, f"{len(files)} sources side by side in {room}; the most is {MAX_SOURCES_IN_ROOM}"


def check_form(tree):
    for source in tree.sources:
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


def check_functions(tree):
    for source in filter(lambda s: s.is_cpp and not s.path.startswith("tests/"), tree.sources):
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
    """Names what an opening brace opens: a scope, a function, a block inside a function, or an initialiser."""
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


def check_names(tree):
    """A type's name belongs to one file of the libraries."""
    first = {}
    for source in filter(lambda s: s.is_cpp and s.room in LIBRARIES, tree.sources):
        for match in TYPE.finditer(source.code):
            other = first.setdefault(match[1], source.path)
            if other != source.path:
                line = source.code.count("\n", 0, match.start(1)) + 1
                yield source.path, line, f"{match[1]} is also the name of a type in {other}"


CHECKS = (check_includes, check_public, check_third_party, check_cycles, check_threads, check_kernels, check_rooms,
          check_form, check_functions, check_names)


def breaches(tree):
    return sorted({breach for check in CHECKS for breach in check(tree)})


def report(tree):
    lines = {source.path: source.text.count("\n") for source in tree.sources}
    print("largest files")
    for path in sorted(lines, key=lines.get, reverse=True)[:10]:
        print(f"{lines[path]:7}  {path}")
    found = [(size, f"{s.path}:{line} {name}")
             for s in tree.sources if s.is_cpp for size, line, name in functions_of(s)]
    print("largest functions")
    for size, where in sorted(found, reverse=True)[:15]:
        print(f"{size:7}  {where}")
    print("lines, files, in each folder")
    libraries = {path: count for path, count in lines.items() if path.startswith(tuple(f"{r}/" for r in LIBRARIES))}
    folders = sorted({path.rpartition("/")[0] for path in lines})
    groups = [(folder, [p for p in lines if p.rpartition("/")[0] == folder]) for folder in folders]
    groups += [(f"{room}, whole", [p for p in lines if p.startswith(room + "/")]) for room in ROOMS]
    for name, files in groups:
        print(f"{sum(map(lines.get, files)):7} {len(files):5}  {name}")
    print(f"{sum(libraries.values()):7} {len(libraries):5}  {' + '.join(LIBRARIES)}; {len(tree.public)} public headers")


def main():
    parser = argparse.ArgumentParser(description="Checks the layering rules of the tree.")
    parser.add_argument("--report", action="store_true", help="print sizes as well")
    parser.add_argument("--public", action="store_true", help="print the paths of the public headers alone")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    tree = read_tree(options.root)
    if options.public:
        print("\n".join(tree.public))
        return 0
    if options.report:
        report(tree)
    found = breaches(tree)
    for path, line, what in found:
        print(f"{path}:{line}: {what}")
    print(f"layers: {len(tree.sources)} files, " + (f"{len(found)} breaches" if found else "in order"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Tests tools/layers.py on small trees: a good one, and one that breaks each rule."""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import layers  # noqa: E402 (the folder comes first)

GOOD_TREE = {
    "rill.h": "#pragma once\n#include <rill/nn/recurrent/gru.h>\n#include <rill/optim/sgd.h>\n",
    "core/CMakeLists.txt": "rill_library(core HEADERS\n  tensor.h\n  ops.h)\n",
    "nn/CMakeLists.txt": "rill_library(nn HEADERS recurrent/gru.h)\n",
    "optim/CMakeLists.txt": "rill_library(optim HEADERS sgd.h)\n",
    "core/gemm/blas.h": "#pragma once\nvoid blas_gemm(const float* a, long n) noexcept;\n",
    "core/gemm/blas.cpp": "#include <cblas.h>\n#include <rill/core/gemm/blas.h>\n",
    "core/ops/rows.h": "#pragma once\n",
    "core/tensor.h": "#pragma once\n#include <memory>\n// A Tensor, not a std::thread: \"throw\"\nclass Tensor {};\n",
    "core/parallel/team.cpp": "#include <thread>\nvoid start() { std::thread t; }\n",
    "core/ops.h": "#pragma once\n#include <rill/core/tensor.h>\n",
    "core/ops/matmul.cpp": "#include <rill/core/gemm/blas.h>\n#include <rill/core/ops.h>\n#include <rill/core/ops/rows.h>\n",
    "nn/recurrent/gru.h": "#pragma once\n#include <rill/core/ops.h>\n",
    "nn/recurrent/steps.h": "#pragma once\n#include <rill/nn/recurrent/gru.h>\n",
    "nn/recurrent/gru.cpp": "#include <rill/nn/recurrent/steps.h>\n",
    "optim/sgd.h": "#pragma once\n#include <rill/core/tensor.h>\n",
    "examples/translator/text/text.h": "#pragma once\n#include <string>\n",
    "examples/hello.cpp": "#include <rill/nn/recurrent/gru.h>\n#include <rill/optim/sgd.h>\n#include <iostream>\n",
    "examples/all.cpp": "#include <rill/rill.h>\n",
    "tests/nn/steps.cpp": "#include <rill/nn/recurrent/steps.h>\n",
    "tests/examples/text.cpp": "#include <doctest/doctest.h>\n#include <translator/text/text.h>\n#include <thread>\nstd::thread t;\n",
}


def long_function(lines):
    return "struct S {\n  S() : a_{1} {}\n  int a_;\n};\nint f(int x) {\n" + "  x += 1;\n" * (lines - 2) + "}\n"


# Each row: the rule, the file added to or replaced in the good tree, and the expected message.
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
    ("listed header that is missing", "core/CMakeLists.txt", "rill_library(core HEADERS tensor.h ops.h none.h)\n", "none.h is no file"),
    ("public header includes an internal one", "core/ops.h", "#pragma once\n#include <rill/core/ops/rows.h>\n",
     "must not include the internal <rill/core/ops/rows.h>"),
    ("umbrella includes an internal header", "rill.h", "#pragma once\n#include <rill/nn/recurrent/steps.h>\n", "the internal"),
    ("public header that hides", "core/ops.h", "#pragma once\nnamespace rill {}\n", "visibility push(default)"),
    ("internal header that exports", "core/ops/rows.h",
     "#pragma once\n#pragma GCC visibility push(default)\nnamespace rill {}\n#pragma GCC visibility pop\n", "is not exported"),
    ("nn includes an internal header of core", "nn/a.cpp", "#include <rill/core/ops/rows.h>\n", "see rill/core/extend.h"),
    ("optim includes an internal header of core", "optim/a.cpp", "#include <rill/core/ops/rows.h>\n", "the internal"),
    ("example includes an internal header", "examples/a.cpp", "#include <rill/nn/recurrent/steps.h>\n", "the internal"),
    ("too many public headers", "core/CMakeLists.txt", f"rill_library(core HEADERS {' '.join(f'{i}.h' for i in range(64))})\n",
     "public headers; the most is"),
    ("kernel includes an op", "nn/recurrent/a_kernels.cpp", "#include <rill/core/ops.h>\n", "which is none"),
    ("cblas elsewhere", "core/ops/a.cpp", "#include <cblas.h>\n", "<cblas.h> belongs in core/gemm/blas.cpp"),
    ("cblas in a header", "core/gemm/blas.h", "#pragma once\n#include <cblas.h>\n", "a header must not"),
    ("json in nn", "nn/a.cpp", "#include <nlohmann/json.hpp>\n", "<nlohmann/json.hpp> belongs in"),
    ("iostream in a header", "nn/a.h", "#pragma once\n#include <iostream>\n", "a header must not include <iostream>"),
    ("regex in a header", "core/a.h", "#pragma once\n#include <regex>\n", "a header must not include <regex>"),
    ("cycle", "core/tensor.h", "#pragma once\n#include <rill/core/tensor.h>\n", "cycle"),
    ("std::thread", "nn/a.cpp", "void f() { std::thread t; }\n", "core/parallel/team.cpp alone"),
    ("std::async", "examples/a.cpp", "auto x = std::async(f);\n", "core/parallel/team.cpp alone"),
    ("omp parallel", "core/ops/a.cpp", "#pragma omp parallel for\n", "core/parallel/team.cpp alone"),
    ("Tensor in a kernel", "core/kernels/a.cpp", "void f(const Tensor& x);\n", "must not contain Tensor"),
    ("throw in a kernel", "nn/recurrent/gru_kernels.h", "#pragma once\ninline void f() { throw 1; }\n", "must not contain throw"),
    ("allocation in a kernel", "core/kernels/a.cpp", "float* p = new float[3];\n", "must not contain an allocation"),
    ("long file", "core/a.cpp", "\n" * 401, "401 lines"),
    ("long function", "core/a.cpp", long_function(51), "function f has 51 lines"),
    ("long fused op", "nn/a.cpp", long_function(91), "function f has 91 lines"),
    ("type named twice", "nn/a.cpp", "struct Tensor {\n};\n", "Tensor is also the name of a type in core/"),
    ("long line", "core/a.cpp", "// " + "é" * 108 + "\n", "111 columns"),
    ("no pragma once", "nn/a.h", "int f();\n", "#pragma once"),
    ("TODO", "nn/a.cpp", "// TO" "DO: later\n", "leave it out"),
)
ALLOWED = (
    ("long fused op", "nn/a.cpp", long_function(90)),
    ("function at the limit", "core/a.cpp", long_function(50)),
    ("long file", "core/a.cpp", "\n" * 400),
    ("this_thread and hardware_concurrency", "nn/a.cpp", "int n = std::thread::hardware_concurrency();\n"),
    ("line at the limit", "core/a.cpp", "// " + "é" * 107 + "\n"),
    ("tools measure examples", "tools/a.cpp", "#include <translator/text/text.h>\n"),
    ("omp simd", "core/kernels/a.cpp", "#pragma omp simd\n"),
    ("words in comments and strings", "core/kernels/a.cpp", '/* Tensor\nthrow */ const char* s = "new Tensor";\n'),
)


BROKEN_ROOM = {f"nn/recurrent/{i}.cpp": "\n" for i in range(12)}  # thirteen with gru.cpp


def breaches_of(tree):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in tree.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return [f"{path}:{line}: {what}" for path, line, what in layers.breaches(layers.read_tree(pathlib.Path(folder)))]


def self_test():
    failures = [f"the good tree: {breach}" for breach in breaches_of(GOOD_TREE)]
    for rule, path, text, message in BROKEN:
        found = breaches_of({**GOOD_TREE, path: text})
        if not any(breach.startswith(path) and message in breach for breach in found):
            failures.append(f"{rule}: no '{message}' in {found}")
    if not any("13 sources side by side" in breach for breach in breaches_of({**GOOD_TREE, **BROKEN_ROOM})):
        failures.append("sources side by side: not found")
    for rule, path, text in ALLOWED:
        failures += [f"{rule}, which is allowed: {breach}" for breach in breaches_of({**GOOD_TREE, path: text})]
    print("\n".join(failures) or f"{len(BROKEN) + 1} broken rules found, {len(ALLOWED)} allowed cases passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(self_test())

#!/usr/bin/env python3
"""Shows Doxygen a header as its readers take it: a comment, or a section rule (`// --- words`), speaks for all
declarations under it, up to an empty line, a scope or the next comment. Each such block becomes a group, whose comment
Doxygen hands to all its members (DISTRIBUTE_GROUP_DOC). The first comment is the file's. What needs no words is left out: defaulted and deleted members,
instantiations in the library, formatters of fmt.
"""

import pathlib
import re
import sys

LEFT_OUT = re.compile(
    r"^[ \t]*[^\n/{}()]*\([^\n{}]*\)[^\n{}()]*= (?:default|delete);[^\n]*|^extern template [^;]*;|^template <>\nstruct fmt::formatter<.*?^\};",
    re.MULTILINE | re.DOTALL)
BREAKS = ("}", "//", "#", "public:", "private:", "protected:")


def grouped(lines):
    out, block = [], []

    def close():
        declarations = [line for line in block if not line.lstrip().startswith("//")]
        several = sum(bool(re.search(r"[;}]\s*(//.*)?$", line)) for line in declarations) > 1
        out.extend(["///@{", *block, "///@}"] if several else block)
        block.clear()

    in_rule = False
    for line in [*lines, ""]:
        if line.lstrip().startswith("// --- ") or in_rule and re.match(r"\s*// ", line):
            line = re.sub(r"//( ---)? ", "/// ", line, count=1)
            in_rule = True
        else:
            in_rule = False
        text = line.strip()
        is_comment = text.startswith("///") and not text.startswith("///<")
        opens_scope = line.count("{") > line.count("}")
        after_declaration = block and not block[-1].lstrip().startswith("///")
        if not text or opens_scope or text.startswith(BREAKS) and (after_declaration or not is_comment):
            close()
        if is_comment or block:
            block.append(line)
        else:
            out.append(line)
    return out


def main():
    text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    text = LEFT_OUT.sub(lambda match: "\n" * match[0].count("\n"), text)
    indented = re.sub(r"^/// {3,}(?=\S)", "///        ", text, flags=re.MULTILINE)  # Markdown's code has four spaces
    print("/// @file", *grouped(indented.splitlines()), sep="\n")


main()

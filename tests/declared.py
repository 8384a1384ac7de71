"""declared.py - the calls that the public headers declare, for the tests that compare with them.

The headers are preprocessed, what lies inside braces is dropped, and of the declarations left those
of functions and extern objects named weft_ are taken.
"""
import os
import re
import subprocess


def declared(root):
    folder = os.path.join(root, "include/weft")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".h"))
    text = "".join(f"#include <weft/{name}>\n" for name in names)
    cc = os.environ.get("CC", "gcc").split()
    out = subprocess.run([*cc, "-E", "-std=c11", "-I" + os.path.join(root, "include"), "-x", "c", "-"],
                         input=text, check=True, capture_output=True, text=True).stdout
    ours = []
    keep = False
    for line in out.splitlines():   # only the lines that come from the public headers
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            keep = os.path.dirname(os.path.abspath(marker[1])) == os.path.abspath(folder)
        elif keep:
            ours.append(line)
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", " ", " ".join(ours))
    while re.search(r"\{[^{}]*\}", text):           # from the inside out
        text = re.sub(r"\{[^{}]*\}", " @ ", text)
    found = set()
    for part in re.split(r";|(?<=\))\s*@", text):   # a declaration ends at its semicolon or body
        if re.search(r"\b(static|typedef)\b", part):
            continue
        call = re.search(r"\b(weft_\w+)\s*\(", part)
        thing = re.search(r"\bextern\b.*\b(weft_\w+)\s*$", part)
        if call or thing:
            found.add((call or thing)[1])
    return found

"""Made the files of this folder and their expected figures, with Python's csv and statistics alone.

    python3 expected.py

Independent of both analysis scripts on purpose: rows are written from lists and the figures are
computed from those lists, not from the files. Not run by any test: what it made is committed.
"""

import json
import os
import random
import statistics
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
random.seed(20240229)


def numbers(values):
    q = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return {
        "count": len(values),
        "mean": statistics.fmean(values),
        "sd": statistics.stdev(values) if len(values) > 1 else None,
        "min": min(values),
        "q1": q[0],
        "median": q[1],
        "q3": q[2],
        "max": max(values),
        "sum": sum(values),
    }


def top(values):
    pairs = sorted(Counter(values).items(), key=lambda p: (-p[1], p[0].encode()))
    return [f"{n} {v}" for v, n in pairs[:15]]


def save(name, data, **expected):
    with open(f"{HERE}/{name}", "wb") as f:
        f.write(data)
    with open(f"{HERE}/{name}.json", "w") as f:
        json.dump(expected, f, indent=1, ensure_ascii=False)
        f.write("\n")


# Quotes: delimiters, quotes and line ends within cells, CRLF, a BOM, a row twice in two spellings.
text = ['a, b', 'say "hi"', 'two\r\nlines', 'plain', 'a, b', '', ',,,', '"', 'plain', 'ends with "quote"']
price = [1.5, 2.25, -3.75, 10, 1.5, 0, 1000000.5, 7, 10, 2]
lines = ["id,text,price"]
for i, (t, p) in enumerate(zip(text, price)):
    quoted = '"' + t.replace('"', '""') + '"'
    lines.append(f"{i + 1},{quoted},{p}")
lines.append('"4","plain","10"')  # the fourth row again
price.append(10)
text.append("plain")
save(
    "quotes.csv",
    b"\xef\xbb\xbf" + ("\r\n".join(lines) + "\r\n").encode(),
    rows=11,
    columns=3,
    duplicates=1,
    names=["id", "text", "price"],
    types=["integer", "category", "number"],
    missing=[0, 1, 0],
    numbers={"3": numbers(price), "1": numbers([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 4])},
    top={"2": [s.replace("\r\n", "\\r\\n") for s in top([t for t in text if t])]},
)

# Semicolons, decimal commas, dotted dates, one row with a number that is a word.
rows = [(random.choice(["Nord", "Süd", "Ost"]), round(random.uniform(-50, 900), 2), f"{1 + i % 28:02d}.{1 + i % 12:02d}.2023") for i in range(60)]
body = ["Region;Betrag;Datum"] + [f"{r};{str(a).replace('.', ',')};{d}" for r, a, d in rows]
body[17] = f"{rows[16][0]};unbekannt;{rows[16][2]}"
amounts = [a for i, (_, a, _) in enumerate(rows) if i != 16]
save(
    "semicolon.csv",
    ("\n".join(body) + "\n").encode(),
    rows=60,
    columns=3,
    duplicates=0,
    names=["Region", "Betrag", "Datum"],
    types=["category", "number", "date"],
    missing=[0, 0, 0],
    other=[0, 1, 0],
    numbers={"2": numbers(amounts)},
    top={"1": top([r for r, _, _ in rows])},
    months={"3": [f"{k} {n}" for k, n in sorted(Counter(f"2023-{d[3:5]}" for _, _, d in rows).items())]},
    first={"3": min(f"2023-{d[3:5]}-{d[:2]}" for _, _, d in rows)},
)

# Tabs: empty cells, words for missing, blanks around, US dates, ratings, e-mail addresses, no end of line.
people = []
for i in range(120):
    people.append([
        f" user {i} " if i % 10 == 0 else f"user {i}",
        random.choice(["NA", "", "3", "4", "5", "5"]),
        f"{1 + i % 12}/{1 + (i * 7) % 28}/{2021 + i % 2}",
        f"U{i}@{random.choice(['Example.com', 'mail.example.org', 'firma.co.uk'])}",
    ])
score = [int(p[1]) for p in people if p[1] not in ("NA", "")]
save(
    "tabs.tsv",
    ("\n".join("\t".join(r) for r in [["name", "score", "joined", "mail"]] + people)).encode(),
    rows=120,
    columns=4,
    duplicates=0,
    names=["name", "score", "joined", "mail"],
    types=["text", "integer", "date", "text"],
    missing=[0, 120 - len(score), 0, 0],
    padded=12,
    na_words=sum(p[1] == "NA" for p in people),
    numbers={"2": numbers(score)},
    top={"2": top([str(s) for s in score])},
    months={"3": [f"{k} {n}" for k, n in sorted(Counter(f"{p[2].split('/')[2]}-{int(p[2].split('/')[0]):02d}" for p in people).items())]},
    hosts={"4": top([p[3].split("@")[1].lower() for p in people])},
    endings={"4": top(["." + p[3].rsplit(".", 1)[1].lower() for p in people])},
)

# Pipes, Latin-1.
rows = [(random.choice(["Zürich", "Köln", "Málaga"]), random.randrange(10, 5000)) for _ in range(40)]
save(
    "latin1.csv",
    ("\n".join(["Straße|Wert"] + [f"{a}|{b}" for a, b in rows]) + "\n").encode("latin-1"),
    rows=40,
    columns=2,
    duplicates=len(rows) - len(set(rows)),
    names=["Straße", "Wert"],
    types=["category", "integer"],
    missing=[0, 0],
    numbers={"2": numbers([b for _, b in rows])},
    top={"1": top([a for a, _ in rows])},
)

# Ragged rows, blank lines, a column without a name and one twice, an empty column, an open quote at the end.
body = "x,,x,none\n1,a,2,\n\n3,b\n5,c,6,,extra\n7,d,8,\n\n9,e,10,\"open\n"
save(
    "ragged.csv",
    body.encode(),
    rows=5,
    columns=4,
    duplicates=0,
    names=["x", "column 2", "x (2)", "none"],
    types=["integer", "text", "integer", "text"],
    missing=[0, 0, 1, 4],
    short=1,
    long=1,
    blank=2,
    numbers={"1": numbers([1, 3, 5, 7, 9]), "3": numbers([2, 6, 8, 10])},
)

# Numbers that are hard to sum up: a large offset with small steps, exponents, signs, leading zeros.
n = 500
big = [1_000_000_000 + i / 8 for i in range(n)]
exp = [random.uniform(-1, 1) * 10 ** random.randrange(-6, 7) for _ in range(n)]
ints = [random.randrange(-(10**6), 10**6) for _ in range(n)]
zips = [f"{random.randrange(100000):05d}" for _ in range(n)]
exp = [float(f"{e:.6e}") for e in exp]
body = ["big,exp,int,zip"] + [f"{a},{b:.6e},{c:+d},{z}" for a, b, c, z in zip(big, exp, ints, zips)]
save(
    "numbers.csv",
    ("\n".join(body) + "\n").encode(),
    rows=n,
    columns=4,
    duplicates=0,
    names=["big", "exp", "int", "zip"],
    types=["number", "number", "integer", "text"],
    missing=[0, 0, 0, 0],
    numbers={"1": numbers(big), "2": numbers(exp), "3": numbers(ints)},
)

save("header-only.csv", b"a,b,c\n", rows=0, columns=3, duplicates=0, names=["a", "b", "c"], types=["empty"] * 3, missing=[0, 0, 0])

words = [random.choice(["red", "green", "blue", "grün"]) + str(random.randrange(40)) for _ in range(90)]
save("one-column.csv", ("word\n" + "\n".join(words)).encode(), rows=90, columns=1, duplicates=90 - len(set(words)), names=["word"], types=["category" if len(set(words)) <= 45 else "text"], missing=[0], top={"1": top(words)})

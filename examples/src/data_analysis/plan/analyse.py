"""Profile a CSV file with pandas, draw charts of it with seaborn, write a report.

    python3 analyse.py FILE.csv --out DIR [--delimiter D] [--title NAME] [--note TEXT]

Writes DIR/report.md, DIR/figures.tsv and the charts DIR/*.png, and prints one line a chart. The
rules of what counts as what, the figures and the report are those of analyse.awk; read them there.
Exit codes: 0 done, 4 no header, 6 another delimiter fits better.
"""

import argparse
import csv
import datetime
import os
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns

NA = {"NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "<NA>"}
WEEK = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
BLANKS = " \t\r\n"
BLUE, RED, GREY = "#4878a8", "#c0504d", "#666666"


# ---- reading ------------------------------------------------------------------------------------


def pick_delimiter(line):
    outside = re.sub(r'"[^"]*"', "", line)
    best, count = ",", 0
    for d in [",", ";", "\t", "|"]:
        if outside.count(d) > count:
            best, count = d, outside.count(d)
    return best, count


def shown(d):
    return "TAB" if d == "\t" else d


def read(path, delimiter):
    """Header, rows, delimiter, blank lines, whether the last quote is open."""
    with open(path, "rb") as f:
        raw = f.read()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    first, _, rest = text.partition("\n")
    mark = re.fullmatch(r"sep=(.)\r?", first)
    if mark:
        text, delimiter = rest, mark.group(1)
        first = text.partition("\n")[0]
    found, count = pick_delimiter(first)
    if delimiter in ("TAB", "\\t"):
        delimiter = "\t"
    if not delimiter:
        delimiter = found
    elif found != delimiter and count and delimiter not in first:
        quoted = [shown(d) if d == "\t" else f"'{d}'" for d in (delimiter, found)]
        print(
            f"only one column with the delimiter {quoted[0]}; the header has {count} times "
            f"{quoted[1]}: run again with -v D='{shown(found)}'"
        )
        sys.exit(6)
    csv.field_size_limit(2**31 - 1)
    records, blank = [], 0
    # Ends of lines inside quotes are content; csv keeps them when it gets the lines uncut.
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    reader = csv.reader((line + "\n" for line in lines), delimiter=delimiter)
    for record in reader:
        if record:
            records.append(record)
        else:
            blank += 1
    quotes = text.count('"')
    unclosed = bool(quotes % 2) and bool(records) and records[-1][-1].endswith("\n")
    if unclosed:
        records[-1][-1] = re.sub(r"\r?\n$", "", records[-1][-1])
    if not records:
        print("the file has no header: it is empty or blank")
        sys.exit(4)
    names, seen = [], {}
    for i, name in enumerate(records[0], 1):
        name = re.sub(r"[ \t\r\n]+", " ", name).strip(" ") or f"column {i}"
        if name in seen:
            seen[name] += 1
            name = f"{name} ({seen[name]})"
        else:
            seen[name] = 1
        names.append(name)
    return names, records[1:], delimiter, blank, unclosed


# ---- cells --------------------------------------------------------------------------------------


def iso(y, m, d):
    try:
        return datetime.date(int(y), int(m), int(d))
    except ValueError:
        return None


def month(name):
    names = "JanFebMarAprMayJunJulAugSepOctNovDec"
    i = names.find(name[:3])
    return i // 3 + 1 if i >= 0 and i % 3 == 0 else 0


TIME = r"( \d\d?:[0-9:]*)?"
DATES = [
    (r"(\d{4})[-/](\d\d?)[-/](\d\d?)([T ]\d\d?:[0-9:.,+Z -]*)?", lambda a, b, c: (iso(a, b, c),) * 2),
    (r"(\d\d?)\.(\d\d?)\.(\d{4})" + TIME, lambda a, b, c: (iso(c, b, a),) * 2),
    (r"(\d\d?)[-/](\d\d?)[-/](\d{4})( \d\d?:[0-9:]*( ?[AaPp][Mm])?)?", lambda a, b, c: (iso(c, a, b), iso(c, b, a))),
    (r"([A-Z][a-z]{2}[a-z]*) (\d\d?),? (\d{4})", lambda a, b, c: (iso(c, month(a), b),) * 2),
    (r"(\d\d?)[- ]([A-Z][a-z]{2}[a-z]*)[- ](\d{4})", lambda a, b, c: (iso(c, month(b), a),) * 2),
]
DATES = [(re.compile(pattern, re.ASCII), build) for pattern, build in DATES]


def dates_of(value):
    """The date as month/day/year and as day/month/year."""
    for pattern, build in DATES:
        m = pattern.fullmatch(value)
        if m:
            return build(*m.groups()[:3])
    return None, None


class Column:
    def __init__(self, j, name, cells, comma):
        self.j, self.name = j, name
        self.cells = cells
        self.present = cells.dropna()
        self.filled = len(self.present)
        self.missing = len(cells) - self.filled
        self.role, self.other, self.read_as = "", 0, ""
        self.numbers = self.dates = self.hosts = self.endings = None
        counts = self.present.value_counts()
        self.different = len(counts)
        self.top = ranked(counts)
        self.classify(comma)

    def classify(self, comma):
        n, cells = self.filled, self.present
        self.type = "text"
        if not n:
            self.type = "empty"
            return
        decimal = "[.,]" if comma else "[.]"
        number = rf"[-+]?(?:[0-9]+{decimal}?[0-9]*|{decimal}[0-9]+)(?:[eE][-+]?[0-9][0-9]?)?"
        like = cells.str.fullmatch(number)
        zeros = like & cells.str.match(r"[-+]?0[0-9]")
        whole = cells.str.fullmatch(r"[-+]?[0-9]+")
        ok = like & ~zeros & ((whole & (cells.str.len() < 16)) | (~whole & (cells.str.len() < 40)))
        if not zeros.any() and ok.sum() >= 0.95 * n:
            good = cells[ok]
            self.numbers = (good.str.replace(",", ".", regex=False) if comma else good).astype(float)
            self.other = n - len(good)
            self.type = "integer" if not good.str.contains("[.,eE]").any() else "number"
            lo, hi = self.numbers.min(), self.numbers.max()
            if self.type == "integer":
                if n > 2 and not self.other and hi - lo == n - 1 and self.different == n:
                    self.role = "running number"
                elif re.search(
                    r"(^|[^a-z])(id|zip|phone|tel|fax|postcode|plz)([^a-z]|$)|postal|telephone", self.name.lower()
                ):
                    self.role = "code"
            return
        both = cells.map(dates_of)
        us, eu = both.map(lambda d: d[0]).dropna(), both.map(lambda d: d[1]).dropna()
        if max(len(us), len(eu)) >= 0.95 * n:
            self.type = "date"
            self.dates = pd.to_datetime(us if len(us) >= len(eu) else eu)
            self.other = n - len(self.dates)
            if len(us) != len(eu):
                self.read_as = "month/day/year" if len(us) > len(eu) else "day/month/year"
            return
        mail = cells.str.fullmatch(r"[^@ ]+@[^@ ]+\.[^@ .]+")
        web = ~cells.str.contains("@", regex=False) & cells.str.match(r"[hH][tT][tT][pP][sS]?://[^/ ]+")
        if mail.sum() >= 0.9 * n:
            self.role = "e-mail"
            self.hosts = cells[mail].str.split("@").str[1].str.lower()
        elif web.sum() >= 0.9 * n:
            self.role = "web address"
            hosts = cells[web].str.split("//", n=1).str[1].str.lower()
            for pattern in (r"[/?#].*$", r":[0-9]+$", r"^www\."):
                hosts = hosts.str.replace(pattern, "", regex=True)
            self.hosts = hosts
        elif self.different < n and (self.different <= 20 or self.different <= n / 2):
            self.type = "category"
        if self.hosts is not None:
            named = self.hosts[self.hosts.str.contains(r"\.[^.]*[a-z][^.]*$")]
            self.endings = "." + named.str.split(".").str[-1]

    def stats(self):
        x = self.numbers
        q = x.quantile([0.25, 0.5, 0.75])
        sd = x.std() if len(x) > 1 else None
        return [
            ("count", len(x)), ("mean", x.mean()), ("sd", sd), ("min", x.min()), ("q1", q[0.25]),
            ("median", q[0.5]), ("q3", q[0.75]), ("max", x.max()), ("sum", x.sum()),
        ]  # fmt: skip

    def months(self):
        counts = self.dates.dt.to_period("M").value_counts()
        every = pd.period_range(counts.index.min(), counts.index.max(), freq="M")
        return [(f"{p.year:04d}-{p.month:02d}", int(counts.get(p, 0))) for p in every]

    def years(self):
        counts = self.dates.dt.year.value_counts()
        return [(f"{y:04d}", int(counts.get(y, 0))) for y in range(counts.index.min(), counts.index.max() + 1)]

    def weekdays(self):
        counts = self.dates.dt.weekday.value_counts()
        return [(day, int(counts.get(i, 0))) for i, day in enumerate(WEEK)]

    def span(self):
        return f"{self.dates.min():%Y-%m-%d}", f"{self.dates.max():%Y-%m-%d}"


def ranked(counts):
    """The 15 commonest: by count, then by the value's bytes."""
    pairs = sorted(counts.items(), key=lambda p: (-p[1], str(p[0]).encode()))
    return [(str(v), int(c)) for v, c in pairs[:15]]


# ---- text ---------------------------------------------------------------------------------------


def cut(s, n):
    s = re.sub(r"[\x00-\x1f\x7f]+", " ", str(s))
    return s if len(s) <= n else s[: n - 1] + "…"


def md(s, n=60):
    s = cut(s, n)
    for a, b in [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("|", "&#124;"), ("`", "&#96;"),
                 ("*", "&#42;"), ("_", "&#95;"), ("[", "&#91;"), ("!", "&#33;")]:  # fmt: skip
        s = s.replace(a, b)
    return s


def tsv(s):
    return s.replace("\\", "\\\\").replace("\t", "\\t").replace("\r", "\\r").replace("\n", "\\n")


def number(x):
    if x is None:
        return "–"
    if x == int(x) and abs(x) < 1e15:
        return f"{x:.0f}"
    a = abs(x)
    if a >= 1e15 or a < 1e-4:
        return f"{x:.8g}"
    s = f"{x:.2f}" if a >= 1000 else f"{x:.4f}" if a >= 1 else f"{x:.8f}"
    return s.rstrip("0").rstrip(".")


def grouped(x):
    s = number(x)
    if "e" in s:
        return s
    head, dot, tail = s.partition(".")
    return f"{int(head):,}".replace("-0", "0") + dot + tail if not head.startswith("-0") else s


def percent(a, b):
    return f"{100 * a / b:.1f}%" if b else "–"


def times(n, what):
    return f"{n} {what}" + ("" if n == 1 else "s")


# ---- charts -------------------------------------------------------------------------------------


class Charts:
    def __init__(self, out):
        self.out, self.done = out, []

    def begin(self, height, title, sub, xlabel, ylabel):
        sns.set_theme(style="whitegrid")
        fig, ax = plt.subplots(figsize=(8.6, height))
        fig.suptitle(cut(title, 80), x=0.02, y=0.985, ha="left", fontsize=14, fontweight="bold")
        fig.text(0.02, 1 - 0.55 / height, cut(sub, 120), fontsize=9.5, color=GREY)
        self.labels = cut(xlabel, 80), cut(ylabel, 50)
        return fig, ax

    def end(self, fig, ax, name, title, height):
        ax.set_xlabel(self.labels[0])
        ax.set_ylabel(self.labels[1])
        fig.tight_layout(rect=(0, 0, 1, 1 - 0.6 / height))
        path = f"{self.out}/{name}.png"
        fig.savefig(path, dpi=110, metadata={"Software": None})
        plt.close(fig)
        self.done.append((f"{name}.png", cut(title, 90)))
        print(f"chart\t{path}\t{cut(title, 90)}")

    def bars(self, name, pairs, title, sub, xlabel, ylabel, of=0):
        height = 1.6 + 0.27 * max(len(pairs), 1)
        fig, ax = self.begin(height, title, sub, xlabel, ylabel)
        labels, values = [cut(v, 30).replace("$", r"\$") for v, _ in pairs], [c for _, c in pairs]
        places = list(range(len(pairs)))
        ax.barh(places, values, color=BLUE, height=0.7)
        ax.set_yticks(places)
        ax.set_yticklabels(labels)
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
        ax.set_xlim(0, max(values + [1]) * 1.16)
        for place, value in zip(places, values):
            ax.annotate(
                f"{value:,}" + (f" ({percent(value, of)})" if of else ""), (value, place), xytext=(4, 0),
                textcoords="offset points", va="center", fontsize=8.5, color=GREY,
            )  # fmt: skip
        self.end(fig, ax, name, title, height)

    def columns(self, name, pairs, title, sub, xlabel, ylabel):
        fig, ax = self.begin(4.6, title, sub, xlabel, ylabel)
        sns.barplot(x=[p[0] for p in pairs], y=[p[1] for p in pairs], color=BLUE, ax=ax)
        for i, (_, value) in enumerate(pairs):
            ax.annotate(f"{value:,}", (i, value), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=8.5, color=GREY)
        self.end(fig, ax, name, title, 4.6)

    def histogram(self, name, values, title, sub, xlabel, whole, mark=None):
        fig, ax = self.begin(4.6, title, sub, xlabel, "rows")
        few = whole and values.max() - values.min() < 40
        sns.histplot(x=values, discrete=few, color=BLUE, alpha=1, ax=ax, **({} if few else {"bins": min(30, 4 + 2 * len(values).bit_length())}))
        if mark is not None:
            ax.axvline(mark, color=RED, linestyle="--", linewidth=1.3)
            ax.annotate(f"median {grouped(mark)}", (mark, 1), xycoords=("data", "axes fraction"), xytext=(4, 3), textcoords="offset points", fontsize=8.5, color=RED)
        self.end(fig, ax, name, title, 4.6)

    def line(self, name, pairs, title, sub, xlabel, ylabel, whole, every, first=0):
        fig, ax = self.begin(4.6, title, sub, xlabel, ylabel)
        places, values = list(range(len(pairs))), [p[1] for p in pairs]
        sns.lineplot(x=places, y=values, color=BLUE, marker="o" if len(pairs) <= 60 else None, ax=ax)
        if whole:
            ax.fill_between(places, values, color=BLUE, alpha=0.15)
            ax.set_ylim(bottom=0)
        ticks = places[first::every]
        ax.set_xticks(ticks)
        labels = [pairs[i][0] for i in ticks]
        # Side by side, more than this runs into one another.
        slanted = {"rotation": 40, "ha": "right"} if sum(map(len, labels)) > 60 else {}
        ax.set_xticklabels(labels, **slanted)
        self.end(fig, ax, name, title, 4.6)

    def scatter(self, name, x, y, a, b, r):
        step = max(1, len(x) // 2000)
        title = f"{b.name} against {a.name}"
        fig, ax = self.begin(5.0, title, f"{times(len(x), 'row')}; correlation {r:.2f}", a.name, b.name)
        sns.scatterplot(x=x[::step], y=y[::step], color=BLUE, alpha=0.45, edgecolor="none", s=22, ax=ax)
        self.end(fig, ax, name, title, 5.0)


def draw(charts, columns, rows):
    """The columns that say most, each drawn as its type asks; then what is always possible, up to four."""
    chosen = {"nums": [], "date": None, "rating": None, "correlation": None}
    cats = []
    for c in columns:
        if c.type == "date" and not chosen["date"]:
            chosen["date"] = c
        if c.numbers is not None and not c.role and c.numbers.max() > c.numbers.min():
            if c.type == "integer" and c.different <= 12 and c.different < len(c.numbers) / 2:
                chosen["rating"] = chosen["rating"] or c
            else:
                chosen["nums"].append(c)
        if c.type == "category":
            cats.append(c)
    weight = lambda c: c.top[0][1] / c.filled - (1 if c.different < 3 else 0)
    cat = max(cats, key=weight, default=None)
    chosen["cat"] = cat
    second = max((c for c in cats if c is not cat), key=weight, default=None)
    if not rows:
        return chosen

    def bars_of(c, name):
        charts.bars(name, c.top, f"Most common values of {c.name}", f"{len(c.top)} of {times(c.different, 'value')}, {times(c.filled, 'row')}", "rows", c.name, c.filled)

    if cat:
        bars_of(cat, "top-values")
    date = chosen["date"]
    if date:
        first, last = date.span()
        sub = f"{first} to {last}, {times(len(date.dates), 'row')}"
        months = date.months()
        if len(months) > 120:
            years = date.years()
            charts.line("by-year", years, f"Rows by year of {date.name}", sub, "year", "rows", True, (len(years) + 11) // 12)
        elif len(months) > 2:
            every = 1 if len(months) <= 13 else 3 if len(months) <= 36 else 6 if len(months) <= 72 else 12
            start = 0
            while every > 1 and (int(months[start][0][5:]) - 1) % every:
                start += 1
            charts.line("by-month", months, f"Rows by month of {date.name}", sub, "month", "rows", True, every, start)
        else:
            counts = date.dates.dt.normalize().value_counts()
            days = [(f"{d:%m-%d}", int(counts.get(d, 0))) for d in pd.date_range(first, last)]
            charts.line("by-day", days, f"Rows by day of {date.name}", sub, "day", "rows", True, (len(days) + 8) // 9)
    for i, c in enumerate(chosen["nums"][:3], 1):
        s = dict(c.stats())
        charts.histogram(f"histogram-{i}", c.numbers, f"Distribution of {c.name}", f"{times(s['count'], 'value')}, mean {grouped(s['mean'])}, standard deviation {grouped(s['sd'])}", c.name, c.type == "integer", s["median"])
    if len(chosen["nums"]) > 1:
        a, b = chosen["nums"][:2]
        pair = pd.concat([a.numbers, b.numbers], axis=1, join="inner")
        x, y = pair.iloc[:, 0], pair.iloc[:, 1]
        r = x.corr(y) if len(pair) > 1 else 0.0
        chosen["correlation"] = (0.0 if pd.isna(r) else r, len(pair))
        charts.scatter("scatter", x, y, a, b, chosen["correlation"][0])
    if date:
        charts.columns("by-weekday", date.weekdays(), f"Rows by weekday of {date.name}", sub, "weekday", "rows")
    if chosen["rating"]:
        bars_of(chosen["rating"], "values")
    mail = next((c for c in columns if c.role == "e-mail"), None)
    web = next((c for c in columns if c.role == "web address"), None)
    if mail:
        top = ranked(mail.hosts.value_counts())
        charts.bars("email-domains", top, f"Most common domains of {mail.name}", f"{len(top)} of {times(mail.hosts.nunique(), 'domain')}", "rows", "domain", len(mail.hosts))
        top = ranked(mail.endings.value_counts())
        charts.bars("email-endings", top, f"Most common endings of {mail.name}", f"{len(top)} of {times(mail.endings.nunique(), 'top-level domain')}", "rows", "top-level domain", len(mail.endings))
    elif web:
        top = ranked(web.hosts.value_counts())
        charts.bars("web-hosts", top, f"Most common hosts of {web.name}", f"{len(top)} of {times(web.hosts.nunique(), 'host')}", "rows", "host", len(web.hosts))
    if second:
        bars_of(second, "top-values-2")
    gaps = sum(c.missing for c in columns)
    if gaps or len(charts.done) < 4:
        pairs = ranked({c.name: c.missing for c in columns if c.missing or not gaps})
        more = f"; the {len(pairs)} columns with most" if len(pairs) < len(columns) else ""
        charts.bars("missing", pairs, "Missing cells by column", f"{times(gaps, 'missing cell')} of {rows * len(columns)}{more}", "rows with a missing cell", "column", rows)
    if len(charts.done) < 4:
        pairs = ranked({c.name: c.different for c in columns})
        more = f"; the {len(pairs)} columns with most" if len(pairs) < len(columns) else ""
        charts.bars("different", pairs, "Different values by column", f"{times(rows, 'row')}{more}", "different values", "column")
    if len(charts.done) < 4 and chosen["nums"]:
        c = chosen["nums"][0]
        block = (rows + 59) // 60
        series = c.numbers.groupby(c.numbers.index // block).mean()
        pairs = [(str(i * block + 1), v) for i, v in series.items()]
        charts.line("in-order", pairs, f"{c.name} in the order of the rows", f"mean of {block} rows each" if block > 1 else times(len(pairs), "row"), "row", c.name, False, (len(pairs) + 8) // 9)
    for c in columns:
        if len(charts.done) < 4 and c.type in ("text", "category"):
            charts.histogram(f"length-{c.j}", c.present.str.len(), f"Length of {c.name}", times(c.filled, "value"), "characters", True)
            if len(charts.done) < 4:
                charts.bars(f"initials-{c.j}", ranked(c.present.str[0].str.upper().value_counts()), f"First characters of {c.name}", times(c.filled, "value"), "rows", "first character", c.filled)
    return chosen


# ---- the run ------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--out", default=".")
    parser.add_argument("--delimiter", default="")
    parser.add_argument("--title", default="")
    parser.add_argument("--note", default="")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    names, records, delimiter, blank, unclosed = read(args.file, args.delimiter)
    width = len(names)
    short = sum(len(r) < width for r in records)
    long = sum(len(r) > width for r in records)
    duplicates = len(records) - len({tuple(r) for r in records})
    padded = words = 0
    table = []
    for record in records:
        cells = []
        for cell in (record + [""] * width)[:width]:
            trimmed = cell.strip(BLANKS)
            padded += trimmed != cell and trimmed != ""
            words += trimmed in NA
            cells.append(None if trimmed == "" or trimmed in NA else trimmed)
        table.append(cells)
    frame = pd.DataFrame(table, columns=range(width), dtype=object)
    columns = [Column(j + 1, names[j], frame[j], delimiter == ";") for j in range(width)]
    rows = len(records)

    charts = Charts(args.out)
    chosen = draw(charts, columns, rows)

    with open(f"{args.out}/figures.tsv", "w", encoding="utf-8", newline="") as f:
        say = lambda key, j, value: f.write(f"{key}\t{j}\t{value}\n")
        for key, value in [("rows", rows), ("columns", width), ("delimiter", shown(delimiter)), ("duplicates", duplicates), ("short", short), ("long", long), ("blank", blank), ("padded", padded), ("na_words", words)]:
            say(key, "", value)
        for c in columns:
            for key, value in [("name", tsv(c.name)), ("type", c.type), ("role", c.role), ("missing", c.missing), ("different", c.different), ("other", c.other)]:
                say(key, c.j, value)
            if c.numbers is not None:
                for key, value in c.stats():
                    say(key, c.j, "" if value is None else value if key == "count" else f"{value:.12g}")
            if c.dates is not None:
                say("first", c.j, c.span()[0])
                say("last", c.j, c.span()[1])
                for day, n in c.weekdays():
                    say("weekday", c.j, f"{day} {n}")
                for name, n in c.months():
                    if n:
                        say("month", c.j, f"{name} {n}")
            for value, n in c.top:
                say("top", c.j, f"{n} {tsv(value)}")
            if c.hosts is not None and c is next(x for x in columns if x.role == c.role):
                say("hosts", c.j, c.hosts.nunique())
                for value, n in ranked(c.hosts.value_counts()):
                    say("host", c.j, f"{n} {tsv(value)}")
                say("endings", c.j, c.endings.nunique())
                for value, n in ranked(c.endings.value_counts()):
                    say("ending", c.j, f"{n} {tsv(value)}")

    with open(f"{args.out}/report.md", "w", encoding="utf-8", newline="") as f:
        report(lambda s: f.write(s + "\n"), args, columns, rows, delimiter, duplicates, short, long, blank, padded, words, unclosed, chosen, charts)
    print(f"{rows} rows, {width} columns, {duplicates} duplicate rows, {len(charts.done)} charts, report: {args.out}/report.md")


def report(say, args, columns, rows, delimiter, duplicates, short, long, blank, padded, words, unclosed, chosen, charts):
    width, gaps, holed = len(columns), sum(c.missing for c in columns), sum(1 for c in columns if c.missing)
    separated = {"\t": "TAB", ",": "commas", ";": "semicolons"}.get(delimiter, f"`{delimiter}`")
    say(f"# Analysis of {md(args.title or args.file)}\n\n## Summary\n")
    say(f"- {times(rows, 'row')} and {times(width, 'column')}, separated by {separated}.")
    if not rows:
        say("- There is only a header: nothing to count and nothing to draw.")
    else:
        missing = f"{percent(gaps, rows * width)} of the cells are missing ({gaps} in {times(holed, 'column')})" if gaps else "No cell is missing"
        twice = "no row is a duplicate." if not duplicates else times(duplicates, "row") + (" is a duplicate." if duplicates == 1 else " are duplicates.")
        say(f"- {missing}; {twice}")
    date, cat, nums = chosen["date"], chosen["cat"], chosen["nums"]
    if date:
        say(f"- {md(date.name)} runs from {date.span()[0]} to {date.span()[1]}.")
    if cat:
        value, n = cat.top[0]
        say(f"- The most common value of {md(cat.name)} is {md(value)} ({times(n, 'row')}, {percent(n, cat.filled)}).")
    for c in nums[:5]:
        s = dict(c.stats())
        say(f"- {md(c.name)}: mean {number(s['mean'])}, median {number(s['median'])}, from {number(s['min'])} to {number(s['max'])}, total {number(s['sum'])}.")
    if chosen["correlation"]:
        r, n = chosen["correlation"]
        say(f"- {md(nums[0].name)} and {md(nums[1].name)} correlate with {r:.3f} ({times(n, 'row')}).")
    if args.note:
        say(f"- {args.note}")

    say("\n## Structure\n\n| # | column | type | filled | missing | missing % | different | most common |\n|--:|:--|:--|--:|--:|--:|--:|:--|")
    for c in columns:
        kind = c.type + (f" ({c.role})" if c.role else "")
        common = md(c.top[0][0], 40) if c.top and c.top[0][1] > 1 else "each once" if c.filled else "–"
        say(f"| {c.j} | {md(c.name)} | {kind} | {c.filled} | {c.missing} | {percent(c.missing, rows)} | {c.different} | {common} |")

    say("\n## Data quality\n\n| check | result |\n|:--|--:|")
    for check, value in [("rows", rows), ("columns", width), ("missing cells", gaps), ("duplicate rows", duplicates), ("rows with too few cells", short), ("rows with too many cells", long), ("blank lines", blank), ("cells with blanks around", padded), ("words such as NA counted as missing", words)]:
        say(f"| {check} | {value} |")
    notes = []
    for c in columns:
        if c.type == "empty" and rows:
            notes.append(f"- {md(c.name)} is empty.")
        elif c.different == 1 and c.filled > 1:
            notes.append(f"- {md(c.name)} has the same value everywhere: {md(c.top[0][0])}.")
        if c.other:
            notes.append(f"- {md(c.name)}: {times(c.other, 'cell')} that {'is' if c.other == 1 else 'are'} no {'date' if c.type == 'date' else 'number'}, left out of its figures.")
        if c.read_as:
            notes.append(f"- {md(c.name)} is read as {c.read_as}.")
        elif c.type == "date" and re.match(r"\d\d?[-/]", c.top[0][0]):
            notes.append(f"- {md(c.name)} fits month/day/year and day/month/year alike; it is read as the first.")
    if unclosed:
        notes.append("- The last quoted cell is not closed: the file may be cut.")
    if notes:
        say("\n" + "\n".join(notes))

    if any(c.numbers is not None for c in columns):
        say("\n## Numbers\n\n| column | count | mean | sd | min | q1 | median | q3 | max | sum |\n|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
        for c in columns:
            if c.numbers is not None:
                say(f"| {md(c.name)} | " + " | ".join(number(v) for _, v in c.stats()) + " |")

    for c in columns:
        if c.dates is None:
            continue
        first, last = c.span()
        days = (c.dates.max().normalize() - c.dates.min().normalize()).days + 1
        say(f"\n## Dates: {md(c.name)}\n\nFrom {first} to {last} ({times(days, 'day')}).\n\n| weekday | rows | share |\n|:--|--:|--:|")
        for day, n in c.weekdays():
            say(f"| {day} | {n} | {percent(n, len(c.dates))} |")
        months = c.months()
        unit, pairs = ("month", months) if len(months) <= 120 else ("year", c.years())
        say(f"\n| {unit} | rows |\n|:--|--:|")
        for name, n in pairs:
            say(f"| {name} | {n} |")

    def share_table(pairs, head, of):
        say(f"\n| {head} | rows | share |\n|:--|--:|--:|")
        for value, n in pairs:
            say(f"| {md(value)} | {n} | {percent(n, of)} |")

    for role, heading, what in [("e-mail", "E-mail domains", "domain"), ("web address", "Web hosts", "host")]:
        c = next((c for c in columns if c.role == role), None)
        if c:
            say(f"\n## {heading}: {md(c.name)}\n\n{times(c.hosts.nunique(), 'different ' + what)}, {times(c.endings.nunique(), 'top-level domain')}.")
            share_table(ranked(c.hosts.value_counts()), what, len(c.hosts))
            share_table(ranked(c.endings.value_counts()), "top-level domain", len(c.endings))

    say("\n## Most common values")
    for c in columns:
        if not c.filled:
            continue
        if c.top[0][1] < 2:
            say(f"\n**{md(c.name)}**: every value is there once.")
            continue
        which = f"the {len(c.top)} most common of {c.different}" if len(c.top) < c.different else f"all {len(c.top)}"
        say(f"\n**{md(c.name)}**, {which} values:")
        share_table(c.top, "value", c.filled)

    if charts.done:
        say("\n## Charts")
    for name, title in charts.done:
        say(f"\n### {md(title, 90)}\n\n![{md(title, 90)}]({args.out}/{name})")


main()

# analyse.awk: profile a CSV file, draw charts of it, write a report. POSIX awk, nothing else.
#
#   awk -f analyse.awk -v OUT=DIR [-v D=,|;|TAB|'|'] [-v TITLE=NAME] [-v NOTE=TEXT] [-v MAXD=N] FILE.csv
#
# Writes DIR/report.md, DIR/figures.tsv and the charts DIR/*.svg, and prints one line a chart.
# Without D it finds the delimiter. Exit codes: 0 done, 4 no header, 6 another delimiter fits better.
#
# What counts as what (analyse.py says the same):
# - Cells are trimmed. Missing: empty, or one of NA N/A n/a #N/A NaN nan NULL null None <NA>.
# - Numbers: 1, -1.5, 2e3, with `;` as delimiter also 1,5. No leading zeros: 007 is a name.
# - A column is of a type when at least 95 in 100 of its cells are; the others are counted and left out.
# - Dates: 2024-01-31 or 2024/01/31 (a time may follow), 31.01.2024, 1/31/2024 or 31/1/2024 (whichever
#   fits more cells of the column), Jan 31, 2024 and 31 Jan 2024.
# - Of a column with more than MAXD different values, values first seen later are not counted.

# ---- reading: one physical line at a time, state kept across lines ------------------------------

function pick_delimiter(s,   i, c, q, best, a, d) {       # the commonest candidate outside quotes
    gsub(/"[^"]*"/, "", s)
    split(", ; \t |", a, " "); a[3] = "\t"; a[4] = "|"
    d = ","; best = 0
    for (i = 1; i <= 4; i++) {
        c = s
        q = gsub(a[i] == "|" ? "[|]" : a[i], "", c)
        if (q > best) { best = q; d = a[i] }
    }
    BEST = best
    return d
}

# Adds a line that holds quotes, or continues a record, to the record under way. 1 when the record is
# complete: F[1..NF_], and KEY, which is the same for a quoted and an unquoted spelling of a row.
# A split at the quotes makes every second piece the inside of a cell.
function feed(s, cr,   n, i, m, k, q, p, v, closed) {
    if (!INQ) { NF_ = 0; CUR = KEY = ""; OPEN = 0 }
    n = split(s, q, "\""); closed = 0
    for (i = 1; i <= n; i++) {
        v = q[i]
        if (INQ) {
            CUR = CUR v
            if (index(v, D)) gsub(SEP, "\034", v)
            KEY = KEY v
            if (i < n) { INQ = 0; closed = 1 }
            continue
        }
        if (closed && v == "" && i < n) {                  # "" inside a cell
            CUR = CUR "\""; KEY = KEY "\""; INQ = 1; closed = 0
            continue
        }
        closed = 0; KEY = KEY v
        if (m = split(v, p, SEP)) {
            CUR = CUR p[1]
            if (m > 1) {
                F[++NF_] = CUR
                for (k = 2; k < m; k++) F[++NF_] = p[k]
                CUR = p[m]; OPEN = 0
            }
        }
        if (i == n) break
        if (CUR == "" && !OPEN) { INQ = OPEN = 1 }
        else { CUR = CUR "\""; KEY = KEY "\"" }            # a quote within an unquoted cell is text
    }
    if (INQ) { v = cr ? "\r\n" : "\n"; CUR = CUR v; KEY = KEY v; return 0 }
    F[++NF_] = CUR
    return 1
}

function header(   i, h) {
    NC = NF_; HAVE = 1
    for (i = 1; i <= NC; i++) {
        h = F[i]; gsub(/[ \t\r\n]+/, " ", h); sub(/^ /, "", h); sub(/ $/, "", h)
        if (h == "") h = "column " i
        if (h in HSEEN) { HSEEN[h]++; h = h " (" HSEEN[h] ")" } else HSEEN[h] = 1
        NAME[i] = h
        kind[i] = filled[i] = missing[i] = nint[i] = nnum[i] = ndate[i] = nmail[i] = nurl[i] = 0
        nzero[i] = different[i] = late[i] = 0; part[i] = ""
    }
}

# kind[j]: 0 not known yet, 1 numbers, 2 dates, 3 text, 4 e-mail or web addresses.
function row(blanks,   j, v, k, c) {
    ROWS++
    if (NF_ != NC) { if (NF_ > NC) LONG++; else SHORT++ }
    if (KEY in SEEN) DUPLICATES++; else SEEN[KEY]
    for (j = 1; j <= NC; j++) {
        v = j <= NF_ ? F[j] : ""
        if (blanks) { if (v ~ /^[ \t\r\n]|[ \t\r\n]$/) { sub(/^[ \t\r\n]+/, "", v); sub(/[ \t\r\n]+$/, "", v); if (v != "") PADDED++ } }
        if (v == "" || v in NA) {
            missing[j]++; if (v != "") NAWORDS++
            if (kind[j] < 2) part[j] = part[j] " x"
            continue
        }
        c = ++filled[j]
        if (!(j in UNIQUE)) {
            k = j SUBSEP v
            if (k in count) count[k]++
            else if (different[j] < MAXD) { count[k] = 1; different[j]++ }
            else if (!late[j]++) { if (different[j] >= .9 * c) UNIQUE[j] }   # nearly all differ: stop counting
        } else late[j]++
        if (kind[j] == 3) continue
        if (kind[j] == 1) {
            if (is_number(v)) { nnum[j]++; part[j] = part[j] " " v } else { part[j] = part[j] " x"; if (ZERO) nzero[j]++ }
            continue
        }
        if (kind[j] == 2) { if (is_date(v, j)) ndate[j]++; continue }
        if (kind[j] == 4) { address(v, j); continue }
        if (is_number(v)) { nnum[j]++; part[j] = part[j] " " v }
        else {
            part[j] = part[j] " x"
            if (ZERO) nzero[j]++
            else if (is_date(v, j)) ndate[j]++
            else address(v, j)
        }
        if (c == 200) kind[j] = nnum[j] >= 100 ? 1 : ndate[j] >= 100 ? 2 : nmail[j] + nurl[j] >= 100 ? 4 : 3
    }
    if (ROWS % 250 == 0) keep()
}

# Numbers are kept as text, 250 rows a piece: an awk's array entry costs ten times as much.
function keep(   j) {
    for (j = 1; j <= NC; j++) if (kind[j] < 2) { PIECE[j, PIECES + 1] = part[j]; part[j] = "" }
    PIECES++
}

# ---- cells --------------------------------------------------------------------------------------

function is_number(v) {
    ZERO = 0
    if (v !~ NUMBER) return 0
    if (v ~ /^[-+]?0[0-9]/) { ZERO = 1; return 0 }
    if (v !~ /^[-+]?[0-9]+$/) { FRACTION[COMMA, v ~ /./]; return length(v) < 40 ? 2 : 0 }
    return length(v) < 16
}
function value(v) { if (COMMA) sub(/,/, ".", v); return v + 0 }
function days_in(y, m) {
    if (m == 2) return 28 + ((y % 4 == 0 && y % 100 != 0) || y % 400 == 0)
    return 30 + !(m == 4 || m == 6 || m == 9 || m == 11)
}
function iso(y, m, d) {
    y += 0; m += 0; d += 0
    if (y < 1 || m < 1 || m > 12 || d < 1 || d > days_in(y, m)) return ""
    return sprintf("%04d-%02d-%02d", y, m, d)
}
function is_date(v, j,   a, b, d, n, m, k) {
    if (v in DAY) { d = DAY[v]; b = DAY2[v] }
    else {
        d = b = ""
        if (v ~ /^[0-9][0-9][0-9][0-9][-\/][0-9][0-9]?[-\/][0-9][0-9]?([T ][0-9][0-9]?:[0-9:.,+Z -]*)?$/) { split(v, a, /[-\/T ]/); d = b = iso(a[1], a[2], a[3]) }
        else if (v ~ /^[0-9][0-9]?[.][0-9][0-9]?[.][0-9][0-9][0-9][0-9]( [0-9][0-9]?:[0-9:]*)?$/) { split(v, a, /[. ]/); d = b = iso(a[3], a[2], a[1]) }
        else if (v ~ /^[0-9][0-9]?[-\/][0-9][0-9]?[-\/][0-9][0-9][0-9][0-9]( [0-9][0-9]?:[0-9:]*( ?[AaPp][Mm])?)?$/) { split(v, a, /[-\/ ]/); d = iso(a[3], a[1], a[2]); b = iso(a[3], a[2], a[1]) }
        else if (v ~ /^[A-Z][a-z][a-z][a-z]* [0-9][0-9]?,? [0-9][0-9][0-9][0-9]$/) { split(v, a, /[ ,]+/); d = b = iso(a[3], month(a[1]), a[2]) }
        else if (v ~ /^[0-9][0-9]?[- ][A-Z][a-z][a-z][a-z]*[- ][0-9][0-9][0-9][0-9]$/) { split(v, a, /[- ]/); d = b = iso(a[3], month(a[2]), a[1]) }
        if (d == "" && b == "") return 0
        if (NDAY < 20000) { DAY[v] = d; DAY2[v] = b; NDAY++ }
    }
    if (d != "") { ndm[j]++; day[j, 1, d]++ }
    if (b != "") { ndd[j]++; day[j, 2, b]++ }
    return 1
}
function month(s,   i) {
    i = index("JanFebMarAprMayJunJulAugSepOctNovDec", substr(s, 1, 3))
    return i % 3 == 1 ? (i + 2) / 3 : 0
}
function address(v, j,   h) {
    if (index(v, "@")) {
        if (v !~ /^[^@ ]+@[^@ ]+\.[^@ .]+$/) return
        nmail[j]++; h = tolower(substr(v, index(v, "@") + 1))
    } else {
        if (v !~ /^[hH][tT][tT][pP][sS]?:\/\/[^\/ ]+/) return
        nurl[j]++; h = tolower(substr(v, index(v, "//") + 2)); sub(/[\/?#].*$/, "", h); sub(/:[0-9]+$/, "", h); sub(/^www\./, "", h)
    }
    host[j SUBSEP h]++
}

# ---- statistics ---------------------------------------------------------------------------------

function kth(lo, hi, k,   i, j, p, t) {                    # k-th smallest of A[lo..hi], in place
    while (lo < hi) {
        p = A[int((lo + hi) / 2)]; i = lo; j = hi
        while (i <= j) {
            while (A[i] < p) i++
            while (A[j] > p) j--
            if (i <= j) { t = A[i]; A[i] = A[j]; A[j] = t; i++; j-- }
        }
        if (k <= j) hi = j; else if (k >= i) lo = i; else break
    }
    return A[k]
}
function quantile(n, p,   h, f, a, b, i) {                 # linear between neighbours, as numpy does
    h = (n - 1) * p + 1; f = int(h)
    a = kth(1, n, f)
    if (h == f) return a
    b = A[f + 1]; for (i = f + 2; i <= n; i++) if (A[i] < b) b = A[i]
    return a + (h - f) * (b - a)
}
function load(j,   c, i, n, m, a) {                        # the numbers of column j into A
    n = 0
    for (c = 1; c <= PIECES; c++) {
        m = split(PIECE[j, c], a, " ")
        for (i = 1; i <= m; i++) if (a[i] != "x") A[++n] = value(a[i])
    }
    return n
}
function statistics(j,   n, r, s, q, x, m) {
    n = load(j); s = 0
    LO[j] = HI[j] = A[1]
    for (r = 1; r <= n; r++) { x = A[r]; s += x; if (x < LO[j]) LO[j] = x; else if (x > HI[j]) HI[j] = x }
    m = s / n; q = s2_ = 0
    for (r = 1; r <= n; r++) { x = A[r] - m; s2_ += x; q += x * x }
    q -= s2_ * s2_ / n                                     # two passes and a correction
    N[j] = n; SUM[j] = s; MEAN[j] = m + s2_ / n; SD[j] = n > 1 ? root(q / (n - 1)) : ""
    Q1[j] = quantile(n, .25); Q2[j] = quantile(n, .5); Q3[j] = quantile(n, .75)
}
# Keeps the 15 commonest of list j: by count, then by the value's bytes.
function top(j, v, c,   i) {
    i = TN[j]
    if (i == 15) { if (c < TC[j, 15] || (c == TC[j, 15] && (v "") > (TV[j, 15] ""))) return }
    else TN[j] = ++i
    for (; i > 1 && (TC[j, i - 1] < c || (TC[j, i - 1] == c && (TV[j, i - 1] "") > (v ""))); i--) { TV[j, i] = TV[j, i - 1]; TC[j, i] = TC[j, i - 1] }
    TV[j, i] = v; TC[j, i] = c
}
function root(x,   y, z) { if (x <= 0) return 0; y = 1; while (y * y < x) y *= 2; while (y * y > 4 * x) y /= 2; do { z = y; y = (y + x / y) / 2 } while (z - y > z * 1e-15); return y }
function floor(x,   i) { i = int(x + 0); if (x < 0 && i != x) i--; return x - i > 0.999999 ? i + 1 : i }
function day_number(s,   y, m, d) {
    y = substr(s, 1, 4) + 0; m = substr(s, 6, 2) + 0; d = substr(s, 9, 2) + 0
    if (m <= 2) { y--; m += 12 }
    return 365 * y + int(y / 4) - int(y / 100) + int(y / 400) + int((153 * (m - 3) + 2) / 5) + d
}
function weekday(s) { return (day_number(s) + 1) % 7 + 1 }         # 1 is Monday

# ---- text ---------------------------------------------------------------------------------------

# Awks that count bytes: what is not UTF-8 is read as Latin-1.
function utf8(s,   i, c, o, n, r, k, ok, q) {
    if (!BYTES) return s
    r = ""; n = length(s)
    for (i = 1; i <= n; i++) {
        c = substr(s, i, 1); o = index(HIGH, c)
        if (!o) { r = r c; continue }
        o += 127
        k = o >= 240 ? 3 : o >= 224 ? 2 : o >= 194 ? 1 : 0
        ok = k > 0 && i + k <= n
        for (q = 1; q <= k && ok; q++) { c = index(HIGH, substr(s, i + q, 1)); if (c < 1 || c > 64) ok = 0 }
        if (ok) { r = r substr(s, i, k + 1); i += k }
        else r = r sprintf("%c%c", 192 + int(o / 64), 128 + o % 64)
    }
    return r
}
function chars(s,   i, n, c) {
    if (!BYTES) return length(s)
    n = 0; for (i = 1; i <= length(s); i++) { c = index(HIGH, substr(s, i, 1)); if (c < 1 || c > 64) n++ }
    return n
}
function cut(s, n,   i, m, c) {                            # at most n characters, on one line
    s = utf8(s); gsub(/[[:cntrl:]]+/, " ", s)
    if (chars(s) <= n) return s
    if (!BYTES) return substr(s, 1, n - 1) "…"
    m = 0; for (i = 1; i <= length(s); i++) { c = index(HIGH, substr(s, i, 1)); if (c < 1 || c > 64) { if (m == n - 1) break; m++ } }
    return substr(s, 1, i - 1) "…"
}
function xml(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); gsub(/"/, "\\&quot;", s); return s }
function md(s, n) { s = xml(cut(s, n ? n : 60)); gsub(/[|]/, "\\&#124;", s); gsub(/`/, "\\&#96;", s); gsub(/[*]/, "\\&#42;", s); gsub(/_/, "\\&#95;", s); gsub(/\[/, "\\&#91;", s); gsub(/!/, "\\&#33;", s); return s }
function tsv(s,   a, n, i) {                               # by split: "\\\\" in gsub differs between awks
    if (index(s, "\\")) { n = split(s, a, /\\/); s = a[1]; for (i = 2; i <= n; i++) s = s "\\\\" a[i] }
    gsub(/\t/, "\\t", s); gsub(/\r/, "\\r", s); gsub(/\n/, "\\n", s)
    return utf8(s)
}
function number(x,   a, s) {                               # at least six digits, no needless ones
    if (x == "") return "–"
    if (x == int(x) && x < 1e15 && x > -1e15) return sprintf("%.0f", x)
    a = x < 0 ? -x : x
    if (a >= 1e15 || a < 1e-4) return sprintf("%.8g", x)
    s = sprintf(a >= 1000 ? "%.2f" : a >= 1 ? "%.4f" : "%.8f", x)
    sub(/0+$/, "", s); sub(/[.]$/, "", s)
    return s
}
function grouped(x,   s, r, sign) {                        # 12345.5 as 12,345.5, for axes
    s = number(x)
    if (s ~ /e/) return s
    sign = ""; if (substr(s, 1, 1) == "-") { sign = "-"; s = substr(s, 2) }
    r = ""; if (index(s, ".")) { r = substr(s, index(s, ".")); s = substr(s, 1, index(s, ".") - 1) }
    while (length(s) > 3) { r = "," substr(s, length(s) - 2) r; s = substr(s, 1, length(s) - 3) }
    return sign s r
}
function percent(a, b) { return b ? sprintf("%.1f%%", 100 * a / b) : "–" }
function times(n, what) { return n " " what (n == 1 ? "" : "s") }
function figure(key, j, s) { printf "%s\t%s\t%s\n", key, j, s > FIGURES }

# ---- charts: SVG, without log, exp, sqrt or ^, which an awk may lack -----------------------------

function nice(r,   e, m) {
    if (r < 1e-100) r = 1e-100
    e = 1; while (e > r) e /= 10; while (e * 10 <= r) e *= 10
    m = r / e
    return (m <= 1.0001 ? 1 : m <= 2.0001 ? 2 : m <= 5.0001 ? 5 : 10) * e
}
function step(lo, hi, n,   s, a) {                         # never so small that lo + s == lo
    s = nice((hi - lo) / n); a = (lo < 0 ? -lo : lo) + (hi < 0 ? -hi : hi)
    return s < a * 1e-12 ? nice(a * 1e-12) : s
}
function begin_chart(name, title, sub_, xl, yl, h, left, bottom) {
    CHARTS++; CHART[CHARTS] = name ".svg"; CAPTION[CHARTS] = cut(title, 90)
    SVG = OUT "/" name ".svg"; CW = 860; CH = h; L = left; R = 40; T = 78; B = bottom
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#333\">\n", CW, CH, CW, CH > SVG
    printf "<title>%s</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", xml(cut(title, 90)), CW, CH > SVG
    text(24, 32, "start", xml(cut(title, 80)), "font-size=\"18\" font-weight=\"bold\" fill=\"#222\"")
    text(24, 53, "start", xml(cut(sub_, 120)), "font-size=\"12.5\" fill=\"#666\"")
    text(L + (CW - L - R) / 2, CH - 14, "middle", xml(cut(xl, 80)), "font-size=\"13\"")
    text(20, T + (CH - T - B) / 2, "middle", xml(cut(yl, 50)), sprintf("font-size=\"13\" transform=\"rotate(-90 20 %.1f)\"", T + (CH - T - B) / 2))
}
function text(x, y, anchor, s, more) { printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", x, y, anchor, more == "" ? "" : " " more, s > SVG }
function line(x1, y1, x2, y2, colour) { printf "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1, x2, y2, colour > SVG }
function box(x, y, w, h, colour, tip) { printf "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"><title>%s</title></rect>\n", x, y, w < .5 ? .5 : w, h < .5 ? .5 : h, colour, tip > SVG }
function end_chart() {
    line(L, CH - B, CW - R, CH - B, "#888"); line(L, T, L, CH - B, "#888")
    print "</svg>" > SVG; close(SVG)
    printf "chart\t%s\t%s\n", OUT "/" CHART[CHARTS], CAPTION[CHARTS]
}
function py(v) { return CH - B - (v - YLO) / (YHI - YLO) * (CH - T - B) }
function px(v) { return L + (v - XLO) / (XHI - XLO) * (CW - L - R) }
function y_axis(lo, hi, whole,   s, v, i, n) {
    s = step(lo, hi, 5); if (whole && s < 1) s = 1
    YLO = s * floor(lo / s); YHI = s * -floor(-hi / s); if (YHI <= YLO) YHI = YLO + s
    n = int((YHI - YLO) / s + .5); if (n > 20) n = 20
    for (i = 0; i <= n; i++) { v = YLO + i * s; if (v < s / 1e6 && v > -s / 1e6) v = 0; line(L, py(v), CW - R, py(v), "#e4e4e4"); text(L - 8, py(v) + 4, "end", grouped(v), "") }
}
function x_axis(lo, hi, whole, grid,   s, v, i, n) {
    s = step(lo, hi, 7); if (whole && s < 1) s = 1
    XLO = s * floor(lo / s); XHI = s * -floor(-hi / s); if (XHI <= XLO) XHI = XLO + s
    n = int((XHI - XLO) / s + .5); if (n > 20) n = 20
    for (i = 0; i <= n; i++) { v = XLO + i * s; if (v < s / 1e6 && v > -s / 1e6) v = 0; line(px(v), grid ? T : CH - B, px(v), CH - B + 5, grid ? "#e4e4e4" : "#888"); text(px(v), CH - B + 19, "middle", grouped(v), "") }
}
# Horizontal bars: long names stay readable. TV, TC, TN of list j.
function chart_bars(name, j, title, sub_, xl, yl, of,   i, n, w, most) {
    n = TN[j]; w = most = 0
    for (i = 1; i <= n; i++) { if (chars(cut(TV[j, i], 30)) > w) w = chars(cut(TV[j, i], 30)); if (TC[j, i] > most) most = TC[j, i] }
    begin_chart(name, title, sub_, xl, yl, 78 + n * 26 + 62, 60 + w * 6.8, 62)
    R = 110; x_axis(0, most, 1, 1)
    for (i = 1; i <= n; i++) {
        box(L, T + (i - .84) * 26, px(TC[j, i]) - L, 18, "#4878a8", xml(cut(TV[j, i], 60)) ": " TC[j, i])
        text(L - 8, T + (i - .5) * 26 + 4, "end", xml(cut(TV[j, i], 30)), "")
        text(px(TC[j, i]) + 6, T + (i - .5) * 26 + 4, "start", grouped(TC[j, i]) (of ? " (" percent(TC[j, i], of) ")" : ""), "font-size=\"11\" fill=\"#666\"")
    }
    end_chart()
}
# Vertical bars in a given order: LX[i], LY[i].
function chart_columns(name, n, title, sub_, xl, yl,   i, w, hi) {
    hi = 1; for (i = 1; i <= n; i++) if (LY[i] > hi) hi = LY[i]
    begin_chart(name, title, sub_, xl, yl, 460, 86, 66); y_axis(0, hi, 1); w = (CW - L - R) / n
    for (i = 1; i <= n; i++) {
        if (LY[i] > 0) box(L + (i - .85) * w, py(LY[i]), w * .7, py(0) - py(LY[i]), "#4878a8", xml(LX[i]) ": " LY[i])
        text(L + (i - .5) * w, CH - B + 19, "middle", xml(cut(LX[i], 14)), "")
        text(L + (i - .5) * w, py(LY[i]) - 6, "middle", grouped(LY[i]), "font-size=\"11\" fill=\"#666\"")
    }
    end_chart()
}
function chart_histogram(name, n, lo, hi, whole, title, sub_, xl, mark,   i, b, nb, w, hmax, k) {
    split("", HB); k = 0; i = n; while (i > 1) { i /= 2; k++ }
    nb = 4 + 2 * k; if (nb > 30) nb = 30
    w = step(lo, hi, nb); if ((whole || hi == lo) && w < 1) w = 1
    lo = w * floor(lo / w); nb = floor((hi - lo) / w) + 1; hmax = 0
    for (i = 1; i <= n; i++) { b = floor((A[i] - lo) / w); if (b >= nb) b = nb - 1; if (++HB[b] > hmax) hmax = HB[b] }
    begin_chart(name, title, sub_, xl, "rows", 460, 86, 66); y_axis(0, hmax, 1); x_axis(lo, lo + nb * w, 0, 0)
    for (b = 0; b < nb; b++) if (HB[b]) box(px(lo + b * w) + .6, py(HB[b]), px(lo + (b + 1) * w) - px(lo + b * w) - 1.2, py(0) - py(HB[b]), "#4878a8", grouped(lo + b * w) " to " grouped(lo + (b + 1) * w) ": " HB[b])
    if (mark != "") {
        printf "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#c0504d\" stroke-width=\"1.5\" stroke-dasharray=\"5 4\"/>\n", px(mark), T - 4, px(mark), CH - B > SVG
        text(px(mark) + (px(mark) > CW - 180 ? -6 : 6), T - 6, px(mark) > CW - 180 ? "end" : "start", "median " grouped(mark), "font-size=\"11\" fill=\"#c0504d\"")
    }
    end_chart()
}
function chart_line(name, n, title, sub_, xl, yl, whole, every, first,   i, lo, hi) {
    lo = hi = whole ? 0 : LY[1]; for (i = 1; i <= n; i++) { if (LY[i] > hi) hi = LY[i]; if (LY[i] < lo) lo = LY[i] }
    begin_chart(name, title, sub_, xl, yl, 460, 86, 66); y_axis(lo, hi, whole); XLO = 1; XHI = n > 1 ? n : 2
    for (i = first; i <= n; i += every) { line(px(i), CH - B, px(i), CH - B + 5, "#888"); text(px(i), CH - B + 19, "middle", xml(LX[i]), "") }
    if (whole) {
        printf "<polygon fill=\"#4878a8\" fill-opacity=\"0.15\" points=\"%.1f,%.1f", px(1), py(YLO) > SVG
        for (i = 1; i <= n; i++) printf " %.1f,%.1f", px(i), py(LY[i]) > SVG
        printf " %.1f,%.1f\"/>\n", px(n), py(YLO) > SVG
    }
    printf "<polyline fill=\"none\" stroke=\"#4878a8\" stroke-width=\"2\" points=\"" > SVG
    for (i = 1; i <= n; i++) printf "%s%.1f,%.1f", (i > 1 ? " " : ""), px(i), py(LY[i]) > SVG
    print "\"/>" > SVG
    if (n <= 120) for (i = 1; i <= n; i++) printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" fill=\"#4878a8\"><title>%s: %s</title></circle>\n", px(i), py(LY[i]), (n > 60 ? 2 : 3), xml(LX[i]), number(LY[i]) > SVG
    end_chart()
}
function chart_scatter(name, a, b,   c, i, m, n, va, vb, x, y, st, k, ta, tb, sa, sb, sab, saa, sbb, r) {
    st = int(ROWS / 2000) + 1; k = n = sab = saa = sbb = sa = sb = 0
    for (c = 1; c <= PIECES; c++) {
        m = split(PIECE[a, c], va, " "); split(PIECE[b, c], vb, " ")
        for (i = 1; i <= m; i++) if (va[i] != "x" && vb[i] != "x") {
            x = value(va[i]); y = value(vb[i]); n++
            ta = x - MEAN[a]; tb = y - MEAN[b]; sa += ta; sb += tb; sab += ta * tb; saa += ta * ta; sbb += tb * tb
            if (n % st == 0) { PX[++k] = x; PY[k] = y }
        }
    }
    if (n) { sab -= sa * sb / n; saa -= sa * sa / n; sbb -= sb * sb / n }
    r = root(saa) * root(sbb); r = r ? sab / r : 0
    begin_chart(name, NAME[b] " against " NAME[a], times(n, "row") (st > 1 ? ", " k " of them drawn" : "") "; correlation " sprintf("%.2f", r), NAME[a], NAME[b], 500, 86, 66)
    y_axis(LO[b], HI[b], 0); x_axis(LO[a], HI[a], 0, 1)
    for (i = 1; i <= k; i++) printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#4878a8\" fill-opacity=\"0.45\"/>\n", px(PX[i]), py(PY[i]) > SVG
    end_chart()
    CORRELATION = r; PAIRS = n
}

# ---- the run ------------------------------------------------------------------------------------

BEGIN {
    if (OUT == "") OUT = "."
    if (MAXD == "") MAXD = 20000
    if (D == "TAB" || D == "\\t") D = "\t"
    BYTES = length("é") == 2; HIGH = ""
    if (BYTES) for (i = 128; i < 256; i++) HIGH = HIGH sprintf("%c", i)
    n = split("NA N/A n/a #N/A NaN nan NULL null None <NA>", a, " "); for (i = 1; i <= n; i++) NA[a[i]]
    ROWS = DUPLICATES = LONG = SHORT = BLANK = HAVE = INQ = PADDED = NAWORDS = PIECES = NDAY = CHARTS = STOP = LINES = 0
    FIGURES = OUT "/figures.tsv"; MD = OUT "/report.md"
    split("Monday Tuesday Wednesday Thursday Friday Saturday Sunday", WEEK, " ")
}
{
    s = $0
    if (!LINES++) {
        if (index(s, "﻿") == 1) s = substr(s, length("﻿") + 1)
        if (s ~ /^sep=.\r?$/) { D = substr(s, 5, 1); LINES = 0; next }        # what Excel writes
        d = pick_delimiter(s)
        if (D == "") D = d
        else if (d != D && BEST && !index(s, D)) {
            printf "only one column with the delimiter %s; the header has %d times %s: run again with -v D='%s'\n", D == "\t" ? "TAB" : "'" D "'", BEST, d == "\t" ? "TAB" : "'" d "'", d == "\t" ? "TAB" : d
            STOP = 6; exit 6
        }
        COMMA = D == ";"; SEP = D == "|" ? "[|]" : D
        NUMBER = COMMA ? "^[-+]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][-+]?[0-9][0-9]?)?$" : "^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9][0-9]?)?$"
        AFTER = D " "; BEFORE = " " D
    }
    cr = substr(s, length(s)) == "\r"
    if (cr) s = substr(s, 1, length(s) - 1)
    if (!INQ && !index(s, "\"")) {
        if (s == "") { BLANK++; next }
        NF_ = split(s, F, SEP); KEY = s
    } else if (!feed(s, cr)) next
    if (!HAVE) { header(); next }
    row(index(KEY, AFTER) || index(KEY, BEFORE) || KEY ~ /^[ \t]|[ \t]$/ || index(KEY, "\n") || (D != "\t" && index(KEY, "\t")))
}
END {
    if (STOP) exit STOP
    if (INQ) { sub(/\r?\n$/, "", CUR); F[++NF_] = CUR; INQ = 0; UNCLOSED = 1; if (HAVE) row(1); else header() }
    if (!HAVE) { print "the file has no header: it is empty or blank"; exit 4 }
    keep()

    # Types and roles.
    for (j = 1; j <= NC; j++) {
        n = filled[j]; OTHER[j] = 0; TYPE[j] = "text"
        if (!n) TYPE[j] = "empty"
        else if (kind[j] < 2 && !nzero[j] && nnum[j] >= .95 * n) { TYPE[j] = "number"; OTHER[j] = n - nnum[j] }
        else if (ndate[j] >= .95 * n) {
            DAYS[j] = ndm[j] + 0 >= ndd[j] + 0 ? 1 : 2; c = DAYS[j] == 1 ? ndm[j] : ndd[j]
            if (c >= .95 * n) { TYPE[j] = "date"; OTHER[j] = n - c; if (ndm[j] + 0 != ndd[j] + 0) SLASH[j] = DAYS[j] == 1 ? "month/day/year" : "day/month/year" }
        }
        if (TYPE[j] == "number") {
            statistics(j)
            c = 1; for (i = 1; i <= PIECES && c; i++) if (PIECE[j, i] ~ /[.,eE]/) c = 0
            if (c) TYPE[j] = "integer"
            if (c && N[j] > 2 && !OTHER[j] && HI[j] - LO[j] == N[j] - 1 && (late[j] ? j in UNIQUE : different[j] == N[j])) ROLE[j] = "running number"
            else if (c && tolower(NAME[j]) ~ /(^|[^a-z])(id|zip|phone|tel|fax|postcode|plz)([^a-z]|$)|postal|telephone/) ROLE[j] = "code"
        }
        if (TYPE[j] == "text") {
            if (nmail[j] >= .9 * n) { ROLE[j] = "e-mail"; if (!MAIL) MAIL = j }
            else if (nurl[j] >= .9 * n) { ROLE[j] = "web address"; if (!WEB) WEB = j }
            else if (!late[j] && different[j] < n && (different[j] <= 20 || different[j] <= n / 2)) TYPE[j] = "category"
        }
        TN[j] = 0
    }
    # The commonest values; then hosts and endings of addresses, as lists of their own.
    for (k in count) { i = index(k, SUBSEP); top(substr(k, 1, i - 1) + 0, substr(k, i + 1), count[k]) }
    for (k in host) {
        i = index(k, SUBSEP); j = substr(k, 1, i - 1) + 0; s = substr(k, i + 1)
        if (j != MAIL && j != WEB) continue
        top("h" j, s, host[k]); HOSTS[j]++; HOSTROWS[j] += host[k]
        if (s ~ /\.[^.]*[a-z][^.]*$/) { sub(/^.*\./, "", s); tld[j SUBSEP s] += host[k] }
    }
    for (k in tld) { i = index(k, SUBSEP); j = substr(k, 1, i - 1) + 0; top("t" j, "." substr(k, i + 1), tld[k]); TLDS[j]++; TLDROWS[j] += tld[k] }
    # Days to months, weekdays, first and last.
    for (k in day) {
        split(k, a, SUBSEP); j = a[1] + 0; s = a[3]
        if (TYPE[j] != "date" || a[2] != DAYS[j]) continue
        mon[j, substr(s, 1, 7)] += day[k]; wk[j, weekday(s)] += day[k]; yr[j, substr(s, 1, 4)] += day[k]
        if (FIRST[j] == "" || s < FIRST[j]) FIRST[j] = s
        if (LAST[j] == "" || s > LAST[j]) LAST[j] = s
    }

    draw()
    figures()
    report()
    printf "%d rows, %d columns, %d duplicate rows, %d charts, report: %s\n", ROWS, NC, DUPLICATES, CHARTS, MD
}

# The columns that say most, each drawn as its type asks; then what is always possible, up to four.
function draw(   j, n, i, k, s, c, best, x, y, m, all) {
    CAT = CAT2 = DATE = 0
    for (j = 1; j <= NC; j++) {
        if (TYPE[j] == "date" && !DATE) DATE = j
        if ((TYPE[j] == "number" || TYPE[j] == "integer") && ROLE[j] == "" && HI[j] > LO[j]) {
            if (TYPE[j] == "integer" && !late[j] && different[j] <= 12 && different[j] < N[j] / 2) { if (!RATING) RATING = j }
            else NUMS[++NUMN] = j
        }
        if (TYPE[j] == "category") {                       # three values or more, one of them frequent
            s = TC[j, 1] / filled[j]; if (different[j] < 3) s -= 1
            if (!CAT || s > best) { CAT2 = CAT; CAT = j; best = s } else if (!CAT2 || TC[j, 1] / filled[j] > TC[CAT2, 1] / filled[CAT2]) CAT2 = j
        }
    }
    if (!ROWS) return
    if (CAT) bars_of(CAT, "top-values")
    if (DATE) {
        list_months(DATE); n = NMON
        if (n > 120) { list_years(DATE); chart_line("by-year", NLIST, "Rows by year of " NAME[DATE], span_of(DATE), "year", "rows", 1, int((NLIST + 11) / 12), 1) }
        else if (n > 2) {
            c = n <= 13 ? 1 : n <= 36 ? 3 : n <= 72 ? 6 : 12; m = 1
            if (c > 1) while ((substr(LX[m], 6) - 1) % c) m++
            chart_line("by-month", n, "Rows by month of " NAME[DATE], span_of(DATE), "month", "rows", 1, c, m)
        } else { list_days(DATE); chart_line("by-day", NLIST, "Rows by day of " NAME[DATE], span_of(DATE), "day", "rows", 1, int((NLIST + 8) / 9), 1) }
    }
    for (i = 1; i <= NUMN && i <= 3; i++) {
        j = NUMS[i]; n = load(j)
        chart_histogram("histogram-" i, n, LO[j], HI[j], TYPE[j] == "integer", "Distribution of " NAME[j], times(n, "value") ", mean " grouped(MEAN[j]) ", standard deviation " grouped(SD[j]), NAME[j], Q2[j])
    }
    if (NUMN > 1) { chart_scatter("scatter", NUMS[1], NUMS[2]) }
    if (DATE) {
        for (i = 1; i <= 7; i++) { LX[i] = WEEK[i]; LY[i] = wk[DATE, i] + 0 }
        chart_columns("by-weekday", 7, "Rows by weekday of " NAME[DATE], span_of(DATE), "weekday", "rows")
    }
    if (RATING) bars_of(RATING, "values")
    if (MAIL) chart_bars("email-domains", "h" MAIL, "Most common domains of " NAME[MAIL], TN["h" MAIL] " of " times(HOSTS[MAIL], "domain"), "rows", "domain", HOSTROWS[MAIL])
    if (MAIL) chart_bars("email-endings", "t" MAIL, "Most common endings of " NAME[MAIL], TN["t" MAIL] " of " times(TLDS[MAIL], "top-level domain"), "rows", "top-level domain", TLDROWS[MAIL])
    else if (WEB) chart_bars("web-hosts", "h" WEB, "Most common hosts of " NAME[WEB], TN["h" WEB] " of " times(HOSTS[WEB], "host"), "rows", "host", HOSTROWS[WEB])
    if (CAT2) bars_of(CAT2, "top-values-2")
    all = 0; for (j = 1; j <= NC; j++) all += missing[j]
    if (all || CHARTS < 4) { by_column(1, all); chart_bars("missing", "c", "Missing cells by column", times(all, "missing cell") " of " ROWS * NC (TN["c"] < NC ? "; the " TN["c"] " columns with most" : ""), "rows with a missing cell", "column", ROWS) }
    if (CHARTS < 4) { by_column(0, 0); chart_bars("different", "c", "Different values by column", times(ROWS, "row") (TN["c"] < NC ? "; the " TN["c"] " columns with most" : ""), "different values", "column", 0) }
    if (CHARTS < 4 && NUMN) {
        j = NUMS[1]; in_order(j)
        chart_line("in-order", NLIST, NAME[j] " in the order of the rows", BLOCK > 1 ? "mean of " BLOCK " rows each" : times(NLIST, "row"), "row", NAME[j], 0, int((NLIST + 8) / 9), 1)
    }
    for (j = 1; j <= NC && CHARTS < 4; j++) if ((TYPE[j] == "text" || TYPE[j] == "category") && !late[j]) {
        n = 0; x = 1e9; y = 0
        for (k in count) { i = index(k, SUBSEP); if (substr(k, 1, i - 1) + 0 == j) { m = chars(utf8(substr(k, i + 1))); if (m < x) x = m; if (m > y) y = m; for (i = 1; i <= count[k]; i++) A[++n] = m } }
        chart_histogram("length-" j, n, x, y, 1, "Length of " NAME[j], times(n, "value"), "characters", "")
        if (CHARTS >= 4) break
        TN["f" j] = 0; split("", FC)
        for (k in count) { i = index(k, SUBSEP); if (substr(k, 1, i - 1) + 0 == j) FC[toupper(initial(substr(k, i + 1)))] += count[k] }
        for (k in FC) top("f" j, k, FC[k])
        chart_bars("initials-" j, "f" j, "First characters of " NAME[j], times(n, "value"), "rows", "first character", n)
    }
}
function initial(s,   i, c) {                              # the first character, all its bytes
    s = utf8(s)
    if (!BYTES) return substr(s, 1, 1)
    for (i = 2; i <= length(s); i++) { c = index(HIGH, substr(s, i, 1)); if (c < 1 || c > 64) break }
    return substr(s, 1, i - 1)
}
function bars_of(j, name) { chart_bars(name, j, "Most common values of " NAME[j], TN[j] " of " times(different[j], "value") ", " times(filled[j], "row"), "rows", NAME[j], filled[j]) }
function span_of(j) { return FIRST[j] " to " LAST[j] ", " times(filled[j] - OTHER[j], "row") }
function by_column(gaps, all,   j) { TN["c"] = 0; for (j = 1; j <= NC; j++) if (!gaps || !all || missing[j]) top("c", NAME[j], gaps ? missing[j] : different[j]) }
function list_months(j,   y, m, k) {
    y = substr(FIRST[j], 1, 4) + 0; m = substr(FIRST[j], 6, 2) + 0; NMON = 0
    for (;;) {
        k = sprintf("%04d-%02d", y, m); if (k > substr(LAST[j], 1, 7) || NMON >= 2400) break
        LX[++NMON] = k; LY[NMON] = mon[j, k] + 0
        if (++m > 12) { m = 1; y++ }
    }
}
function list_years(j,   y, k) { NLIST = 0; for (y = substr(FIRST[j], 1, 4) + 0; y <= substr(LAST[j], 1, 4) + 0 && NLIST < 2000; y++) { k = sprintf("%04d", y); LX[++NLIST] = k; LY[NLIST] = yr[j, k] + 0 } }
function list_days(j,   s, y, m, d) {
    NLIST = 0; s = FIRST[j]
    while (s <= LAST[j] && NLIST < 70) {
        LX[++NLIST] = substr(s, 6); LY[NLIST] = day[j, DAYS[j], s] + 0
        y = substr(s, 1, 4) + 0; m = substr(s, 6, 2) + 0; d = substr(s, 9, 2) + 1
        if (d > days_in(y, m)) { d = 1; if (++m > 12) { m = 1; y++ } }
        s = iso(y, m, d)
    }
}
function in_order(j,   c, i, m, a, s, n, r) {
    BLOCK = int((ROWS + 59) / 60); NLIST = s = n = r = 0
    for (c = 1; c <= PIECES; c++) {
        m = split(PIECE[j, c], a, " ")
        for (i = 1; i <= m; i++) {
            r++; if (a[i] != "x") { s += value(a[i]); n++ }
            if (r % BLOCK == 0 || r == ROWS) { if (n) { LX[++NLIST] = r - (r - 1) % BLOCK; LY[NLIST] = s / n } s = n = 0 }
        }
    }
}

# What a program reads: key, column number, value.
function figures(   j, i) {
    figure("rows", "", ROWS); figure("columns", "", NC); figure("delimiter", "", D == "\t" ? "TAB" : D); figure("duplicates", "", DUPLICATES)
    figure("short", "", SHORT); figure("long", "", LONG); figure("blank", "", BLANK); figure("padded", "", PADDED); figure("na_words", "", NAWORDS)
    for (j = 1; j <= NC; j++) {
        figure("name", j, tsv(NAME[j])); figure("type", j, TYPE[j]); figure("role", j, ROLE[j]); figure("missing", j, missing[j]); figure("different", j, different[j] (late[j] ? "+" : "")); figure("other", j, OTHER[j])
        if (j in MEAN) {
            figure("count", j, N[j]); figure("mean", j, sprintf("%.12g", MEAN[j])); figure("sd", j, SD[j] == "" ? "" : sprintf("%.12g", SD[j])); figure("min", j, sprintf("%.12g", LO[j])); figure("q1", j, sprintf("%.12g", Q1[j]))
            figure("median", j, sprintf("%.12g", Q2[j])); figure("q3", j, sprintf("%.12g", Q3[j])); figure("max", j, sprintf("%.12g", HI[j])); figure("sum", j, sprintf("%.12g", SUM[j]))
        }
        if (j in FIRST) {
            figure("first", j, FIRST[j]); figure("last", j, LAST[j])
            for (i = 1; i <= 7; i++) figure("weekday", j, WEEK[i] " " wk[j, i] + 0)
            list_months(j); for (i = 1; i <= NMON; i++) if (LY[i]) figure("month", j, LX[i] " " LY[i])
        }
        for (i = 1; i <= TN[j]; i++) figure("top", j, TC[j, i] " " tsv(TV[j, i]))
        if (j == MAIL || j == WEB) {
            figure("hosts", j, HOSTS[j]); for (i = 1; i <= TN["h" j]; i++) figure("host", j, TC["h" j, i] " " tsv(TV["h" j, i]))
            figure("endings", j, TLDS[j] + 0); for (i = 1; i <= TN["t" j]; i++) figure("ending", j, TC["t" j, i] " " tsv(TV["t" j, i]))
        }
    }
    close(FIGURES)
}

function say(s) { print s > MD }
function type_of(j) { return TYPE[j] (ROLE[j] != "" ? " (" ROLE[j] ")" : "") }
function share_table(j, head, of,   i) {
    say("\n| " head " | rows | share |\n|:--|--:|--:|")
    for (i = 1; i <= TN[j]; i++) say("| " md(TV[j, i]) " | " TC[j, i] " | " percent(TC[j, i], of) " |")
}
function report(   j, i, s, n, all, gaps) {
    all = 0; gaps = 0; for (j = 1; j <= NC; j++) { all += missing[j]; if (missing[j]) gaps++ }
    say("# Analysis of " md(TITLE == "" ? FILENAME : TITLE) "\n\n## Summary\n")
    say("- " times(ROWS, "row") " and " times(NC, "column") ", separated by " (D == "\t" ? "TAB" : D == "," ? "commas" : D == ";" ? "semicolons" : "`" D "`") ".")
    if (!ROWS) say("- There is only a header: nothing to count and nothing to draw.")
    else say("- " (all ? percent(all, ROWS * NC) " of the cells are missing (" all " in " times(gaps, "column") ")" : "No cell is missing") "; " (DUPLICATES ? times(DUPLICATES, "row") (DUPLICATES == 1 ? " is a duplicate." : " are duplicates.") : "no row is a duplicate."))
    if (DATE) say("- " md(NAME[DATE]) " runs from " FIRST[DATE] " to " LAST[DATE] ".")
    if (CAT) say("- The most common value of " md(NAME[CAT]) " is " md(TV[CAT, 1]) " (" times(TC[CAT, 1], "row") ", " percent(TC[CAT, 1], filled[CAT]) ").")
    for (i = 1; i <= NUMN && i <= 5; i++) { j = NUMS[i]; say("- " md(NAME[j]) ": mean " number(MEAN[j]) ", median " number(Q2[j]) ", from " number(LO[j]) " to " number(HI[j]) ", total " number(SUM[j]) ".") }
    if (NUMN > 1) say("- " md(NAME[NUMS[1]]) " and " md(NAME[NUMS[2]]) " correlate with " sprintf("%.3f", CORRELATION) " (" times(PAIRS, "row") ").")
    if (NOTE != "") say("- " NOTE)

    say("\n## Structure\n\n| # | column | type | filled | missing | missing % | different | most common |\n|--:|:--|:--|--:|--:|--:|--:|:--|")
    for (j = 1; j <= NC; j++) say("| " j " | " md(NAME[j]) " | " type_of(j) " | " filled[j] " | " missing[j] " | " percent(missing[j], ROWS) " | " (late[j] ? "over " : "") different[j] " | " (TC[j, 1] > 1 ? md(TV[j, 1], 40) : filled[j] ? "each once" : "–") " |")

    say("\n## Data quality\n\n| check | result |\n|:--|--:|\n| rows | " ROWS " |\n| columns | " NC " |\n| missing cells | " all " |\n| duplicate rows | " DUPLICATES " |\n| rows with too few cells | " SHORT " |\n| rows with too many cells | " LONG " |\n| blank lines | " BLANK " |\n| cells with blanks around | " PADDED " |\n| words such as NA counted as missing | " NAWORDS " |")
    s = ""
    for (j = 1; j <= NC; j++) {
        if (TYPE[j] == "empty" && ROWS) s = s "\n- " md(NAME[j]) " is empty."
        else if (different[j] == 1 && filled[j] > 1) s = s "\n- " md(NAME[j]) " has the same value everywhere: " md(TV[j, 1]) "."
        if (OTHER[j]) s = s "\n- " md(NAME[j]) ": " times(OTHER[j], "cell") " that " (OTHER[j] == 1 ? "is" : "are") " no " (TYPE[j] == "date" ? "date" : "number") ", left out of its figures."
        if (j in SLASH) s = s "\n- " md(NAME[j]) " is read as " SLASH[j] "."
        else if (TYPE[j] == "date" && TV[j, 1] ~ /^[0-9][0-9]?[-\/]/) s = s "\n- " md(NAME[j]) " fits month/day/year and day/month/year alike; it is read as the first."
        if (late[j]) s = s "\n- " md(NAME[j]) " has more than " MAXD " different values; its most common ones are counted among the first " MAXD "."
    }
    if (UNCLOSED) s = s "\n- The last quoted cell is not closed: the file may be cut."
    if (s != "") say(s)

    n = 0
    for (j = 1; j <= NC; j++) if (j in MEAN) {
        if (!n++) say("\n## Numbers\n\n| column | count | mean | sd | min | q1 | median | q3 | max | sum |\n|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
        say("| " md(NAME[j]) " | " N[j] " | " number(MEAN[j]) " | " number(SD[j]) " | " number(LO[j]) " | " number(Q1[j]) " | " number(Q2[j]) " | " number(Q3[j]) " | " number(HI[j]) " | " number(SUM[j]) " |")
    }

    for (j = 1; j <= NC; j++) if (j in FIRST) {
        say("\n## Dates: " md(NAME[j]) "\n\nFrom " FIRST[j] " to " LAST[j] " (" times(day_number(LAST[j]) - day_number(FIRST[j]) + 1, "day") ").\n\n| weekday | rows | share |\n|:--|--:|--:|")
        for (i = 1; i <= 7; i++) say("| " WEEK[i] " | " wk[j, i] + 0 " | " percent(wk[j, i], filled[j] - OTHER[j]) " |")
        list_months(j)
        if (NMON <= 120) { say("\n| month | rows |\n|:--|--:|"); for (i = 1; i <= NMON; i++) say("| " LX[i] " | " LY[i] " |") }
        else { list_years(j); say("\n| year | rows |\n|:--|--:|"); for (i = 1; i <= NLIST; i++) say("| " LX[i] " | " LY[i] " |") }
    }

    for (j = 1; j <= NC; j++) if (j == MAIL || j == WEB) {
        say("\n## " (j == MAIL ? "E-mail domains" : "Web hosts") ": " md(NAME[j]) "\n\n" times(HOSTS[j], "different " (j == MAIL ? "domain" : "host")) ", " times(TLDS[j] + 0, "top-level domain") ".")
        share_table("h" j, j == MAIL ? "domain" : "host", HOSTROWS[j]); share_table("t" j, "top-level domain", TLDROWS[j])
    }

    say("\n## Most common values")
    for (j = 1; j <= NC; j++) {
        if (!filled[j]) continue
        if (TC[j, 1] < 2) { say("\n**" md(NAME[j]) "**: every value is there once."); continue }
        say("\n**" md(NAME[j]) "**, " (TN[j] < different[j] || late[j] ? "the " TN[j] " most common of " (late[j] ? "over " : "") different[j] : "all " TN[j]) " values:")
        share_table(j, "value", filled[j])
    }

    if (CHARTS) say("\n## Charts")
    for (i = 1; i <= CHARTS; i++) say("\n### " md(CAPTION[i], 90) "\n\n![" md(CAPTION[i], 90) "](" OUT "/" CHART[i] ")")
    close(MD)
}

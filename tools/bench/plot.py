"""Curves as an SVG file, both axes logarithmic: `svg(panels)`, panels: {title: {curve: {x: y}}}, side by side."""
import math
from html import escape

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 300, 240, 50, 30, 30
COLOURS = ("#1b6ca8", "#c0392b", "#27864a", "#8e44ad", "#b9770e", "#444444")


def span(numbers):
    """The enclosing powers of ten."""
    return math.floor(math.log10(min(numbers))), max(math.ceil(math.log10(max(numbers))), math.floor(math.log10(min(numbers))) + 1)


def panel(title, curves, at):
    xs = span([x for c in curves.values() for x in c])
    ys = span([y for c in curves.values() for y in c.values()])

    def place(x, y):
        across = (math.log10(x) - xs[0]) / (xs[1] - xs[0])
        up = (math.log10(y) - ys[0]) / (ys[1] - ys[0])
        return f"{at + LEFT + across * (WIDTH - LEFT - 20):.1f},{TOP + (1 - up) * (HEIGHT - TOP - BOTTOM):.1f}"

    yield f'<text x="{at + WIDTH / 2}" y="18" text-anchor="middle">{escape(title)}</text>'
    for power in range(ys[0], ys[1] + 1):
        (x0, y), (x1, _) = (place(10.0**x, 10.0**power).split(",") for x in xs)
        yield f'<path d="M{x0},{y}H{x1}" stroke="#ddd"/><text x="{at + LEFT - 4}" y="{y}" text-anchor="end">{10.0**power:g}</text>'
    for power in range(xs[0], xs[1] + 1):
        x, y = place(10.0**power, 10.0**ys[0]).split(",")
        yield f'<text x="{x}" y="{float(y) + 16}" text-anchor="middle">1e{power}</text>'
    for (name, curve), colour in zip(curves.items(), COLOURS * len(curves), strict=False):
        points = [place(x, y) for x, y in sorted(curve.items())]
        x, y = points[-1].split(",")
        yield (f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
               f'<text x="{float(x) - 2}" y="{float(y) - 4}" text-anchor="end" fill="{colour}">{escape(name)}</text>')


def svg(panels):
    parts = [part for i, (title, curves) in enumerate(panels.items()) for part in panel(title, curves, i * WIDTH)]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{len(panels) * WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
            f'font-size="10">\n<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")

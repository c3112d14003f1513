"""Charts and the one self-contained page of ``low-latency simulate --html``."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any

from .assumptions import Model
from .compilation import EXTRA_NEEDED
from .search_goals import Found, SearchResult
from .search_wording import traffic_name
from .simulating import SimulationResult
from .traffic import Shape

__all__ = ["front_chart", "latency_chart", "page", "timeline_chart"]

COLOURS = {"RANDOM": "#c2571a", "LEAST_OUTSTANDING_REQUESTS": "#1f6f8b"}
_OTHER = "#5b5f97"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2430; max-width: 960px; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p.answer { font-size: 1.1rem; white-space: pre-line; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin-bottom: 1.2rem; font-size: 0.85rem;
        font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.7rem; text-align: right; white-space: nowrap;
         border-bottom: 1px solid #d9dee5; }
th:first-child, td:first-child { text-align: left; }
ul { color: #48525f; font-size: 0.9rem; }
"""


def _plotly() -> Any:
    try:
        import plotly.graph_objects
    except ImportError:
        raise EXTRA_NEEDED.error(got="plotly is not installed", allowed="plotly",
                                 where="--html") from None
    return plotly.graph_objects


def _figure(objects: Any, title: str, **layout: Any) -> Any:
    figure = objects.Figure()
    figure.update_layout(
        title={"text": title, "x": 0, "xref": "paper", "font": {"size": 16}},
        template="plotly_white", height=420, margin={"l": 70, "r": 30, "t": 60, "b": 60},
        legend={"orientation": "h", "y": -0.2}, font={"family": "system-ui, sans-serif"},
        **layout)
    return figure


def latency_chart(results: Mapping[str, SimulationResult], model: Model) -> Any:
    """Percentiles of the client latency, by strategy, with intervals."""
    objects = _plotly()
    figure = _figure(objects, "Client latency by percentile", yaxis_title="milliseconds")
    names = {50.0: "p50", 90.0: "p90", 95.0: "p95", 99.0: "p99", 99.9: "p99.9"}
    for name, result in results.items():
        values = [result.percentile(at).scaled(1000) for at in names]
        figure.add_bar(
            x=list(names.values()), y=[each.mean for each in values], name=name,
            marker_color=COLOURS.get(name, _OTHER),
            error_y={"type": "data", "array": [each.half_width for each in values]},
            hovertemplate="%{x}: %{y:.1f} ms<extra>" + name + "</extra>")
    if model.latency_target:
        figure.add_hline(1000 * model.latency_target, line_dash="dash", line_color="#9b2226",
                         annotation_text=f"target at p99: {1000 * model.latency_target:g} ms",
                         annotation_position="top left")
    figure.update_layout(barmode="group", showlegend=True)
    figure.update_yaxes(rangemode="tozero")
    return figure


def timeline_chart(shape: Shape, result: SimulationResult, model: Model) -> Any:
    """Requests, instances and p99, minute by minute."""
    objects = _plotly()
    from plotly.subplots import make_subplots

    lines = result.replications[0].timeline
    minutes = [line.end / 60 for line in lines]
    figure = make_subplots(rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.06,
                           row_heights=[0.3, 0.3, 0.4])
    rates = [line.requests / (line.end - line.begin) for line in lines]
    figure.add_trace(objects.Scatter(x=minutes, y=rates, name="answers per second",
                                     line_color="#48525f"), row=1, col=1)
    for name, field, colour, dash in (("paid", "launched", "#b8c0cc", "dot"),
                                      ("serving", "serving", "#1f6f8b", "solid")):
        figure.add_trace(objects.Scatter(
            x=minutes, y=[getattr(line, field) for line in lines], name=f"instances {name}",
            line={"shape": "hv", "color": colour, "dash": dash}), row=2, col=1)
    figure.add_trace(objects.Scatter(
        x=minutes, y=[1000 * line.p99 for line in lines], name="p99",
        line_color="#c2571a"), row=3, col=1)
    if model.latency_target:
        figure.add_hline(1000 * model.latency_target, row=3, col=1, line_dash="dash",
                         line_color="#9b2226")
    figure.update_yaxes(title_text="per second", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title_text="instances", rangemode="tozero", row=2, col=1)
    figure.update_yaxes(title_text="p99 in ms", type="log", row=3, col=1)
    figure.update_xaxes(title_text="minutes", row=3, col=1)
    figure.update_layout(
        title={"text": f"{shape.name}: {shape.description}", "x": 0, "xref": "paper",
               "font": {"size": 16}},
        template="plotly_white", height=620, margin={"l": 70, "r": 30, "t": 60, "b": 60},
        legend={"orientation": "h", "y": -0.12}, font={"family": "system-ui, sans-serif"})
    return figure


def front_chart(result: SearchResult) -> Any:
    """Cost against the goal's percentile: all that was tried, and the fronts."""
    objects = _plotly()
    figure = _figure(objects, "Cost against latency: up and to the right is worse",
                     xaxis_title="paid instances on average",
                     yaxis_title=f"p{result.goal.percentile:g} in ms")
    figure.update_yaxes(type="log")
    for title, found, front, colour in (
        (f"steady {result.goal.tps:,g} TPS", result.steady, result.front, "#1f6f8b"),
        *([(traffic_name(result), result.over_time, result.front_over_time, "#c2571a")]
          if result.over_time else []),
    ):
        figure.add_trace(_points(objects, found, title, mode="markers",
                                 marker={"color": colour, "opacity": 0.45, "size": 8}))
        figure.add_trace(_points(objects, front, f"{title}, front", mode="lines+markers",
                                 line={"color": colour}, marker={"color": colour, "size": 10}))
    costs = [each.cost for each in (*result.steady, *result.over_time)]
    figure.add_trace(objects.Scatter(
        x=[min(costs), max(costs)], y=[1000 * result.goal.seconds] * 2, mode="lines",
        name=f"goal: {1000 * result.goal.seconds:g} ms",
        line={"color": "#9b2226", "dash": "dash"}))
    return figure


def _points(objects: Any, found: Iterable[Found], name: str, **style: Any) -> Any:
    points = list(found)
    return objects.Scatter(
        x=[each.cost for each in points], y=[1000 * each.latency.mean for each in points],
        name=name, text=[str(each.candidate) for each in points],
        hovertemplate="%{text}<br>%{x:.2f} instances, %{y:.1f} ms<extra></extra>", **style)


def page(title: str, sentences: Iterable[str],
         tables: Iterable[tuple[str, list[str], list[list[str]]]], charts: Iterable[Any],
         assumed: Iterable[str], *, code: Iterable[tuple[str, str]] = ()) -> str:
    """One page that needs nothing from elsewhere: plotly's script is in it.

    ``code`` holds titles and texts whose lines and spaces are kept.
    """
    escape = html.escape
    parts = [f"<!doctype html><html lang='en'><head><meta charset='utf-8'>"
             f"<meta name='viewport' content='width=device-width, initial-scale=1'>"
             f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
             f"<h1>{escape(title)}</h1>"]
    parts += [f"<p class='answer'>{escape(each)}</p>" for each in sentences]
    for number, chart in enumerate(charts):
        parts.append(chart.to_html(full_html=False, include_plotlyjs=number == 0,
                                   div_id=f"chart-{number}",
                                   config={"displaylogo": False, "responsive": True}))
    for head, titles, rows in tables:
        if head:
            parts.append(f"<h2>{escape(head)}</h2>")
        parts.append("<div class='scroll'><table><tr>"
                     + "".join(f"<th>{escape(each)}</th>" for each in titles) + "</tr>")
        parts += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
                  for row in rows]
        parts.append("</table></div>")
    parts += [f"<h2>{escape(head)}</h2><pre class='scroll'>{escape(text)}</pre>"
              for head, text in code]
    parts.append("<h2>Assumed</h2><ul>" + "".join(f"<li>{escape(each)}</li>" for each in assumed)
                 + "</ul></body></html>\n")
    return "\n".join(parts)

"""The one table of colours: Okabe and Ito's, told apart by people with colour blindness too."""

from __future__ import annotations

#: By name: on light paper, and on dark.
COLOURS = {
    "blue": ("#0072b2", "#4ea8de"),
    "orange": ("#c77f00", "#e69f00"),
    "red": ("#c2410c", "#ff7b54"),
    "green": ("#00805e", "#2fc99b"),
    "purple": ("#a8558a", "#dd8fbd"),
    "sky": ("#3c94c4", "#8fd0f5"),
    "grey": ("#6b7280", "#9aa4b2"),
    "ink": ("#1f2937", "#e6e9ee"),
}
#: Lines that mean no more than being different from each other.
PALETTE = ("blue", "orange", "green", "purple", "sky", "red", "grey", "ink")

"""Charts drawn by the server: plain functions from numbers to inline SVG, no Django, no state.

Text does not scale: a plot is 100 % wide, positions are per cent, curves live in a nested
``viewBox`` that may be stretched. Colours are CSS classes (``css/charts.css``), so that one drawing
serves both themes and a strict content security policy.
"""

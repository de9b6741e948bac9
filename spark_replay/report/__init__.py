"""A capture and the results of its replay as one HTML file without external resources.

Data flows in three steps, each bounded in memory, so that tables of any size fit:

    sources, captured   batches of tables from Parquet folders, or of captures decoded here
    traffic, replayed   sums over batches, in any order; `sketches` has the counters (histogram, time bins, distinct
                        count), with their error bounds
    sections, plots     plain values for each part of the page, and its figures; `page` renders them with Jinja2

The numbers on the page and its JSON come from the same values of `sections` and `replay_sections`. Only the bytes of
the few frames shown as examples are looked up, at the end.

The page works without network access: style, script (allowed by its hash in the Content-Security-Policy) and SVG
figures are inlined. Texts from a capture are untrusted and always escaped. Jinja2 and matplotlib are optional
dependencies, imported when a page is rendered.
"""

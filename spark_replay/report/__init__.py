"""One self-contained HTML page of a capture and its replay."""

"""A capture, and what a replay of it found, as one HTML file: sums over batches, pictures, and the page."""

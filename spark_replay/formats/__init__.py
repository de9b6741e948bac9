"""Capture files to TCP segments, in columns: pcap and pcapng, whole, compressed or one split of them."""

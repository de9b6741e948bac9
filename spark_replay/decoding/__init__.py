"""Frames to messages: every body read, written again and compared with its bytes."""

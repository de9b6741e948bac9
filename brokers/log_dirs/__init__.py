"""A broker's log directories: their ids and format, the disks below them, the logs in them."""

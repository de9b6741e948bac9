"""The controller itself: decisions make records, records make the image, the image answers. No sockets, no clock."""

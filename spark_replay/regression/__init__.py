"""The same requests to another controller: what is renamed, what is not compared, what is a difference."""

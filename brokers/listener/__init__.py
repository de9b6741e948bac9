"""A broker's own sockets: connections of clients, frames in and answers out."""

//! The way to nodes that run an SSH server.

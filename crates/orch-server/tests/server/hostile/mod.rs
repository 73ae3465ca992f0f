//! Clients that mean no good. Each attack is on a server in a process of its own, so that its memory is seen apart from
//! theirs, and while it lasts a node fetches its configuration again and again, and must have it in time.

mod bodies;
mod crowds;
mod garbage;
mod heads;
mod paths;
mod protocols;
mod readers;
mod siege;
mod slowness;
mod tokens;
mod victim;

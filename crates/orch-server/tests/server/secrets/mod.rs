//! What the server does with secrets: whom it gives them, whom it believes to be a node, and which keys it signs with.

mod house;
mod parcels;
mod signing;

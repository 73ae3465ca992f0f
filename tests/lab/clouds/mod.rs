//! The lab that users have too: machines of clouds that are nodes on this computer, and the process that serves them.

mod daemon;
mod inside;
mod life;
mod many;
mod scene;

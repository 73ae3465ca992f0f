//! What the lab's Proxmox VE promises: to behave as the real one was seen to.

mod access;
mod containers;
mod description;
mod faults;
mod hostile;
mod kept;
mod lifecycle;
mod locks;
mod real;
mod seed;
mod storage;
mod world;

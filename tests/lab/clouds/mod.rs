//! The lab that users have too: machines of clouds that are nodes on this computer, the process that serves them, and whole
//! lives of fleets on them by `orch --lab`.

mod alike;
mod changes;
mod daemon;
mod drivers;
mod facts;
mod home;
mod inside;
mod left;
mod life;
mod many;
mod modes;
mod people;
mod poison;
mod refusals;
mod scene;
mod strangers;
mod unchanged;
mod verbs;

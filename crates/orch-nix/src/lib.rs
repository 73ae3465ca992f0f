//! NixOS systems: evaluated in processes of their own, built, and ready to be copied.
//!
//! Nothing here is linked against Nix, and no Nix code is put together from text: the programs of Nix are run by their
//! argv, and data reaches them as JSON in a file.

mod build_on;
mod diff;
mod drv;
mod evaluate;
mod log;
mod process;
mod store;
mod tools;

pub use build_on::BuildOn;
pub use diff::{BootChange, Change, Changes, PackageChange, UnitChange, changes};
pub use drv::DrvPath;
pub use evaluate::{
    Disks, EvalError, Evaluated, Evaluator, EvaluatorSettings, ExpectedSecret, Kind, ManifestError, Wanted,
};
pub use store::{Member, Store, StoreError};
pub use tools::{Tools, ToolsError, Version};

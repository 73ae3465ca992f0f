//! The other faces of this program: the init of local nodes, what providers run in processes of their own, and the lab. They are
//! found before anything else is set up, and cost nothing where they are not meant.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use orch_providers::local;

/// Does what the arguments ask of another face than the command line's, if they do.
pub(crate) fn face(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let program = args.next()?;
    let name = Path::new(&program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // Where it was brought to a node, its name says what is in it too.
    if name == "orch-node" || name.starts_with("orch-node-") {
        return Some(orch_node::command(args));
    }
    if orch_lab::is_tool(name) {
        return Some(orch_lab::tool(name, args));
    }
    match args.next()?.to_str()? {
        "node" => Some(orch_node::command(args)),
        local::HELPER => Some(local::helper(args)),
        orch_lab::HELPER => Some(orch_lab::helper(args)),
        _ => None,
    }
}

//! The unit that runs a node that pulls where systemd is the first process.

use super::ENROLMENT;

/// What the unit is called.
pub const UNIT_NAME: &str = "orch-node.service";

/// The text of the unit, for the `orch-node` program at this path. A worker that applies goes on when the unit is stopped
/// or restarted: it would otherwise be cut in the middle by the very configuration that it applies.
pub fn unit(program: &str) -> String {
    format!(
        "[Unit]\n\
         Description=Keeps this node as its configuration says\n\
         Wants=network-online.target\n\
         After=network-online.target\n\
         ConditionPathExists={ENROLMENT}\n\
         \n\
         [Service]\n\
         ExecStart={program} run\n\
         ExecReload={program} converge\n\
         Restart=always\n\
         RestartSec=5\n\
         KillMode=process\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        program = quoted(program)
    )
}

/// A word of a command line of systemd that means itself.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "/._-+".contains(char);
    if word.chars().all(is_plain) {
        return word.into();
    }
    let mut quoted = String::from("\"");
    for char in word.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            '%' | '$' => quoted.extend([char, char]),
            '\n' => quoted.push_str("\\n"),
            _ => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_runs_the_program_that_it_is_given_and_no_other() {
        assert!(unit("/usr/local/bin/orch-node").contains("\nExecStart=/usr/local/bin/orch-node run\n"));
        assert!(unit("/a b/%n$x\"").contains("\nExecStart=\"/a b/%%n$$x\\\"\" run\n"));
        assert!(!unit("/a\nExecStartPre=/b").contains("\nExecStartPre"));
    }
}

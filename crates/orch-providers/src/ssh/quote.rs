//! Words for a shell that must not understand them.
//!
//! An SSH server hands one string to the login shell of the account, and `ssh` hands the command of a proxy to one, so
//! there is a shell whether one wants it or not. What is quoted here reaches the program behind it unchanged.

/// One word, so that a POSIX shell takes it as it is.
pub(super) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+:,./-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The line that makes a login shell become the program `argv`: never a word or a built-in command of the shell's own.
/// What cannot be said that way is an error in words.
pub(super) fn command(argv: &[&str]) -> Result<String, String> {
    let program = argv.first().copied().unwrap_or_default();
    if program.is_empty() || program.starts_with('-') || program.contains('=') {
        return Err(format!("`{}` cannot be the name of a program", orch_model::printable(program)));
    }
    if argv.iter().any(|word| word.contains('\0')) {
        return Err(format!("an argument of `{}` has a zero byte in it", orch_model::printable(program)));
    }
    let words: Vec<String> = argv.iter().map(|text| word(text)).collect();
    Ok(format!("exec {}", words.join(" ")))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::*;

    const HOSTILE: [&str; 35] = [
        "",
        " ",
        "a b",
        "'",
        "''",
        "\"",
        "\\",
        "\\'",
        "\n",
        "a\nb",
        "\t",
        "$HOME",
        "$(id)",
        "`id`",
        ";",
        "&&",
        "|",
        ">x",
        "*",
        "?",
        "[a]",
        "{a,b}",
        "~",
        "~root",
        "#x",
        "!x",
        "-n",
        "--",
        "=",
        "A=b",
        "ü",
        "日本",
        "\u{1f980}",
        "\u{7f}",
        "'; exit 7 #",
    ];

    fn shell(line: &str) -> Output {
        Command::new("sh").args(["-c", line]).output().unwrap()
    }

    #[test]
    fn a_shell_hands_every_quoted_word_on_unchanged() {
        let argv = [&["printf", "%s\\0"][..], &HOSTILE].concat();
        let shown = String::from_utf8(shell(&command(&argv).unwrap()).stdout).unwrap();
        let shown: Vec<&str> = shown.strip_suffix('\0').unwrap().split('\0').collect();
        assert_eq!(shown, HOSTILE);
    }

    #[test]
    fn words_of_the_shells_own_are_programs_like_any_other() {
        for word in ["if", "exit", "{", "!", "eval", "cd $HOME", "no-such-program"] {
            let ended = shell(&command(&[word, "3"]).unwrap());
            assert_eq!(ended.status.code(), Some(127), "`{word}`");
        }
        let shown = shell(&command(&["echo", "a\\nb"]).unwrap());
        assert_eq!(shown.stdout, b"a\\nb\n", "the program, and not what a shell calls `echo`");
    }

    #[test]
    fn what_cannot_be_the_name_of_a_program_is_refused() {
        for argv in [&[][..], &[""], &["-c", "id"], &["A=b", "id"], &["id", "a\0b"]] {
            assert!(command(argv).is_err(), "{argv:?}");
        }
    }
}

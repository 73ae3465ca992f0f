//! The few formats of parameters that provisioning tools get wrong, in the words of the real one.

/// What a switch may say.
pub(super) fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" | "true" => Some(true),
        "0" | "off" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// What is wrong with a value of this format; formats that are not known here are fine.
pub(super) fn check(format: &str, value: &str) -> Option<String> {
    let is_fine = match format {
        "dns-name" => value.split('.').all(is_label),
        "pve-tag-list" => value.split([';', ',', ' ']).filter(|tag| !tag.is_empty()).all(is_tag),
        "urlencoded" => {
            value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-%_.!~*'()".contains(&byte))
        }
        _ => true,
    };
    let wrong = match format {
        "dns-name" => "value does not look like a valid DNS name".to_owned(),
        "pve-tag-list" => "invalid characters in tag".to_owned(),
        _ => format!("invalid urlencoded string: {value}"),
    };
    (!is_fine).then_some(wrong)
}

fn is_label(label: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !label.is_empty()
        && label.len() <= 63
        && label.bytes().all(fine)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn is_tag(tag: &str) -> bool {
    let first = tag.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    first && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-+.".contains(&byte))
}

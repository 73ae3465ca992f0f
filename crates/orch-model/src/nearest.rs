//! The nearest existing name to one that does not exist.
//!
//! Deliberately simple: an edit distance with a bound, so that a typing slip is recognised and a quite different
//! word is not proposed.

use alloc::vec::Vec;

/// Finds the candidate that a person most likely meant by `wanted`, if any is close enough.
pub(crate) fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = wanted.chars().take(64).collect();
    let bound = (wanted.len() / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(wanted.len()) <= bound)
        .map(|candidate| (distance(&wanted, candidate), candidate))
        .filter(|(distance, _)| *distance <= bound)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edit distance in which swapping two neighbours counts as one slip (optimal string alignment).
fn distance(left: &[char], right: &str) -> usize {
    let right: Vec<char> = right.chars().take(64).collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.iter().enumerate() {
        let mut row = Vec::with_capacity(right.len() + 1);
        row.push(i + 1);
        for (j, r) in right.iter().enumerate() {
            let substituted = last[j] + usize::from(l != r);
            let mut best = substituted.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *l == right[j - 1] && left[i - 1] == *r {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = core::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_the_name_and_another_word_does_not() {
        let names = ["pve2", "web01", "base", "vm-small"];
        assert_eq!(nearest("pve3", names), Some("pve2"));
        assert_eq!(nearest("bsae", names), Some("base"));
        assert_eq!(nearest("vm-smal", names), Some("vm-small"));
        assert_eq!(nearest("database", names), None);
        assert_eq!(nearest("", names), None);
    }
}

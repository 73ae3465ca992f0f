//! The durable file of lines.

use std::fs;
use std::path::PathBuf;

use expect_test::expect;
use orch_dag::journal::file::{Lines, LinesError};
use tempfile::TempDir;

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lines");
    (directory, path)
}

async fn three(path: &PathBuf) -> Vec<u8> {
    let lines = Lines::create(path).unwrap();
    for entry in ["one", "two", "three"] {
        lines.append(entry).await.unwrap();
    }
    drop(lines);
    fs::read(path).unwrap()
}

fn read(path: &PathBuf) -> (Vec<String>, bool) {
    let contents = Lines::read::<String>(path).unwrap();
    (contents.entries, contents.torn)
}

#[tokio::test]
async fn what_was_appended_is_read_back_in_order() {
    let (_directory, path) = place();
    three(&path).await;
    assert_eq!(read(&path), (vec!["one".to_owned(), "two".to_owned(), "three".to_owned()], false));
}

#[tokio::test]
async fn a_torn_last_line_is_passed_over_wherever_it_was_torn_and_cut_off_before_appending() {
    let (_directory, path) = place();
    let bytes = three(&path).await;
    let last = bytes.len() - bytes.split_inclusive(|byte| *byte == b'\n').next_back().unwrap().len();
    for length in last + 1..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        assert_eq!(read(&path), (vec!["one".to_owned(), "two".to_owned()], true), "{length} bytes");
        Lines::append_to(&path).unwrap().append("again").await.unwrap();
        assert_eq!(read(&path), (vec!["one".to_owned(), "two".to_owned(), "again".to_owned()], false));
    }
}

#[tokio::test]
async fn a_last_line_with_a_wrong_checksum_is_passed_over_too() {
    let (_directory, path) = place();
    let mut bytes = three(&path).await;
    let flipped = bytes.len() - 4;
    bytes[flipped] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(read(&path), (vec!["one".to_owned(), "two".to_owned()], true));
}

#[tokio::test]
async fn damage_before_the_last_line_is_an_error_that_names_the_line() {
    let (_directory, path) = place();
    let mut bytes = three(&path).await;
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 10;
    bytes[second] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(Lines::read::<String>(&path), Err(LinesError::Corrupt { line: 2, .. })));
    assert!(matches!(Lines::append_to(&path), Err(LinesError::Corrupt { line: 2, .. })));
    assert_eq!(fs::read(&path).unwrap(), bytes, "a damaged file is left as it is");
}

#[tokio::test]
async fn a_whole_line_of_another_type_is_an_error_and_not_a_torn_one() {
    let (_directory, path) = place();
    three(&path).await;
    let error = Lines::read::<u32>(&path).unwrap_err();
    assert!(matches!(error, LinesError::Decode { line: 1, .. }));
    let shown = error.to_string().replace(&path.display().to_string(), "file");
    expect!["line 1 of `file` is not such an entry"].assert_eq(&shown);
}

#[tokio::test]
async fn create_refuses_a_file_that_is_there_and_append_to_makes_one_that_is_not() {
    let (_directory, path) = place();
    Lines::append_to(&path).unwrap().append("one").await.unwrap();
    assert!(matches!(Lines::create(&path), Err(LinesError::Open { .. })));
    assert_eq!(read(&path).0, ["one"]);
}

#[tokio::test]
async fn a_second_writer_is_refused_while_the_first_is_there() {
    let (_directory, path) = place();
    let first = Lines::create(&path).unwrap();
    assert!(matches!(Lines::append_to(&path), Err(LinesError::Locked { .. })));
    drop(first);
    assert!(Lines::append_to(&path).is_ok());
}

#[tokio::test]
async fn entries_appended_at_once_are_all_there() {
    let (_directory, path) = place();
    let lines = std::sync::Arc::new(Lines::create(&path).unwrap());
    let append = |number: u32| {
        let lines = lines.clone();
        tokio::spawn(async move { lines.append(&number).await.unwrap() })
    };
    for handle in (0..200).map(append).collect::<Vec<_>>() {
        handle.await.unwrap();
    }
    let mut entries = Lines::read::<u32>(&path).unwrap().entries;
    entries.sort_unstable();
    assert_eq!(entries, (0..200).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_entry_whose_appender_went_away_is_still_written() {
    let (_directory, path) = place();
    let lines = Lines::create(&path).unwrap();
    {
        let mut append = std::pin::pin!(lines.append("one"));
        std::future::poll_fn(|cx| {
            let _ = append.as_mut().poll(cx);
            std::task::Poll::Ready(())
        })
        .await;
    }
    drop(lines);
    assert_eq!(read(&path).0, ["one"]);
}

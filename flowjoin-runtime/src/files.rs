//! No file is written by two, or read and written: checked before anything is opened, since opening empties a file.

use std::path::{Path, PathBuf};

use flowjoin_core::io::Endpoint;

/// What is wrong with the files of a flow, if anything: `sources` and `sinks` by their endpoints.
pub fn clash(endpoints: &[Endpoint]) -> Option<String> {
    let read = endpoints.iter().flat_map(|it| it.reads.iter().map(move |path| (it, path, "reads")));
    let written = endpoints.iter().flat_map(|it| it.writes.iter().map(move |path| (it, path, "writes")));
    let used: Vec<(&Endpoint, &PathBuf, &str)> = read.chain(written).collect();
    for (index, (one, path, does)) in used.iter().enumerate() {
        for (other, second, writes) in &used[index + 1..] {
            if *writes == "writes" && is_same(path, second) {
                return Some(format!(
                    "`{}` would be lost: {} `{}` {does} it and sink `{}` writes to it; give one of them another file",
                    second.display(),
                    if *does == "reads" { "source" } else { "sink" },
                    one.name,
                    other.name
                ));
            }
        }
    }
    None
}

// One file under two names is one file; a file that is not there yet is known by its folder.
fn is_same(one: &Path, other: &Path) -> bool {
    match (identity(one), identity(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

#[derive(PartialEq, Eq)]
enum Identity {
    #[cfg(unix)]
    Inode(u64, u64),
    Path(PathBuf),
}

fn identity(path: &Path) -> Option<Identity> {
    if let Ok(found) = std::fs::metadata(path) {
        // A device such as /dev/null may be written by many.
        if !found.is_file() {
            return None;
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            return Some(Identity::Inode(found.dev(), found.ino()));
        }
        #[cfg(not(unix))]
        return path.canonicalize().ok().map(Identity::Path);
    }
    let path = &at_the_end_of_links(path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Folders that are not there yet will be made as they are written.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    Some(Identity::Path(folder.join(path.file_name()?)))
}

// What a link leads to though it is not there yet: a file that is made under the link is made there.
fn at_the_end_of_links(path: &Path) -> PathBuf {
    let mut at = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let Ok(target) = std::fs::read_link(&at) else { break };
        at = at.parent().unwrap_or(Path::new("")).join(target);
    }
    at
}

/// Links that systems follow, at most: more of them go round.
const LINKS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("flowjoin-files-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_file_that_is_read_is_not_written_under_any_of_its_names() {
        let folder = folder("names");
        let input = folder.join("rows.jsonl");
        std::fs::write(&input, "{}").unwrap();
        let linked = folder.join("linked.jsonl");
        let _ = std::fs::remove_file(&linked);
        std::fs::hard_link(&input, &linked).unwrap();
        for name in [input.clone(), linked, folder.join("../").join(folder.file_name().unwrap()).join("rows.jsonl")] {
            let source = Endpoint::new("file", "in").reading([input.clone()]);
            let sink = Endpoint::new("file", "out").writing([name]);
            let clash = clash(&[sink, source]).unwrap();
            assert!(clash.contains("source `in` reads it and sink `out` writes to it"), "{clash}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_is_not_there_yet_is_written_by_one() {
        let folder = folder("new");
        let to = |name: &str| Endpoint::new("file", name).writing([folder.join("new.jsonl")]);
        assert!(clash(&[to("one"), to("two")]).is_some());
        assert!(clash(&[to("one"), Endpoint::new("file", "two").writing([folder.join("other.jsonl")])]).is_none());
        #[cfg(unix)]
        {
            let of = |link: &str| Endpoint::new("file", "two").writing([folder.join(link)]);
            for (link, target) in [("a", "new.jsonl"), ("b", "a"), ("c", "other.jsonl"), ("round", "round")] {
                let _ = std::fs::remove_file(folder.join(link));
                std::os::unix::fs::symlink(target, folder.join(link)).unwrap();
            }
            let clashes = ["a", "b", "c", "round"].map(|link| clash(&[to("one"), of(link)]).is_some());
            assert_eq!(clashes, [true, true, false, false]);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}

//! Detects an output that is also read.

use std::fs;
use std::path::Path;

use super::args::is_dash;
use super::output::Target;

/// Whether `target` is the regular file that `source` names, through any names and links; `-` is
/// standard input. A file without readable metadata is different.
#[cfg(unix)]
pub fn is_same_file(target: Target<'_>, source: &Path) -> bool {
    use std::io;
    use std::os::unix::fs::MetadataExt;

    let output = match target {
        Target::Stdout => metadata(&io::stdout()),
        Target::File(path) => fs::metadata(path),
    };
    let input = if is_dash(source) {
        metadata(&io::stdin())
    } else {
        fs::metadata(source)
    };
    let (Ok(output), Ok(input)) = (output, input) else {
        return false;
    };
    output.is_file() && (output.dev(), output.ino()) == (input.dev(), input.ino())
}

#[cfg(unix)]
fn metadata(stream: &impl std::os::fd::AsFd) -> std::io::Result<fs::Metadata> {
    fs::File::from(stream.as_fd().try_clone_to_owned()?).metadata()
}

/// Whether `target` is the file that `source` names; hard links are not recognised.
#[cfg(not(unix))]
pub fn is_same_file(target: Target<'_>, source: &Path) -> bool {
    match target {
        Target::File(path) if !is_dash(source) => {
            matches!((fs::canonicalize(path), fs::canonicalize(source)), (Ok(a), Ok(b)) if a == b)
        }
        _ => false,
    }
}

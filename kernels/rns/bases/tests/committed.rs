//! Tests that the committed headers are the output of this program.

use std::fs;
use std::path::Path;

use rns_bases::{Bases, WIDTHS, file_name, text};

#[test]
fn headers_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (bits, _) in WIDTHS {
        let path = folder.join(file_name(bits));
        let run = "run `cargo run -p rns-bases`";
        let committed = fs::read_to_string(&path);
        let committed = committed.unwrap_or_else(|error| panic!("{path:?}: {error}; {run}"));
        let bases = Bases::new(bits).unwrap();
        assert!(committed == text(&bases), "{path:?}: {run}");
        // Control: a changed word is noticed.
        let mut changed = bases;
        changed.a.swap(0, 1);
        assert!(committed != text(&changed));
    }
}

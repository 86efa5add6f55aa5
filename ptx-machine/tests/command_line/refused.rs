//! Tests of invalid command lines and files.

use std::fs;
use std::path::Path;

use crate::{CONTROLS, ONE_WARP, refused, result, run};

#[test]
fn command_lines_that_do_not_fit() {
    let check = format!("check {CONTROLS} --entry scanned_table");
    let one_warp = format!("{check} {ONE_WARP}");
    for (args, expected) in [
        (String::new(), "Usage"),
        ("list".to_owned(), "<FILE>"),
        (
            check.clone(),
            "parameter 0 (u64, scanned_table_param_0) needs --arg 0=NUMBER or --buffer 0=CONTENTS",
        ),
        (format!("check {CONTROLS}"), "say which with --entry"),
        (
            format!("check {CONTROLS} --entry nothing"),
            "no entry point `nothing`",
        ),
        (format!("{one_warp} --buffer 5=out:8"), "has 5 parameters"),
        (
            format!("{one_warp} --buffer 4=out:8"),
            "--buffer 4 is there twice",
        ),
        (
            format!("{one_warp} --arg 4=8"),
            "parameter 4 has both --arg and --buffer",
        ),
        (
            format!("{one_warp} --secret 0"),
            "an `out` buffer holds nothing yet",
        ),
        (
            format!("{one_warp} --secret 9"),
            "parameter 9 has no --buffer",
        ),
        (
            format!("{one_warp} --wiped 9"),
            "parameter 9 has no --buffer",
        ),
        (format!("{one_warp} --wiped all"), "or `shared`"),
        (
            format!("{one_warp} --threads 33"),
            "a multiple of 32, not 33",
        ),
        (format!("{one_warp} --threads 2048"), "not 2048"),
        (format!("{one_warp} --threads 0"), "--threads"),
        (format!("{one_warp} --blocks 0"), "--blocks"),
        (
            format!("{one_warp} --shared-bytes 18446744073709551615"),
            "bytes of shared memory",
        ),
        (format!("{check} --buffer 0"), "there is no `=`"),
        (format!("{check} --buffer x=out:8"), "a parameter's number"),
        (format!("{check} --buffer 0=out"), "no number of bytes"),
        (
            format!("{check} --buffer 0=secret:8"),
            "out:BYTES, zero:BYTES, random:BYTES or file:PATH",
        ),
        (format!("{check} --buffer 0=file:"), "file:PATH"),
        (format!("{check} --arg 0=seven"), "no number of 64 bits"),
        (
            format!("{check} --arg 0=0x10000000000000000"),
            "no number of 64 bits",
        ),
        (
            format!("{check} --buffer 0=zero:18446744073709551615"),
            "more than 268435456 bytes",
        ),
        (
            format!("{check} --buffer 0=random:99999999999"),
            "more than 268435456 bytes",
        ),
        (
            format!("{check} --buffer 0=out:268435457"),
            "more than 268435456 bytes",
        ),
        (
            format!("{check} --buffer 0=file:/dev/zero"),
            "more than 268435456 bytes",
        ),
        (
            format!("{check} --buffer 0=file:/no/such/file"),
            "cannot read /no/such/file",
        ),
    ] {
        refused(&args, expected);
    }
}

#[test]
fn files_that_are_no_ptx() {
    let folder = tempfile::tempdir().unwrap();
    let ptx = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(CONTROLS)).unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    for (path, expected) in [
        (file("empty", b""), "there is no entry point"),
        (
            file("binary", &[0x7f, b'E', b'L', b'F', 0xff, 0]),
            "this is no text",
        ),
        (
            file("words", b"these are words"),
            "the text ends before this does",
        ),
        (
            file("words;", b"these are words;"),
            "line 1: this belongs to nothing",
        ),
        (
            file("truncated", &ptx[..ptx.len() / 2]),
            "the text ends before this does",
        ),
        (folder.path().display().to_string(), "cannot read"),
        ("/dev/zero".to_owned(), "more than 16777216 bytes"),
    ] {
        refused(&format!("list {path}"), expected);
        refused(&format!("check {path}"), expected);
    }

    // An unsupported entry point does not affect the others.
    let mixed = file(
        "mixed",
        b".entry good() { ret; }\n.entry bad() {\n.reg .f32 %f<3>;\nadd.f32 %f1, %f2, %f2;\nret; }",
    );
    let (status, text) = result(&run(&format!("list {mixed}")));
    assert!(
        status == 0
            && text
                .contains("cannot be checked: line 4: this instruction is not supported: add.f32"),
        "{text}"
    );
    refused(
        &format!("check {mixed} --entry bad"),
        "line 4: this instruction is not supported: add.f32 %f1, %f2, %f2",
    );
    assert_eq!(
        run(&format!("check {mixed} --entry good")).status.code(),
        Some(0)
    );
}

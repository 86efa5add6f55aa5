//! Invalid input: one clear line, exit status 2, and no output file.

use std::path::Path;

use super::program::{key, run_with_input, run_without_gpu, stderr};

/// Runs with `args` in an empty folder, and expects a line that contains all of `words`.
pub fn refused_with_line(args: &[&str], words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let output = run_without_gpu(folder.path(), args, b"a\nb\n");
    let line = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
    assert!(line.starts_with("error: "), "{args:?}: {line}");
    for word in words {
        assert!(line.contains(word), "{args:?}: no {word:?} in {line}");
    }
    assert_eq!(output.stdout, b"", "{args:?}");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "{args:?}: a file was left"
    );
}

/// Like [`refused_with_line`], with an output file.
fn refused(args: &[&str], words: &[&str]) {
    refused_with_line(&[args, &["--output", "signatures"]].concat(), words);
}

/// Writes `pem` to a file, signs with it, and expects a refusal.
fn refused_key(pem: &str, words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.pem");
    std::fs::write(&path, pem).unwrap();
    refused(&["--key", path.to_str().unwrap(), "--input", "-"], words);
}

fn pem(name: &str) -> String {
    std::fs::read_to_string(key(name)).unwrap()
}

#[test]
fn options() {
    refused(&["--frobnicate"], &["--frobnicate"]);
    refused(&["--scheme", "oaep"], &["oaep", "pkcs1v15", "pss"]);
    refused(&["--hash", "md5"], &["md5", "sha512"]);
    refused(&["--backend", "abacus"], &["abacus", "parallel"]);
    refused(&["--batch-size", "0"], &["--batch-size", "at least 1"]);
    refused(&["--flush-after", "soon"], &["--flush-after"]);
    refused(&["--threads", "-1"], &["-1"]);
    refused(&["--key"], &["--key"]);
    refused(&["stray"], &["stray"]);
    refused(&["--input", "-"], &["--key"]);
    // A key is for signing: without messages nothing is signed, so nothing may seem to succeed.
    refused(&["--key", "k"], &["--input is missing", "sign_batch bench"]);
    refused(
        &["--key", "k", "--scheme", "pss", "--quiet"],
        &["--input is missing"],
    );
    refused(&["--key=k", "--json"], &["--input is missing"]);
    refused(&[], &["--key and --input are missing", "sign_batch bench"]);
    refused(&["--passphrase-file", "p"], &["--key"]);
    let key = key("rsa1024");
    refused(
        &["--input", "-", "--key", &key, "--count", "3"],
        &["--count goes with `sign_batch bench`"],
    );
    refused(
        &[
            "--input",
            "-",
            "--key",
            &key,
            "--backend",
            "serial",
            "--threads",
            "2",
        ],
        &["serial", "one thread"],
    );
}

#[test]
fn options_of_bench_and_verify() {
    let refused = |command: &str, args: &[&str], words: &[&str]| {
        refused_with_line(&[&[command], args].concat(), words);
    };
    refused("bench", &["--bits", "512"], &["512", "1024"]);
    refused("bench", &["--bits", "9000"], &["9000", "8192"]);
    refused("bench", &["--count", "0"], &["--count"]);
    refused("bench", &["--input", "-"], &["--input"]);
    refused(
        "bench",
        &["--key", "k", "--bits", "2048"],
        &["--bits", "--key"],
    );
    refused("bench", &["--passphrase-file", "p"], &["--key"]);
    refused("bench", &["--key", "no/such/key"], &["no/such/key"]);
    refused("verify", &[], &["--key", "--input", "--signatures"]);
    refused("verify", &["--key", "k", "--input", "-"], &["--signatures"]);
    let two = ["--key", "k", "--input", "-", "--signatures", "-"];
    refused(
        "verify",
        &two,
        &["--input and --signatures", "standard input"],
    );
    let missing = ["--input", "-", "--signatures", "no/such/signatures"];
    let key = key("rsa1024");
    refused(
        "verify",
        &[&["--key", &key], &missing[..]].concat(),
        &["no/such/signatures"],
    );
}

/// Starting 10,000 threads takes a minute.
#[test]
fn too_many_threads() {
    let key = key("rsa1024");
    let words = ["--threads 10000 is too many", "at most"];
    let threads = ["--threads", "10000"];
    let sign = ["--key", &key, "--input", "-"];
    refused(&[&sign, &threads[..]].concat(), &words);
    refused(
        &[&sign[..], &["--backend", "cuda"], &threads[..]].concat(),
        &words,
    );
    refused_with_line(&[&["bench"], &threads[..]].concat(), &words);
    let verify = ["verify", "--key", &key, "--input", "-", "--signatures", "s"];
    refused_with_line(&[&verify, &threads[..]].concat(), &words);
}

#[test]
fn gpus_that_are_not_there() {
    for options in [
        &["--backend", "cuda"][..],
        &["--device", "0"],
        &["--backend", "cuda", "--device", "1000"],
    ] {
        let key = key("rsa1024");
        let args = [&["--key", &key, "--input", "-"], options].concat();
        refused(&args, &["no GPU can be used"]);
        refused_with_line(&[&["bench"], options].concat(), &["no GPU can be used"]);
    }
}

#[test]
fn calibrations_that_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let other = b"batch-modexp calibration 1\nkernels 0\nsum 0\n";
    let cases = [
        (
            "no/such/calibration".into(),
            "cannot read no/such/calibration",
        ),
        (file("empty", b""), "line 1 "),
        (file("binary", b"\xff\xfe"), "binary"),
        (
            file("garbled", b"batch-modexp calibration 1\nkernels x\n"),
            "line 2 ",
        ),
        (file("other", other), "the kernels of another version"),
    ];
    for (path, word) in cases {
        let options = ["--calibration", &path];
        refused(
            &[&["--key", &key("rsa1024"), "--input", "-"], &options[..]].concat(),
            &[word],
        );
        refused_with_line(&[&["bench"], &options[..]].concat(), &[word]);
        let on_cpu = [&["bench", "--backend", "cpu"], &options[..]].concat();
        refused_with_line(&on_cpu, &["--calibration goes with"]);
    }
}

#[test]
fn two_things_on_standard_output() {
    let args = ["--key", &key("rsa1024"), "--input", "-", "--json"];
    let output = run_with_input(&args, b"a\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--output"));
    assert_eq!(output.stdout, b"");
}

#[test]
fn files_that_cannot_be_read_or_written() {
    let key = key("rsa1024");
    refused(&["--key", "no/such/key", "--input", "-"], &["no/such/key"]);
    refused(&["--key", ".", "--input", "-"], &["cannot read ."]);
    refused(
        &["--key", &key, "--input", "no/such/messages"],
        &["no/such/messages"],
    );
    refused(&["--key", &key, "--input", "."], &["cannot read ."]);
    for path in ["no/such/folder/signatures", "."] {
        let output = run_with_input(&["--key", &key, "--input", "-", "--output", path], b"a\n");
        assert_eq!(output.status.code(), Some(2));
        assert!(
            stderr(&output).contains(&format!("cannot write {path}")),
            "{}",
            stderr(&output)
        );
        assert!(!Path::new("no").exists());
    }
}

#[test]
fn keys_that_are_no_rsa_private_keys() {
    refused_key("", &["the file is empty"]);
    refused_key("hello", &["neither in PEM nor in DER"]);
    refused_key("-----BEGIN ", &["damaged PEM", "header"]);
    refused_key(
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        &["public key", "private key"],
    );
    refused_key(
        "-----BEGIN RSA PUBLIC KEY-----\nAAAA\n-----END RSA PUBLIC KEY-----\n",
        &["public key"],
    );
    refused_key(
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        &["certificate"],
    );
    refused_key(
        "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n",
        &["EC PRIVATE KEY"],
    );
    refused_key(&pem("rsa1024")[..400], &["damaged PEM"]);
    refused_key(&pem("ed25519"), &["not an RSA key"]);
}

#[test]
fn encrypted_keys() {
    refused_key(&pem("encrypted-pkcs1"), &["encrypted in the old way"]);
    refused_key(&pem("encrypted-pkcs8"), &["encrypted", "--passphrase-file"]);
}

#[test]
fn keys_of_a_size_that_is_not_supported() {
    refused_key(&pem("rsa1016"), &["1016 bits", "1024 to 8192"]);
    refused_key(&pem("rsa8200"), &["8200 bits", "1024 to 8192"]);
}

#[test]
fn keys_that_are_too_short_for_the_hash() {
    let args = [
        "--key",
        &key("rsa1024"),
        "--input",
        "-",
        "--scheme",
        "pss",
        "--hash",
        "sha512",
    ];
    refused(&args, &["1024 bits", "1034"]);
}

/// An inconsistent key, with each of its eight numbers wrong in turn.
#[test]
fn keys_that_do_not_match_themselves() {
    for part in ["n", "e", "d", "p", "q", "dp", "dq", "qinv"] {
        refused_key(
            &pem(&format!("mismatch-{part}")),
            &["do not belong together"],
        );
    }
}

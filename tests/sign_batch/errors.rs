//! Bad input: one clear line, exit status 2, and no output file.

use std::path::Path;

use super::program::{key, run_with_input, run_without_gpu, stderr};

/// Runs with `args` plus an output file and expects a line that contains all of `words`.
fn refused(args: &[&str], words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder
        .path()
        .join("signatures")
        .to_str()
        .unwrap()
        .to_owned();
    let output = run_without_gpu(&[args, &["--output", &path]].concat(), b"a\nb\n");
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

/// Writes `pem` to a file and signs with it.
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
    refused(&["--bits", "512"], &["512", "1024"]);
    refused(&["--bits", "9000"], &["9000", "8192"]);
    refused(&["--count", "0"], &["--count"]);
    refused(&["--batch-size", "0"], &["--batch-size"]);
    refused(&["--threads", "-1"], &["-1"]);
    refused(&["--key"], &["--key"]);
    refused(&["stray"], &["stray"]);
    refused(&["--input", "-"], &["--key"]);
    refused(
        &["--input", "-", "--key", &key("rsa1024"), "--count", "3"],
        &["--count", "--input"],
    );
    refused(
        &["--key", &key("rsa1024"), "--bits", "2048"],
        &["--bits", "--key"],
    );
    refused(
        &["--backend", "serial", "--threads", "2"],
        &["serial", "one thread"],
    );
}

#[test]
fn gpus_that_are_not_there() {
    refused(&["--backend", "cuda"], &["no GPU can be used"]);
    refused(&["--device", "0"], &["no GPU can be used"]);
    refused(
        &["--backend", "cuda", "--device", "1000"],
        &["no GPU can be used"],
    );
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
    refused(&["--key", "no/such/key"], &["no/such/key"]);
    refused(&["--key", "."], &["cannot read ."]);
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
    refused_key("", &["not a PEM file"]);
    refused_key("hello", &["not a PEM file"]);
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
    refused_key(&pem("encrypted-pkcs1"), &["encrypted", "decrypt it first"]);
    refused_key(&pem("encrypted-pkcs8"), &["encrypted", "decrypt it first"]);
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

/// A key that does not match itself, whichever of its eight numbers is the wrong one.
#[test]
fn keys_that_do_not_match_themselves() {
    for part in ["n", "e", "d", "p", "q", "dp", "dq", "qinv"] {
        refused_key(
            &pem(&format!("mismatch-{part}")),
            &["do not belong together"],
        );
    }
}

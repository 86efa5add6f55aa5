//! Keys made by OpenSSL, and signatures checked by OpenSSL.

use std::path::Path;
use std::process::Command;

use data_encoding::HEXLOWER;

use super::{need, program};

/// Messages for each key and scheme.
const COUNT: usize = 200;

fn openssl(args: &[&str]) -> bool {
    let output = Command::new("openssl").args(args).output().unwrap();
    output.status.success()
}

fn is_installed() -> bool {
    let version = Command::new("openssl").arg("version").output();
    need::available("openssl", version).is_some()
}

/// Makes a key, signs `COUNT` messages with it, and has every signature checked.
fn round_trip(bits: &str, scheme: &str, options: &[&str]) {
    if !is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (key, public_key) = (path("key.pem"), path("public.pem"));
    assert!(openssl(&["genrsa", "-out", &key, bits]));
    assert!(openssl(&[
        "rsa",
        "-in",
        &key,
        "-pubout",
        "-out",
        &public_key
    ]));

    let messages: Vec<String> = (0..COUNT).map(|i| format!("{scheme} {bits} {i}")).collect();
    let (input, output) = (path("messages.txt"), path("signatures.txt"));
    std::fs::write(&input, messages.join("\n")).unwrap();
    let args = [
        "--key", &key, "--input", &input, "--output", &output, "--scheme", scheme,
    ];
    program::stdout(&program::run(&args));

    let text = std::fs::read_to_string(&output).unwrap();
    let signatures: Vec<Vec<u8>> = text
        .lines()
        .map(|line| HEXLOWER.decode(line.as_bytes()).unwrap())
        .collect();
    assert_eq!(signatures.len(), COUNT);
    let accepts = |thread: usize, message: &str, signature: &[u8]| {
        let (message_file, signature_file) = (
            path(&format!("message-{thread}")),
            path(&format!("signature-{thread}")),
        );
        std::fs::write(&message_file, message).unwrap();
        std::fs::write(&signature_file, signature).unwrap();
        let fixed = [
            "dgst",
            "-sha256",
            "-verify",
            &public_key,
            "-signature",
            &signature_file,
        ];
        openssl(&[&fixed[..], options, &[&message_file]].concat())
    };
    assert!(Path::new(&public_key).exists());
    assert!(
        !accepts(0, "another message", &signatures[0]),
        "openssl accepts anything"
    );
    std::thread::scope(|scope| {
        for (thread, (messages, signatures)) in messages
            .chunks(COUNT / 2)
            .zip(signatures.chunks(COUNT / 2))
            .enumerate()
        {
            scope.spawn(move || {
                for (message, signature) in messages.iter().zip(signatures) {
                    assert!(
                        accepts(thread, message, signature),
                        "{message:?} is not accepted"
                    );
                }
            });
        }
    });
}

const PSS: &[&str] = &["-sigopt", "rsa_padding_mode:pss"];

#[test]
fn pkcs1v15_2048() {
    round_trip("2048", "pkcs1v15", &[]);
}

#[test]
fn pkcs1v15_3072() {
    round_trip("3072", "pkcs1v15", &[]);
}

#[test]
fn pkcs1v15_4096() {
    round_trip("4096", "pkcs1v15", &[]);
}

#[test]
fn pss_2048() {
    round_trip("2048", "pss", PSS);
}

#[test]
fn pss_3072() {
    round_trip("3072", "pss", PSS);
}

#[test]
fn pss_4096() {
    round_trip("4096", "pss", PSS);
}

/// A message for each hash function of `--hash`; OpenSSL uses the same names.
#[test]
fn every_hash() {
    if !is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let key = concat!(env!("CARGO_MANIFEST_DIR"), "/../keys/rsa2048.pem");
    let [public, message, output, signature] = ["public", "message", "output", "file"].map(path);
    assert!(openssl(&["rsa", "-in", key, "-pubout", "-out", &public]));
    std::fs::write(&message, "m").unwrap();
    for hash in [
        "sha224",
        "sha256",
        "sha384",
        "sha512",
        "sha512-224",
        "sha512-256",
        "sha3-224",
        "sha3-256",
        "sha3-384",
        "sha3-512",
    ] {
        for (scheme, padding) in [("pkcs1v15", "pkcs1"), ("pss", "pss")] {
            let args = [
                "--key", key, "--input", &message, "--output", &output, "--scheme", scheme,
                "--hash", hash,
            ];
            program::stdout(&program::run(&args));
            let line = std::fs::read_to_string(&output).unwrap();
            std::fs::write(&signature, HEXLOWER.decode(line.trim().as_bytes()).unwrap()).unwrap();
            let (digest, padding) = (format!("-{hash}"), format!("rsa_padding_mode:{padding}"));
            let verify = [
                "dgst",
                &digest,
                "-verify",
                &public,
                "-signature",
                &signature,
            ];
            let options = ["-sigopt", &padding, &message];
            assert!(
                openssl(&[&verify[..], &options].concat()),
                "{scheme} {hash}"
            );
        }
    }
}

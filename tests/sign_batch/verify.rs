//! Digests as input, and the check of signature files.

use chacha20::ChaCha8Rng;
use data_encoding::HEXLOWER;
use rand_core::SeedableRng;
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pss::SigningKey;
use rsa::sha2::{Digest, Sha256, Sha384};
use rsa::signature::{RandomizedSigner, SignatureEncoding};

use super::behaviour::expected;
use super::errors::refused_with_line;
use super::program::{key, run, run_with_input, stderr, stdout};

const MESSAGES: [&[u8]; 5] = [b"one", b"two", b"", b"four", b"five"];

/// Files to check.
struct Files(tempfile::TempDir);

impl Files {
    /// Messages and their signatures.
    fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.write("messages", &(MESSAGES.join(&b'\n')));
        files.write(
            "signatures",
            expected("rsa1024", &MESSAGES).join("\n").as_bytes(),
        );
        files
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// Arguments that check the file `signatures`.
    fn args(&self, options: &[&str]) -> Vec<String> {
        let (messages, signatures) = (self.path("messages"), self.path("signatures"));
        let fixed = ["verify", "--key", &key("rsa1024"), "--input", &messages];
        [&fixed[..], &["--signatures", &signatures], options]
            .concat()
            .into_iter()
            .map(String::from)
            .collect()
    }

    fn accepts(&self, options: &[&str]) {
        let args = self.args(options);
        let output = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(stdout(&output), "");
        assert!(stderr(&output).starts_with("all "), "{}", stderr(&output));
    }

    /// Expects `lines` on standard output and status 1.
    fn rejects(&self, options: &[&str], lines: &[&str]) {
        let args = self.args(options);
        let output = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
        let words = format!("error: {} of ", lines.len());
        assert!(stderr(&output).starts_with(&words), "{}", stderr(&output));
    }
}

#[test]
fn no_signatures() {
    let files = Files::new();
    files.write("messages", b"");
    files.write("signatures", b"");
    let args = files.args(&[]);
    let output = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(
        stderr(&output),
        "error: there are no signatures to verify\n"
    );
    assert_eq!(output.status.code(), Some(2));
}

/// Signatures by the `rsa` crate with salts of 20 octets, and no salt.
#[test]
fn salts_of_any_length() {
    let files = Files::new();
    let pem = std::fs::read_to_string(key("rsa1024")).unwrap();
    let private = PrivateKey::from_pkcs1_pem(&pem).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for salt_len in [20, 0] {
        let signer = SigningKey::<Sha256>::new_with_salt_len(private.clone(), salt_len);
        let signature =
            |message: &&[u8]| HEXLOWER.encode(&signer.sign_with_rng(&mut rng, message).to_vec());
        let lines: Vec<_> = MESSAGES.iter().map(signature).collect();
        files.write("signatures", lines.join("\n").as_bytes());
        files.accepts(&["--scheme", "pss", "--any-salt"]);
        let fault = |line| format!("line {line}: the signature is not valid");
        let faults: Vec<_> = (1..=MESSAGES.len()).map(fault).collect();
        let faults: Vec<_> = faults.iter().map(String::as_str).collect();
        files.rejects(&["--scheme", "pss"], &faults);
    }
    let args = files.args(&["--any-salt"]);
    let output = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output), "error: --any-salt is for --scheme pss\n");
}

#[test]
fn good_signatures() {
    let files = Files::new();
    files.accepts(&[]);
    files.accepts(&["--threads", "1"]);
    let args = files.args(&["--quiet"]);
    let output = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(
        (stdout(&output), stderr(&output)),
        (String::new(), String::new())
    );
    files.write(
        "signatures",
        expected("rsa1024", &MESSAGES)
            .join("\n")
            .to_uppercase()
            .as_bytes(),
    );
    files.accepts(&[]);
}

#[test]
fn the_lines_that_fail_are_listed() {
    let files = Files::new();
    let mut signatures = expected("rsa1024", &MESSAGES);
    signatures.swap(0, 1);
    signatures[3].push('g');
    signatures[4].truncate(254);
    files.write("signatures", signatures.join("\n").as_bytes());
    files.rejects(
        &[],
        &[
            "line 1: the signature is not valid",
            "line 2: the signature is not valid",
            "line 4: the signature is not in hexadecimal",
            "line 5: the signature has 127 bytes, and the key's have 128",
        ],
    );
}

#[test]
fn files_of_different_length() {
    let files = Files::new();
    files.write("messages", &MESSAGES[..4].join(&b'\n'));
    files.rejects(&[], &["line 5: there is no message"]);
    let files = Files::new();
    files.write(
        "signatures",
        expected("rsa1024", &MESSAGES[..3]).join("\n").as_bytes(),
    );
    files.rejects(
        &[],
        &[
            "line 4: there is no signature",
            "line 5: there is no signature",
        ],
    );
}

#[test]
fn another_key_scheme_or_hash() {
    let files = Files::new();
    let of_all =
        |fault: &str| -> Vec<_> { (1..=5).map(|i| format!("line {i}: {fault}")).collect() };
    let all = of_all("the signature is not valid");
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    files.rejects(&["--scheme", "pss"], &all);
    files.rejects(&["--hash", "sha512"], &all);
    let messages = files.path("messages");
    let signatures = files.path("signatures");
    let other = ["verify", "--key", &key("rsa2048"), "--input", &messages];
    let output = run(&[&other[..], &["--signatures", &signatures]].concat());
    assert_eq!(output.status.code(), Some(1));
    files.rejects(
        &["--encoding", "base64", "--threads", "3"],
        // Hexadecimal digits are also valid base64.
        &of_all("the signature has 192 bytes, and the key's have 128")
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>(),
    );
}

/// Signatures are accepted, whatever the options.
#[test]
fn round_trips() {
    let files = Files::new();
    let (messages, signatures) = (files.path("messages"), files.path("signatures"));
    for options in [
        &["--scheme", "pss"][..],
        &["--hash", "sha384"],
        &[
            "--scheme",
            "pss",
            "--hash",
            "sha384",
            "--encoding",
            "base64",
        ],
    ] {
        let fixed = ["--key", &key("rsa1024"), "--input", &messages];
        let output = ["--output", &signatures];
        stdout(&run(&[&fixed[..], &output, options].concat()));
        files.accepts(options);
    }
}

#[test]
fn digests() {
    let lines = MESSAGES.map(|message| data_encoding::HEXUPPER.encode(&Sha256::digest(message)));
    let args = ["--key", &key("rsa1024"), "--input", "-", "--prehashed"];
    let text = stdout(&run_with_input(&args, lines.join("\n").as_bytes()));
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        expected("rsa1024", &MESSAGES)
    );

    let files = Files::new();
    files.write("messages", lines.join("\n").as_bytes());
    files.accepts(&["--prehashed"]);
}

/// PSS has a salt besides the digest.
#[test]
fn digests_with_pss() {
    let files = Files::new();
    let digests = MESSAGES.map(|message| HEXLOWER.encode(&Sha384::digest(message)));
    let options = ["--scheme", "pss", "--hash", "sha384"];
    let args = ["--key", &key("rsa1024"), "--input", "-", "--prehashed"];
    let args = [&args[..], &options].concat();
    let text = stdout(&run_with_input(&args, digests.join("\n").as_bytes()));
    files.write("signatures", text.as_bytes());
    // The messages themselves.
    files.accepts(&options);
}

#[test]
fn lines_that_are_no_digests() {
    let digest = "0".repeat(64);
    for (text, line) in [
        ("00\n".into(), 1),
        (format!("{digest}\n\n"), 2),
        (format!("{digest}\n{digest} file\n"), 2),
        (format!("{digest}\r\r\n"), 1),
        (format!("{digest}\n\r\n"), 2),
        (format!("{digest}00\n"), 1),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("digests");
        std::fs::write(&path, text).unwrap();
        let args = ["--key", &key("rsa1024"), "--input", path.to_str().unwrap()];
        let words = [
            &format!("line {line} of "),
            "no SHA-256 digest",
            "64 hexadecimal digits",
        ];
        let whole = ["--output", "signatures", "--prehashed"];
        refused_with_line(&[&args[..], &whole].concat(), &words);
    }
}

/// Public data is enough.
#[test]
fn public_keys() {
    use rsa::pkcs1::{DecodeRsaPrivateKey, EncodeRsaPublicKey};
    use rsa::pkcs8::{EncodePublicKey, LineEnding};

    let pem = std::fs::read_to_string(key("rsa1024")).unwrap();
    let public = PrivateKey::from_pkcs1_pem(&pem).unwrap().to_public_key();
    let files = Files::new();
    let (messages, signatures) = (files.path("messages"), files.path("signatures"));
    for (name, bytes) in [
        (
            "spki.pem",
            public
                .to_public_key_pem(LineEnding::LF)
                .unwrap()
                .into_bytes(),
        ),
        ("spki.der", public.to_public_key_der().unwrap().into_vec()),
        (
            "pkcs1.pem",
            public.to_pkcs1_pem(LineEnding::CRLF).unwrap().into_bytes(),
        ),
        ("pkcs1.der", public.to_pkcs1_der().unwrap().into_vec()),
    ] {
        let fixed = [
            "verify",
            "--key",
            "-",
            "--input",
            &messages,
            "--signatures",
            &signatures,
        ];
        let output = run_with_input(&fixed, &bytes);
        assert_eq!(stdout(&output), "", "{name}");
        assert_eq!(stderr(&output), "all 5 signatures are valid\n", "{name}");
    }
    let two = public.to_public_key_pem(LineEnding::LF).unwrap().repeat(2);
    files.write("two", two.as_bytes());
    let args = ["verify", "--key", &files.path("two"), "--input", &messages];
    refused_with_line(
        &[&args[..], &["--signatures", &signatures]].concat(),
        &["2 public keys"],
    );
}

/// As from editors and transfers between systems, with and without an ending on the last line.
#[test]
fn signatures_in_lines_that_end_with_crlf() {
    let files = Files::new();
    let hexadecimal = expected("rsa1024", &MESSAGES);
    let base64 = hexadecimal.iter().map(|line| {
        let signature = HEXLOWER.decode(line.as_bytes()).unwrap();
        data_encoding::BASE64.encode(&signature)
    });
    let base64: Vec<_> = base64.collect();
    for (encoding, lines) in [("hex", &hexadecimal), ("base64", &base64)] {
        for end in ["", "\r", "\r\n"] {
            let text = lines.join("\r\n") + end;
            files.write("signatures", text.as_bytes());
            files.accepts(&["--encoding", encoding]);
        }
    }

    let damaged = format!("{}\r", hexadecimal.join("\r\n").replacen('\r', "\r\r", 1));
    files.write("signatures", damaged.as_bytes());
    files.rejects(&[], &["line 1: the signature is not in hexadecimal"]);
}

/// A carriage return at the end of a message is signed.
#[test]
fn messages_keep_their_carriage_returns() {
    let files = Files::new();
    files.write(
        "messages",
        &[&MESSAGES.join(&b"\r\n"[..])[..], b"\r\n"].concat(),
    );
    let all: Vec<_> = (1..=5)
        .map(|i| format!("line {i}: the signature is not valid"))
        .collect();
    files.rejects(&[], &all.iter().map(String::as_str).collect::<Vec<_>>());

    let with_return = MESSAGES.map(|message| [message, b"\r"].concat());
    let signatures = expected("rsa1024", &with_return.each_ref().map(Vec::as_slice));
    files.write("signatures", signatures.join("\r\n").as_bytes());
    files.accepts(&[]);
}

#[test]
fn digests_in_lines_that_end_with_crlf() {
    let lines = MESSAGES.map(|message| HEXLOWER.encode(&Sha256::digest(message)));
    let args = ["--key", &key("rsa1024"), "--input", "-", "--prehashed"];
    let files = Files::new();
    for end in ["", "\r", "\r\n"] {
        let text = lines.join("\r\n") + end;
        let signed = stdout(&run_with_input(&args, text.as_bytes()));
        assert_eq!(
            signed.lines().collect::<Vec<_>>(),
            expected("rsa1024", &MESSAGES),
            "{end:?}"
        );
        files.write("messages", text.as_bytes());
        files.accepts(&["--prehashed"]);
    }
}

//! Output of the program for valid input.

use data_encoding::{BASE64, HEXLOWER};
use rsa::PrivateKey;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::sha2::{Sha256, Sha384};
use rsa::signature::{SignatureEncoding, Signer, Verifier};
use rsa::{pkcs1v15, pss};
use serde_json::Value;

use super::program::{key, run, run_with_input, stderr, stdout};

fn rsa_key(name: &str) -> PrivateKey {
    PrivateKey::from_pkcs1_pem(&std::fs::read_to_string(key(name)).unwrap()).unwrap()
}

/// The signatures that the `rsa` crate makes, in hexadecimal.
pub fn expected(name: &str, messages: &[&[u8]]) -> Vec<String> {
    let signing_key = pkcs1v15::SigningKey::<Sha256>::new(rsa_key(name));
    messages
        .iter()
        .map(|message| HEXLOWER.encode(&signing_key.sign(message).to_bytes()))
        .collect()
}

#[test]
fn every_line_is_a_message() {
    let cases: [(&[u8], &[&[u8]]); 6] = [
        (b"", &[]),
        (b"\n", &[b""]),
        (b"one\ntwo\n", &[b"one", b"two"]),
        (b"one\n\n\nlast", &[b"one", b"", b"", b"last"]),
        (b"carriage\r\nreturn\r\n", &[b"carriage\r", b"return\r"]),
        (b"any \x00\xff byte\n", &[b"any \x00\xff byte"]),
    ];
    for (input, messages) in cases {
        let output = run_with_input(&["--key", &key("rsa1024"), "--input", "-"], input);
        let lines: Vec<_> = stdout(&output).lines().map(String::from).collect();
        assert_eq!(lines, expected("rsa1024", messages), "{input:?}");
        assert_eq!(
            stderr(&output).lines().count(),
            1,
            "one line of summary, no progress bar"
        );
    }
}

#[test]
fn the_same_signatures_for_every_backend_batch_size_and_number_of_threads() {
    let input: Vec<u8> = (0..40)
        .flat_map(|i| format!("message {i}\n").into_bytes())
        .collect();
    let (name, messages) = (
        "rsa1024",
        input.split(|byte| *byte == b'\n').collect::<Vec<_>>(),
    );
    let expected = expected(name, &messages[..40]);
    for options in [
        &["--backend", "serial"][..],
        &["--backend", "serial", "--threads", "1"],
        &[
            "--backend",
            "parallel",
            "--threads",
            "3",
            "--batch-size",
            "7",
        ],
        &["--backend", "parallel", "--batch-size", "1000000"],
        &["--backend", "cpu", "--threads", "2"],
        &["--batch-size", "1"],
        &["--no-blinding", "--no-verify"],
    ] {
        let key = key(name);
        let args = [&["--key", &key, "--input", "-", "--quiet"], options].concat();
        let output = run_with_input(&args, &input);
        assert_eq!(
            stdout(&output).lines().collect::<Vec<_>>(),
            expected,
            "{options:?}"
        );
        assert_eq!(stderr(&output), "", "--quiet");
    }
}

#[test]
fn pss_base64_and_pkcs8() {
    let args = [
        "--key",
        &key("rsa2048-pkcs8"),
        "--input",
        "-",
        "--scheme",
        "pss",
        "--hash",
        "sha384",
    ];
    let output = run_with_input(
        &[&args[..], &["--encoding", "base64"]].concat(),
        b"hello\nworld\n",
    );
    let pem = std::fs::read_to_string(key("rsa2048-pkcs8")).unwrap();
    let private_key: PrivateKey = pkcs8::DecodePrivateKey::from_pkcs8_pem(&pem).unwrap();
    let verifier = pss::VerifyingKey::<Sha384>::new(private_key.to_public_key());
    let text = stdout(&output);
    assert_eq!(text.lines().count(), 2);
    for (message, line) in ["hello", "world"].iter().zip(text.lines()) {
        let signature = BASE64.decode(line.as_bytes()).unwrap();
        verifier
            .verify(
                message.as_bytes(),
                &signature.as_slice().try_into().unwrap(),
            )
            .unwrap();
    }
}

#[test]
fn a_file_is_written_whole_and_replaces_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (
        folder.path().join("messages"),
        folder.path().join("signatures"),
    );
    std::fs::write(&input, "a\nb\n").unwrap();
    std::fs::write(&output, "old").unwrap();
    let [input, output] = [input, output].map(|path| path.to_str().unwrap().to_owned());
    let args = [
        "--key",
        &key("rsa1024"),
        "--input",
        &input,
        "--output",
        &output,
    ];
    assert_eq!(stdout(&run(&args)), "");
    let text = std::fs::read_to_string(&output).unwrap();
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        expected("rsa1024", &[b"a", b"b"])
    );
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        2,
        "no temporary file is left"
    );
}

#[test]
#[cfg(unix)]
fn a_device_is_written_to_and_not_replaced() {
    let args = [
        "--key",
        &key("rsa1024"),
        "--input",
        "-",
        "--output",
        "/dev/null",
        "--quiet",
    ];
    assert_eq!(stdout(&run_with_input(&args, b"a\n")), "");
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn bench_prints_a_table() {
    let output = run(&[
        "bench",
        "--bits",
        "1024",
        "--count",
        "20",
        "--threads",
        "2",
        "--batch-size",
        "8",
    ]);
    let text = stdout(&output);
    assert!(
        text.starts_with("20 signatures, RSA-1024 PKCS#1 v1.5 SHA-256, in batches of 8"),
        "{text}"
    );
    for row in [
        "rsa crate, one by one, 1 thread ",
        "rsa crate, one by one, 2 threads",
        "batch-modexp, ",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(row)),
            "no {row:?} in\n{text}"
        );
    }
    assert_eq!(stderr(&output), "", "no progress bar in a pipe");
}

/// Options without a subcommand and without messages belong to `bench`.
#[test]
fn bench_needs_no_name() {
    let args = ["--bits", "1024", "--count", "3", "--backend", "serial"];
    let text = stdout(&run(&args));
    assert!(text.starts_with("3 signatures, RSA-1024"), "{text}");
    let key = key("rsa1024");
    let text = stdout(&run(&["--key", &key, "--count", "2"]));
    assert!(text.starts_with("2 signatures, RSA-1024"), "{text}");
}

#[test]
fn json_is_one_object() {
    let object = |args: &[&str]| -> Value {
        let key = key("rsa1024");
        let all = [args, &["--key", &key, "--json"]].concat();
        serde_json::from_str(&stdout(&run_with_input(&all, b"a\nb\nc\n"))).unwrap()
    };
    let generated = object(&[
        "bench",
        "--count",
        "9",
        "--backend",
        "serial",
        "--scheme",
        "pss",
    ]);
    for (name, expected) in [
        ("backend", Value::from("serial")),
        ("scheme", "pss".into()),
        ("bits", 1024.into()),
        ("count", 9.into()),
        ("batch_size", 256.into()),
        ("threads", 1.into()),
        ("verified", "all".into()),
        ("blinding", true.into()),
    ] {
        assert_eq!(generated[name], expected, "{name}");
    }
    let [rate, seconds] =
        ["signatures_per_second", "seconds"].map(|name| generated[name].as_f64().unwrap());
    assert!((rate * seconds - 9.0).abs() < 1e-6);
    assert_eq!(generated["rsa_one_by_one"][0]["threads"], 1);

    let lines = object(&[
        "--input",
        "-",
        "--output",
        "/dev/null",
        "--threads",
        "2",
        "--no-verify",
        "--no-blinding",
    ]);
    assert_eq!((&lines["count"], &lines["threads"]), (&3.into(), &2.into()));
    assert_eq!(
        (&lines["verified"], &lines["blinding"]),
        (&"none".into(), &false.into())
    );
    let [rate, seconds] = ["signatures_per_second_overall", "seconds_overall"]
        .map(|name| lines[name].as_f64().unwrap());
    assert!((rate * seconds - 3.0).abs() < 1e-6);
    assert_eq!(lines.get("rsa_one_by_one"), None);
}

/// As in the README: only the program's name.
#[test]
fn without_arguments_a_comparison() {
    let text = stdout(&run(&[]));
    let job = "1,000 signatures, RSA-2048 PKCS#1 v1.5 SHA-256, in batches of ";
    assert!(text.starts_with(job), "{text}");
}

#[test]
fn help_fits_a_screen_and_names_the_exit_statuses() {
    for command in [&[][..], &["verify"], &["bench"], &["keygen"]] {
        for option in ["-h", "--help"] {
            let text = stdout(&run(&[command, &[option]].concat()));
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(text.lines().count() <= 40, "{text}");
            assert!(widest <= Some(100), "{text}");
            let statuses = text
                .lines()
                .find(|line| line.starts_with("Exit status: 0 "));
            let statuses = statuses.unwrap();
            assert!(
                statuses.contains(" 1 ") && statuses.contains(" 2 "),
                "{text}"
            );
        }
    }
    for option in ["--backend", "--batch-size", "--no-blinding", "--input"] {
        assert!(stdout(&run(&["--help"])).contains(option));
    }
    let manifest = include_str!("../../Cargo.toml");
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("version = "));
    let version = version.unwrap().trim_matches('"');
    assert!(stdout(&run(&["--version"])).contains(version));
}

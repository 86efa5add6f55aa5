//! PEM in the forms found in practice (RFC 7468, section 2: parsers should ignore what they can).
//! OpenSSL reads all that is accepted here.

use data_encoding::BASE64;

use super::*;

const LABEL: &str = "PRIVATE KEY";

/// The base64 of a key, in lines of `columns`, each followed by `end`.
fn base64(columns: usize, end: &str) -> String {
    let (_, der) = pkcs8::der::pem::decode_vec(pem!("rsa2048-pkcs8").as_bytes()).unwrap();
    let digits = BASE64.encode(&der);
    let lines = digits.as_bytes().chunks(columns);
    lines
        .map(|line| format!("{}{end}", str::from_utf8(line).unwrap()))
        .collect()
}

fn block(label: &str, body: &str) -> String {
    format!("-----BEGIN {label}-----\n{body}-----END {label}-----\n")
}

fn fault<T: std::fmt::Debug>(result: Result<T, Error>) -> KeyFault {
    match result.unwrap_err() {
        Error::Key(fault) => fault,
        error => panic!("{error:?}"),
    }
}

#[test]
fn the_first_private_key_is_read_whatever_its_lines_are() {
    let usual = block(LABEL, &base64(64, "\n"));
    let certificate = block("CERTIFICATE", "MAA=\n");
    let texts = [
        usual.clone(),
        block(LABEL, &base64(60, "\n")),
        block(LABEL, &base64(72, "\n")),
        block(LABEL, &base64(76, "\r\n")),
        block(LABEL, &base64(1 << 20, "\n")),
        // The end on the same line.
        block(LABEL, &base64(1 << 20, "")),
        block(LABEL, &base64(64, " \t\n")),
        block(LABEL, &base64(64, "\n\n")),
        block(LABEL, &format!("\n{}", base64(64, "\n"))),
        usual.replace('\n', "\r"),
        usual.replace('\n', "\r\n"),
        usual.replace('\n', "\n    "),
        usual.trim_end().to_owned(),
        format!("{usual}\n"),
        format!("{usual}created by a tool\n"),
        format!("Bag Attributes\n    friendlyName: key\nKey Attributes: <No Attributes>\n{usual}"),
        format!("\u{feff}{usual}"),
        format!("  \t{usual}"),
        format!("{usual}{certificate}{certificate}"),
        format!("{certificate}{usual}"),
        format!("{}{usual}", block("EC PARAMETERS", "BgUrgQQAIg==\n")),
        format!("{usual}{}", pem!("rsa1024")),
    ];
    let expected = PrivateKey::from_pkcs8_pem(pem!("rsa2048-pkcs8")).unwrap();
    for text in texts {
        let key = KeyHandle::from_pem(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(
            BigUint::from_bytes_be(&key.n()),
            BigUint::from_bytes_be(&expected.n().to_be_bytes()),
            "{text}"
        );
        assert!(KeyHandle::from_pkcs8_pem(&text).is_ok());
    }
    // Text around a key need not be UTF-8.
    let key = [b"\xff\xfe\n", usual.as_bytes(), b"\x80"].concat();
    assert!(KeyHandle::from_pem(key).is_ok());
}

#[test]
fn each_function_takes_the_first_block_with_its_label() {
    let both = [pem!("rsa1024"), pem!("rsa2048-pkcs8")].concat();
    let bits = |key: Result<KeyHandle, Error>| key.unwrap().bits();
    assert_eq!(bits(KeyHandle::from_pem(&both)), 1024);
    assert_eq!(bits(KeyHandle::from_pkcs1_pem(&both)), 1024);
    assert_eq!(bits(KeyHandle::from_pkcs8_pem(&both)), 2048);
    let encrypted = [pem!("rsa2048"), pem!("encrypted-pbkdf2")].concat();
    let key = KeyHandle::from_pkcs8_encrypted_pem(&encrypted, PASSPHRASE);
    assert_eq!(bits(key), 1024);
}

#[test]
fn what_is_wrong_with_a_block_is_said() {
    let body = base64(64, "\n");
    let damaged = [
        String::new(),
        "no key".into(),
        block(LABEL, &body.replace('M', "?")),
        // One digit too few, and one too many.
        block(LABEL, &body[1..]),
        block(LABEL, &format!("A{body}")),
        block(LABEL, "MAA\n"),
        format!("-----BEGIN {LABEL}-----\n{body}"),
        format!("-----BEGIN {LABEL}-----\n{body}-----END RSA {LABEL}-----\n"),
        format!("-----BEGIN {LABEL}-----\n{body}-----END {LABEL}\n"),
        format!("-----BEGIN {LABEL}----\n{body}-----END {LABEL}-----\n"),
        // In the middle of a line.
        format!("key: {}", block(LABEL, &body)),
    ];
    for text in damaged {
        let fault = fault(KeyHandle::from_pem(&text));
        let is_expected = matches!(fault, KeyFault::Pem | KeyFault::Label { .. });
        assert!(is_expected, "{fault:?}: {text}");
    }
    let label = fault(KeyHandle::from_pem(block("CERTIFICATE", "MAA=\n")));
    let expected = "PRIVATE KEY or RSA PRIVATE KEY";
    assert_eq!(label, KeyFault::Label { expected });
    let openssl_1 = fault(KeyHandle::from_pem(pem!("encrypted-pkcs1")));
    assert_eq!(openssl_1, KeyFault::Encrypted);
    let encrypted = fault(KeyHandle::from_pem(pem!("encrypted-pbkdf2")));
    assert_eq!(encrypted, KeyFault::Encrypted);
}

#[test]
fn escaped_newlines_are_named() {
    let usual = block(LABEL, &base64(64, "\n"));
    for text in [
        usual.replace('\n', r"\n"),
        format!("\"{}\"\n", usual.replace('\n', r"\n")),
        usual.replace('\n', r"\r\n"),
        usual.replace('\n', "\\n\n"),
    ] {
        let fault = fault(KeyHandle::from_pem(&text));
        assert_eq!(fault, KeyFault::EscapedNewlines, "{text}");
        assert!(fault.to_string().contains(r"\n"), "{fault}");
    }
}

#[test]
fn a_label_for_another_structure_is_named() {
    let relabelled = |pem: &str, from: &str, to| pem.replace(&format!("{from}-----"), to);
    let pkcs1 = relabelled(pem!("rsa2048"), "RSA PRIVATE KEY", "PRIVATE KEY-----");
    let found = "RSAPrivateKey";
    assert_eq!(
        fault(KeyHandle::from_pem(&pkcs1)),
        KeyFault::Structure { found }
    );
    let found = "PrivateKeyInfo";
    let pkcs8 = pem!("rsa2048-pkcs8");
    let as_pkcs1 = relabelled(pkcs8, "PRIVATE KEY", "RSA PRIVATE KEY-----");
    assert_eq!(
        fault(KeyHandle::from_pem(&as_pkcs1)),
        KeyFault::Structure { found }
    );
    let as_encrypted = relabelled(pkcs8, "PRIVATE KEY", "ENCRYPTED PRIVATE KEY-----");
    let result = KeyHandle::from_pkcs8_encrypted_pem(&as_encrypted, PASSPHRASE);
    assert_eq!(fault(result), KeyFault::Structure { found });
}

/// Each document follows a line with its encryption. Made by `openssl pkcs8 -topk8` with `-v1`,
/// `-v2` or `-v2prf` and the provider `legacy`.
#[test]
fn an_encryption_that_is_not_supported_is_named() {
    let documents = pem!("encrypted-otherwise");
    let names: Vec<_> = documents
        .split_inclusive("-----END ENCRYPTED PRIVATE KEY-----\n")
        .map(|document| {
            let name = document.lines().next().unwrap();
            let result = KeyHandle::from_pkcs8_encrypted_pem(document, PASSPHRASE);
            let fault = fault(result);
            let is_named =
                matches!(fault, KeyFault::Encryption(found) if found.to_string() == name);
            assert!(is_named, "{name}: {fault:?}");
            name
        })
        .collect();
    assert_eq!(names.len(), 14, "{names:?}");
}

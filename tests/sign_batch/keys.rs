//! Keys in the forms found in practice, made by OpenSSL and ssh-keygen.

use std::path::Path;
use std::process::Command;

use super::behaviour::expected;
use super::errors::refused_with_line;
use super::need;
use super::program::{key, run_with_input, stdout};

/// A folder in which commands make keys.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Runs a command, split at spaces, in the folder. `KEY` stands for the test key.
    fn make(&self, line: &str) {
        let words = line.split(' ').map(|word| match word {
            "KEY" => key("rsa2048"),
            // An empty passphrase.
            "''" => String::new(),
            word => word.into(),
        });
        let words: Vec<_> = words.collect();
        let mut command = Command::new(&words[0]);
        let output = command.args(&words[1..]).current_dir(&self.0).output();
        let output = output.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {stderr}");
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(Path::new(&self.path(name))).unwrap()
    }

    /// Checks that the key in the file `name` signs, with `options`, like the test key.
    fn signs(&self, name: &str, options: &[&str]) {
        let path = self.path(name);
        let args = [&["--key", &path, "--input", "-"], options].concat();
        let line = stdout(&run_with_input(&args, b"message\n"));
        assert_eq!(
            line.trim_end(),
            expected("rsa2048", &[b"message"])[0],
            "{name}"
        );
    }

    fn refuses(&self, name: &str, options: &[&str], words: &[&str]) {
        let path = self.path(name);
        refused_with_line(
            &[&["--key", &path, "--input", "-"], options].concat(),
            words,
        );
    }
}

fn is_installed(command: &str, option: &str) -> bool {
    need::available(command, Command::new(command).arg(option).output()).is_some()
}

#[test]
fn pem_and_der() {
    if !is_installed("openssl", "version") {
        return;
    }
    let folder = Folder::new();
    for line in [
        "openssl rsa -in KEY -traditional -out pkcs1.pem",
        "openssl rsa -in KEY -traditional -outform DER -out pkcs1.der",
        "openssl pkcs8 -topk8 -nocrypt -in KEY -out pkcs8.pem",
        "openssl pkcs8 -topk8 -nocrypt -in KEY -outform DER -out pkcs8.der",
    ] {
        folder.make(line);
        folder.signs(line.rsplit(' ').next().unwrap(), &[]);
    }

    let cut = folder.read("pkcs8.der");
    folder.write("cut.der", &cut[..cut.len() - 1]);
    folder.refuses("cut.der", &[], &["damaged DER"]);
    folder.write("longer.der", [&cut[..], b"\n"].concat());
    folder.refuses("longer.der", &[], &["damaged DER"]);
    folder.write("empty", "");
    folder.refuses("empty", &[], &["the file is empty"]);
    folder.write("blank", " \n\n");
    folder.refuses("blank", &[], &["the file is empty"]);
    folder.write("large", vec![b'a'; (256 << 10) + 1]);
    folder.refuses("large", &[], &["longer than 256 KiB"]);
}

/// See tests/rsa/import/pem.rs for more of them.
#[test]
fn pem_with_other_lines() {
    let folder = Folder::new();
    let pem = std::fs::read_to_string(key("rsa2048")).unwrap();
    let (header, rest) = pem.split_once('\n').unwrap();
    let (body, end) = rest.split_once("-----END").unwrap();
    let in_one_line = format!("{header}\n{}\n-----END{end}", body.replace('\n', ""));
    folder.write("one-line", in_one_line);
    folder.write("blanks", pem.replace('\n', " \t\n"));
    folder.write("empty-line", format!("\u{feff}{header}\n\n{rest}\n"));
    for name in ["one-line", "blanks", "empty-line"] {
        folder.signs(name, &[]);
    }
    folder.write("escaped", pem.replace('\n', r"\n"));
    folder.refuses("escaped", &[], &[r"written as \n"]);
    folder.write("label", pem.replace("RSA PRIVATE", "PRIVATE"));
    folder.refuses("label", &[], &["RSAPrivateKey", "RSA PRIVATE KEY"]);
    folder.write("no-base64", pem.replace('M', "?"));
    folder.refuses("no-base64", &[], &["damaged PEM", "no base64"]);
}

/// Long exponents, and more than two primes.
#[test]
fn keys_that_the_rsa_crate_does_not_take() {
    if !is_installed("openssl", "version") {
        return;
    }
    let folder = Folder::new();
    folder.write("message", "message");
    let message = folder.path("message");
    for (name, is_taken) in [("rsa1024-large-e", false), ("rsa2048-three-primes", true)] {
        let key = key(name);
        let args = ["--key", &key, "--input", &message];
        let output = run_with_input(&args, b"");
        let note = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_noted = note.contains("note: the rsa crate") && note.contains("built-in check");
        assert_eq!(is_noted, !is_taken, "{name}: {note}");
        let line = stdout(&output);
        let signature = data_encoding::HEXLOWER.decode(line.trim_end().as_bytes());
        folder.write("signature", signature.unwrap());
        folder.make(&format!("openssl pkey -in {key} -pubout -out public"));
        folder.make("openssl dgst -sha256 -verify public -signature signature message");

        let output = run_with_input(&[&args[..], &["--no-verify"]].concat(), b"");
        assert!(
            output.stderr.is_empty() || !String::from_utf8_lossy(&output.stderr).contains("note")
        );
        assert_eq!(stdout(&output), line);
        let all = [&args[..], &["--verify-all"]].concat();
        if is_taken {
            assert_eq!(stdout(&run_with_input(&all, b"")), line);
        } else {
            refused_with_line(&all, &["the rsa crate", "--verify-all"]);
        }
        folder.write("line", &line);
        let signatures = folder.path("line");
        let verify = [&["verify"], &args[..], &["--signatures", &signatures]].concat();
        stdout(&run_with_input(&verify, b""));
    }
}

#[test]
fn several_blocks_in_any_order() {
    if !is_installed("openssl", "version") {
        return;
    }
    let folder = Folder::new();
    folder.make("openssl pkcs8 -topk8 -nocrypt -in KEY -out key");
    folder.make("openssl req -x509 -key key -subj /CN=x -days 1 -out certificate");
    let [private, certificate] = ["key", "certificate"].map(|name| folder.read(name));
    let note = &b"Bag Attributes\n    friendlyName: \xff\n"[..];
    folder.write("first", [&private, &certificate[..], note].concat());
    folder.write(
        "last",
        [note, &certificate, &certificate, &private].concat(),
    );
    folder.signs("first", &[]);
    folder.signs("last", &[]);

    folder.write("two", [&private[..], &certificate, &private].concat());
    folder.refuses("two", &[], &["2 private keys"]);
    folder.refuses("certificate", &[], &["no private key", "only: certificate"]);
    folder.make("openssl x509 -in certificate -outform DER -out certificate.der");
    folder.refuses("certificate.der", &[], &["a certificate"]);
    // The first key of a certificate, or of a chain of them, verifies.
    folder.write("chain", certificate.repeat(2));
    folder.write("message", "message");
    let message = folder.path("message");
    let sign = ["--key", &folder.path("first"), "--input", &message];
    folder.write("line", stdout(&run_with_input(&sign, b"")));
    for name in ["certificate", "certificate.der", "chain"] {
        let (key, signatures) = (folder.path(name), folder.path("line"));
        let verify = ["verify", "--key", &key, "--input", &message];
        let verify = [&verify[..], &["--signatures", &signatures]].concat();
        stdout(&run_with_input(&verify, b""));
    }
}

#[test]
fn keys_that_sign_nothing_here() {
    if !is_installed("openssl", "version") {
        return;
    }
    let folder = Folder::new();
    folder.make("openssl rsa -in KEY -pubout -out public.pem");
    folder.refuses("public.pem", &[], &["no private key", "only: public key"]);
    folder.make("openssl rsa -in KEY -pubout -outform DER -out public.der");
    folder.refuses("public.der", &[], &["a public key"]);
    folder.make("openssl ecparam -name prime256v1 -genkey -out ec.pem");
    folder.refuses("ec.pem", &[], &["EC PRIVATE KEY"]);
    folder.make("openssl ec -in ec.pem -outform DER -out ec.der");
    folder.refuses("ec.der", &[], &["elliptic-curve"]);
}

#[test]
fn encrypted_keys() {
    if !is_installed("openssl", "version") {
        return;
    }
    let folder = Folder::new();
    for (name, text) in [
        ("passphrase", "secret\nand more\n"),
        ("windows", "secret\r\n"),
        ("no-newline", "secret"),
        ("wrong", "Secret\n"),
        ("empty", ""),
    ] {
        folder.write(name, text);
    }
    let passphrase = |name| ["--passphrase-file".to_owned(), folder.path(name)];
    let with = |name: &str, passphrase_file| {
        let [option, file] = passphrase(passphrase_file);
        folder.signs(name, &[&option, &file]);
    };
    let refuses = |name: &str, passphrase_file, words: &[&str]| {
        let [option, file] = passphrase(passphrase_file);
        folder.refuses(name, &[&option, &file], words);
    };
    let encrypt = "openssl pkcs8 -topk8 -in KEY -passout file:passphrase";
    folder.make(&format!("{encrypt} -out aes.pem"));
    folder.make(&format!(
        "{encrypt} -v2 aes-128-cbc -outform DER -out aes.der"
    ));
    folder.make(&format!("{encrypt} -scrypt -out scrypt.pem"));
    for name in ["aes.pem", "aes.der", "scrypt.pem"] {
        with(name, "passphrase");
        folder.refuses(name, &[], &["encrypted", "--passphrase-file"]);
        refuses(name, "wrong", &["the passphrase does not fit"]);
    }
    let args = ["--key", &folder.path("aes.pem"), "--passphrase-file", "-"];
    folder.write("messages", "message");
    let input = ["--input", &folder.path("messages")];
    let line = stdout(&run_with_input(&[&args[..], &input].concat(), b"secret\n"));
    assert_eq!(line.trim_end(), expected("rsa2048", &[b"message"])[0]);
    with("aes.pem", "windows");
    with("aes.pem", "no-newline");
    refuses("aes.pem", "empty", &["no passphrase"]);
    refuses("aes.pem", "missing", &["cannot read", "missing"]);

    folder.make(&format!("{encrypt} -v2 des3 -out des3.pem"));
    refuses(
        "des3.pem",
        "passphrase",
        &["DES-EDE3-CBC", "not supported", "openssl pkcs8 -topk8"],
    );
    folder.make("openssl rsa -in KEY -traditional -aes128 -passout file:passphrase -out old.pem");
    refuses(
        "old.pem",
        "passphrase",
        &["old way", "openssl pkcs8 -topk8"],
    );
    folder.make("openssl pkcs8 -topk8 -in old.pem -passin file:passphrase -passout file:no-newline -out converted.pem");
    with("converted.pem", "passphrase");

    folder.make("openssl pkcs8 -topk8 -nocrypt -in KEY -out plain.pem");
    refuses("plain.pem", "passphrase", &["not encrypted", "leave out"]);
}

#[test]
fn pkcs12() {
    if !is_installed("openssl", "version") {
        return;
    }
    let folder = Folder::new();
    folder.make("openssl req -x509 -key KEY -subj /CN=x -days 1 -out certificate");
    folder.make("openssl pkcs12 -export -inkey KEY -in certificate -passout pass:a -out key.p12");
    folder.refuses(
        "key.p12",
        &[],
        &["PKCS#12", "openssl pkcs12 -in FILE -nocerts -out NEW"],
    );
    // The remedy in the message works.
    folder.write("passphrase", "secret");
    folder.make(
        "openssl pkcs12 -in key.p12 -nocerts -out new -passin pass:a -passout file:passphrase",
    );
    folder.signs("new", &["--passphrase-file", &folder.path("passphrase")]);
}

#[test]
fn openssh() {
    if !is_installed("ssh-keygen", "-?") {
        return;
    }
    let folder = Folder::new();
    let words = ["OpenSSH", "cp KEY NEW && ssh-keygen -p -m PKCS8 -f NEW"];
    for (passphrase, name) in [("''", "plain"), ("secret", "encrypted")] {
        folder.make(&format!(
            "ssh-keygen -q -t rsa -b 2048 -N {passphrase} -f {name}"
        ));
        folder.refuses(name, &[], &words);
        // The remedy in the message works; the prompts of ssh-keygen are answered by -P and -N
        // here.
        folder.make(&format!("cp {name} {name}.new"));
        folder.make(&format!(
            "ssh-keygen -p -m PKCS8 -f {name}.new -P {passphrase} -N {passphrase}"
        ));
    }
    folder.write("passphrase", "secret");
    let [plain, encrypted] = ["plain.new", "encrypted.new"].map(|name| folder.path(name));
    let sign = |args: &[&str]| {
        let args = [args, &["--input", "-"]].concat();
        stdout(&run_with_input(&args, b"message\n"))
    };
    assert_eq!(sign(&["--key", &plain]).trim_end().len(), 512);
    let passphrase = folder.path("passphrase");
    let args = ["--key", &encrypted, "--passphrase-file", &passphrase];
    assert_eq!(sign(&args).trim_end().len(), 512);
}

/// Keys restricted to RSASSA-PSS.
#[test]
fn rsa_pss() {
    if !is_installed("openssl", "version") {
        return;
    }
    let folder = Folder::new();
    let sha256 = ["--scheme", "pss", "--hash", "sha256"];
    let sha384 = ["--scheme", "pss", "--hash", "sha384"];
    let make = |name: &str, parameters: Option<(&str, &str, u32)>| {
        let mut line = format!("openssl genpkey -algorithm RSA-PSS -out {name}");
        if let Some((hash, mask_hash, salt)) = parameters {
            for (option, value) in [
                ("md", hash),
                ("mgf1_md", mask_hash),
                ("saltlen", &salt.to_string()),
            ] {
                line += &format!(" -pkeyopt rsa_pss_keygen_{option}:{value}");
            }
        }
        folder.make(&line);
    };
    // The public key has the same restrictions, and openssl respects them. By default it expects
    // the shortest salt that the key allows.
    let round_trip = |name: &str, options: &[&str]| {
        folder.write("message", "message");
        let (key, message) = (folder.path(name), folder.path("message"));
        let args = [&["--key", &key, "--input", &message], options].concat();
        let line = stdout(&run_with_input(&args, b""));
        let signature = data_encoding::HEXLOWER.decode(line.trim_end().as_bytes());
        folder.write("signature", signature.unwrap());
        folder.make(&format!("openssl pkey -in {name} -pubout -out public"));
        let hash = options[3];
        folder.make(&format!("openssl dgst -{hash} -verify public -signature signature -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest message"));
        // Our own check does too.
        folder.write("line", line);
        let (public, line) = (folder.path("public"), folder.path("line"));
        let verify = [
            "verify",
            "--key",
            &public,
            "--input",
            &message,
            "--signatures",
            &line,
        ];
        stdout(&run_with_input(&[&verify, options].concat(), b""));
    };
    make("any", None);
    round_trip("any", &sha256);
    round_trip("any", &sha384);
    folder.refuses("any", &[], &["RSASSA-PSS only", "--scheme pss"]);
    folder.make("openssl req -x509 -key any -subj /CN=x -days 1 -out certificate");
    let (key, line) = (folder.path("certificate"), folder.path("line"));
    let message = folder.path("message");
    let verify = ["verify", "--key", &key, "--input", &message];
    let verify = [&verify[..], &["--signatures", &line]].concat();
    stdout(&run_with_input(&[&verify[..], &sha384].concat(), b""));
    refused_with_line(&verify, &["certificate: ", "RSASSA-PSS only"]);

    make("sha384", Some(("sha384", "sha384", 48)));
    round_trip("sha384", &sha384);
    folder.refuses(
        "sha384",
        &sha256,
        &["PSS with sha384 only", "--hash sha384"],
    );
    folder.refuses("sha384", &["--hash", "sha384"], &["--scheme pss"]);

    make("short-salt", Some(("sha256", "sha256", 20)));
    round_trip("short-salt", &sha256);
    make("long-salt", Some(("sha256", "sha256", 33)));
    folder.refuses("long-salt", &sha256, &["at least 33 bytes", "32"]);
    make("mask", Some(("sha256", "sha1", 20)));
    folder.refuses("mask", &sha256, &["MGF1"]);
    make("sha1", Some(("sha1", "sha1", 20)));
    folder.refuses("sha1", &sha256, &["1.3.14.3.2.26", "not supported"]);
}

#[test]
fn a_key_on_standard_input() {
    let folder = Folder::new();
    folder.write("messages", "message\n");
    let pem = std::fs::read(key("rsa2048")).unwrap();
    let args = ["--key", "-", "--input", &folder.path("messages")];
    let line = stdout(&run_with_input(&args, &pem));
    assert_eq!(line.trim_end(), expected("rsa2048", &[b"message"])[0]);
    refused_with_line(
        &["--key", "-", "--input", "-"],
        &["--input and --key", "standard input"],
    );
}

//! The program survives the loss of its output, and has no unused dependencies.

use std::process::Command;

use crate::server::Server;

#[test]
fn nobody_hears_its_last_words() {
    let server = Server::start(&[]);
    assert_eq!(server.ask("POST", "/sign/main/RS256", b"m").0, 200);
    let status = server.terminate_unheard();
    assert!(status.success(), "{status}");
}

/// Encrypted keys and HTTP/2 are not supported.
#[test]
fn what_it_does_not_use_is_not_in_it() {
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--edges",
            "normal",
            "--prefix",
            "none",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{tree:?}");
    let tree = String::from_utf8(tree.stdout).unwrap();
    assert!(tree.contains("hyper v"), "{tree}");
    for name in ["aes", "cbc", "h2", "pbkdf2", "pkcs5", "scrypt"] {
        let is_it = |line: &str| line.starts_with(&format!("{name} v"));
        assert!(!tree.lines().any(is_it), "{name}");
    }
}

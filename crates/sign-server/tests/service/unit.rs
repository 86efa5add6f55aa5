//! Tests of the systemd unit in this crate.

use std::process::Command;

use crate::server::{KEY, Server, set_mode, write_secret};

const UNIT: &str = include_str!("../../sign-server.service");
const INSTALLED: &str = "/usr/local/bin/sign-server";

/// The value of a setting that occurs once.
fn setting(name: &str) -> &'static str {
    let mut found = UNIT
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    match (found.next(), found.next()) {
        (Some(value), None) => value,
        _ => panic!("{name} is not there once"),
    }
}

#[test]
fn systemd_takes_it() {
    if Command::new("systemd-analyze")
        .arg("--version")
        .output()
        .is_err()
    {
        eprintln!("skipped: systemd_takes_it: needs systemd-analyze");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sign-server.service");
    // systemd-analyze requires that the program exists.
    std::fs::write(
        &path,
        UNIT.replace(INSTALLED, env!("CARGO_BIN_EXE_sign-server")),
    )
    .unwrap();
    let verify = || {
        let command = Command::new("systemd-analyze")
            .arg("verify")
            .arg(&path)
            .output();
        let output = command.unwrap();
        let words = [output.stdout, output.stderr].concat();
        let words = String::from_utf8(words).unwrap();
        // Messages about other units do not matter.
        let about_it: Vec<_> = words
            .lines()
            .filter(|line| line.contains("sign-server"))
            .collect();
        (output.status.success(), about_it.join("\n"))
    };
    assert_eq!(verify(), (true, String::new()));
    // The check finds faults.
    std::fs::write(&path, UNIT.replace("LoadCredential=", "LoadCredentials=")).unwrap();
    assert!(verify().1.contains("LoadCredentials"));
}

/// The command line in the unit finds the keys where systemd puts them.
#[test]
fn its_command_line_starts() {
    // Each file of a folder becomes a credential, with the name ID_FILE (systemd.exec(5),
    // LoadCredential=).
    let (id, folder) = setting("LoadCredential").split_once(':').unwrap();
    assert_eq!(folder, "/etc/sign-server/keys");
    let credentials = tempfile::tempdir().unwrap();
    for name in ["main.pem", "other.pem"] {
        let path = credentials.path().join(format!("{id}_{name}"));
        write_secret(&path, KEY);
        set_mode(&path, 0o400);
    }
    set_mode(credentials.path(), 0o500);
    let line = setting("ExecStart").replace("%d", credentials.path().to_str().unwrap());
    // Another server may use the port.
    let line = line.replace(" 127.0.0.1:8080", " 127.0.0.1:0");
    assert!(!line.contains('%'), "{line}");
    let mut words = line.split(' ');
    assert_eq!(words.next(), Some(INSTALLED));
    let mut command = Command::new(env!("CARGO_BIN_EXE_sign-server"));
    command.args(words);
    let server = Server::spawn(command, credentials);
    assert_eq!(server.get("/keys"), (200, "main 2048\nother 2048\n".into()));
    assert_eq!(server.ask("POST", "/sign/main/RS256", b"m").0, 200);
    server.terminate();
}

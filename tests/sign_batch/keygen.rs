//! Generation of keys into files.

use std::fs;
use std::process::Command;

use rsa::PrivateKey;
use rsa::pkcs8::DecodePrivateKey;
use rsa::traits::PublicKeyParts;

use super::errors::refused_with_line;
use super::need;
use super::program::{self, run, run_without_gpu, stderr, stdout};

#[test]
fn keys_are_in_files_for_their_owner() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("new/keys");
    let out_dir = keys.to_str().unwrap();
    let args = [
        "keygen",
        "--bits",
        "1024",
        "--count",
        "10",
        "--out-dir",
        out_dir,
    ];
    let output = run(&args);
    assert_eq!(stdout(&output), "");
    assert!(
        stderr(&output).starts_with("10 keys of 1024 bits in "),
        "{}",
        stderr(&output)
    );
    let mut names: Vec<_> = fs::read_dir(&keys)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected: Vec<_> = (1..=10).map(|i| format!("key-{i:06}.pem")).collect();
    assert_eq!(names, expected);
    for name in &names {
        let pem = fs::read_to_string(keys.join(name)).unwrap();
        let key = PrivateKey::from_pkcs8_pem(&pem).unwrap();
        assert_eq!(
            (key.n_bytes().len(), key.e_bytes().to_vec()),
            (128, vec![1, 0, 1])
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(keys.join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
    // No file is replaced.
    let before = fs::read(keys.join("key-000007.pem")).unwrap();
    fs::remove_file(keys.join("key-000001.pem")).unwrap();
    refused_with_line(&args, &["key-000002.pem", "is there already"]);
    assert_eq!(fs::read(keys.join("key-000007.pem")).unwrap(), before);
    assert!(!keys.join("key-000001.pem").exists());
    // Nor does a shorter run mix its keys with those that are there.
    let few = ["keygen", "--bits", "1024", "--count", "2", "--out-dir"];
    let few = [&few[..], &[keys.to_str().unwrap()]].concat();
    refused_with_line(&few, &["key-000002.pem", "is there already"]);
    let file = keys.join("key-000007.pem");
    let in_file = [&few[..6], &[file.to_str().unwrap()]].concat();
    refused_with_line(&in_file, &["is a file; name a folder"]);
}

#[test]
fn without_a_gpu_the_processor_computes_and_a_note_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let keygen = ["keygen", "--gpus", "--bits", "1024", "--out-dir"];
    let output = run_without_gpu(folder.path(), &[&keygen[..], &["loud"]].concat(), b"");
    assert_eq!(stdout(&output), "");
    let lines = stderr(&output);
    let note = lines.lines().next().unwrap();
    assert!(
        note.starts_with("note: the processor tests all candidates: no GPU ("),
        "{lines}"
    );
    assert_eq!(lines.lines().count(), 2, "{lines}");
    let quiet = [&keygen[..], &["quiet", "--quiet"]].concat();
    let output = run_without_gpu(folder.path(), &quiet, b"");
    assert_eq!((stdout(&output), stderr(&output)), Default::default());
}

/// A crash after the end loses no key: the folder is on the disk after the names of its files.
#[test]
#[cfg(target_os = "linux")]
fn names_of_keys_are_on_the_disk_in_the_end() {
    let strace = |args: &[&str]| {
        let output = Command::new("strace").args(args).output();
        let output = output.map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(stderr(&output)),
            false => Err(stderr(&output)),
        }
    };
    if need::available("strace", strace(&["-f", "true"])).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let (folder, program) = (folder.to_str().unwrap(), program::path());
    let traced = ["-f", "-y", "-e", "trace=fsync,/^rename,/^link", "--"];
    let keygen = [program.to_str().unwrap(), "keygen", "--quiet"];
    let options = ["--bits", "1024", "--count", "3", "--out-dir", folder];
    let trace = strace(&[&traced[..], &keygen, &options].concat()).unwrap();
    let last = |of: &str| {
        trace
            .rfind(of)
            .unwrap_or_else(|| panic!("no {of}: {trace}"))
    };
    assert!(last("key-00000") < last(&format!("<{folder}>")), "{trace}");
}

#[test]
fn a_summary_in_json() {
    let folder = tempfile::tempdir().unwrap();
    let out_dir = folder.path().to_str().unwrap();
    let args = [
        "keygen",
        "--bits",
        "1024",
        "--exponent",
        "65539",
        "--threads",
        "1",
        "--out-dir",
        out_dir,
    ];
    let output = run(&[&args[..], &["--json", "--quiet"]].concat());
    let summary: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(summary["keys"], 1);
    assert_eq!(summary["public_exponent"], 65_539);
    assert_eq!(summary["threads"], 1);
    assert!(summary["per_second"].as_f64().unwrap() > 0.0);
    assert_eq!(stderr(&output), "");
}

#[test]
fn keys_that_cannot_be_generated() {
    let folder = tempfile::tempdir().unwrap();
    let out_dir = folder.path().to_str().unwrap();
    let keygen = ["keygen", "--out-dir", out_dir];
    let refused = |options: &[&str], words: &[&str]| {
        refused_with_line(&[&keygen[..], options].concat(), words);
    };
    refused(&["--bits", "1000"], &["1000 bits", "multiple of 128"]);
    refused(&["--exponent", "3"], &["exponent 3", "above 65536"]);
    refused(&["--count", "0"], &["--count"]);
    refused(&["--threads", "1000000"], &["--threads", "too many"]);
    refused_with_line(&["keygen"], &["--out-dir"]);
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let inside = file.join("keys");
    refused_with_line(
        &["keygen", "--out-dir", inside.to_str().unwrap()],
        &["cannot use the folder"],
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

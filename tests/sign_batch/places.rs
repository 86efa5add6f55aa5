//! Destinations of signatures: files through links, descriptors, and mount points. No data of
//! others is lost.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use super::behaviour::expected;
use super::need;
use super::program::{self, key, stderr};

/// The signatures of the two messages, one on each line.
fn lines() -> String {
    expected("rsa1024", &[b"a", b"b"]).join("\n") + "\n"
}

/// A folder with two messages.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("messages"), "a\nb\n").unwrap();
    folder
}

/// Runs a shell script in `folder`; the command `sign` signs the messages.
fn shell(folder: &Path, script: &str) -> Output {
    let mut command = Command::new("sh");
    sign_for(&mut command, script);
    command.current_dir(folder).output().unwrap()
}

fn sign_for(command: &mut Command, script: &str) {
    let sign = r#"sign() { "$program" --key "$key" --input messages --output "$out"; }"#;
    command
        .args(["-c", &format!("{sign}\n{script}")])
        .env("program", program::path())
        .env("key", key("rsa1024"));
}

#[track_caller]
fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
}

#[test]
fn links_are_followed_to_files_that_need_not_exist() {
    for old in [None, Some("old")] {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("elsewhere")).unwrap();
        if let Some(old) = old {
            fs::write(path("elsewhere/signatures"), old).unwrap();
        }
        symlink("elsewhere/signatures", path("link")).unwrap();
        symlink(path("link"), path("link to a link")).unwrap();
        succeeds(&shell(folder.path(), "out='link to a link'; sign"));
        assert_eq!(
            fs::read_to_string(path("elsewhere/signatures")).unwrap(),
            lines()
        );
        for link in ["link", "link to a link"] {
            assert!(fs::symlink_metadata(path(link)).unwrap().is_symlink());
        }
        assert_eq!(fs::read_dir(path("elsewhere")).unwrap().count(), 1);
    }
    let folder = folder();
    symlink("loop", folder.path().join("loop")).unwrap();
    let output = shell(folder.path(), "out=loop; sign");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "error: cannot write loop: too many links\n"
    );
}

#[test]
fn permissions_stay_and_those_of_new_files_follow_the_mask() {
    for (old, new) in [(None, 0o640), (Some(0o664), 0o664), (Some(0o600), 0o600)] {
        let folder = folder();
        let path = folder.path().join("signatures");
        if let Some(mode) = old {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        }
        succeeds(&shell(folder.path(), "umask 027; out=signatures; sign"));
        assert_eq!(fs::read_to_string(&path).unwrap(), lines());
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, new);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn standard_output_by_any_name_is_written_where_it_stands() {
    for out in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"] {
        let folder = folder();
        symlink("/dev/stdout", folder.path().join("link")).unwrap();
        let script = format!("out={out}; {{ echo before; sign && echo after; }} > file");
        succeeds(&shell(folder.path(), &script));
        let text = fs::read_to_string(folder.path().join("file")).unwrap();
        assert_eq!(text, format!("before\n{}after\n", lines()), "{out}");
        succeeds(&shell(
            folder.path(),
            &format!("out={out}; sign 2>&1 | cat > copy"),
        ));
        let copy = fs::read_to_string(folder.path().join("copy")).unwrap();
        assert!(copy.contains(&lines()), "{out}: {copy}");
    }
}

/// The program cannot write at the file position of an inherited descriptor; a pipe has no
/// position.
#[test]
#[cfg(target_os = "linux")]
fn other_descriptors_are_written_through_unless_they_are_files() {
    let folder = folder();
    succeeds(&shell(
        folder.path(),
        "out=/dev/fd/3; { sign 3>&1 >/dev/null; } | cat > copy",
    ));
    let copy = fs::read_to_string(folder.path().join("copy")).unwrap();
    assert_eq!(copy, lines());
    fs::write(folder.path().join("file"), "old\n").unwrap();
    // The second descriptor is the shell's own, of another process.
    for out in ["/dev/fd/3", "/proc/$$/fd/3"] {
        let script = format!("out={out}; exec 3>> file; sign");
        let output = shell(folder.path(), &script);
        assert_eq!(output.status.code(), Some(2));
        let line = stderr(&output);
        assert!(line.contains(": it is the descriptor of a file"), "{line}");
        let text = fs::read_to_string(folder.path().join("file")).unwrap();
        assert_eq!(text, "old\n");
    }
}

#[test]
fn a_folder_is_no_file() {
    let folder = folder();
    let output = shell(folder.path(), "out=new/; sign");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "error: cannot write new/: is a directory\n"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[cfg(target_os = "linux")]
fn can_mount() -> bool {
    let probe = Command::new("unshare").args(["-rm", "true"]).output();
    let probe = probe.map_err(|error| error.to_string());
    let probe = probe.and_then(|output| match output.status.success() {
        true => Ok(()),
        false => Err(stderr(&output)),
    });
    need::available("unshare", probe).is_some()
}

/// As in a container with a single mounted file.
#[test]
#[cfg(target_os = "linux")]
fn a_mount_point_is_written_in_place() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("real"), "old\n".repeat(1000)).unwrap();
    File::create(path("out put")).unwrap();
    let run = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh"]);
        sign_for(
            &mut command,
            &format!("mount --bind real 'out put' || exit 9; out='out put'; {script}"),
        );
        command.current_dir(folder.path()).output().unwrap()
    };
    // Without signatures the file stays unchanged.
    let output = run("key=/dev/null; sign");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(fs::read(path("real")).unwrap().len(), 4000);
    succeeds(&run("sign"));
    assert_eq!(fs::read_to_string(path("real")).unwrap(), lines());
    assert_eq!(fs::read(path("out put")).unwrap(), b"");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

/// If a mount point cannot be written in place completely, no signature is lost.
#[test]
#[cfg(target_os = "linux")]
fn a_mount_point_on_a_full_disk() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("messages"), "a\nb\n".repeat(100)).unwrap();
    File::create(path("out")).unwrap();
    for name in ["disk", "spare"] {
        fs::create_dir(path(name)).unwrap();
    }
    let script = "mount -t tmpfs -o size=4k tmpfs disk || exit 9; echo old > disk/file; \
                  mount --bind disk/file out || exit 9; out=out; export TMPDIR=$PWD/spare; sign";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh"]);
    sign_for(&mut command, script);
    let output = command.current_dir(folder.path()).output().unwrap();
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    let spare: Vec<_> = fs::read_dir(path("spare")).unwrap().collect();
    let [Ok(spare)] = &spare[..] else {
        panic!("{spare:?}");
    };
    assert!(error.contains(spare.path().to_str().unwrap()), "{error}");
    assert_eq!(
        fs::read_to_string(spare.path()).unwrap(),
        lines().repeat(100)
    );
}

//! The command `ptx-machine instructions`.

use ptx_machine::SUPPORTED;

/// The supported instructions, one form in each line.
pub fn run() -> String {
    let lines = SUPPORTED.iter().map(|form| {
        let (family, spelling) = (form.family.to_string(), form.spelling);
        let line = format!("{family:<8} {spelling} {}", form.operands);
        line.trim_end().to_owned() + "\n"
    });
    lines.collect()
}

//! Tests that texts that are nearly PTX end in an error or a verdict, without a panic.

use ptx_machine::{Argument, Global, Launch, Module};

const CONTROLS: &str = include_str!("../controls/controls.ptx");

/// Runs every entry point that can be decoded, for a limited time, with several small launches.
fn try_all(text: &str) {
    let Ok(module) = Module::parse(text) else {
        return;
    };
    for entry in module.entries() {
        let Ok(program) = entry.decode() else {
            continue;
        };
        let mut global = Global::default();
        let arguments: Vec<_> = entry
            .parameters()
            .iter()
            .map(|parameter| match parameter.bytes {
                1 => Argument::U8(1),
                2 => Argument::U16(1),
                4 => Argument::U32(1),
                _ => Argument::Pointer(global.with_bytes(vec![1; 512], false)),
            })
            .collect();
        for max_steps in [0, 3000] {
            let launch = Launch::new(1, 32).with_max_steps(max_steps);
            let result = program.run(&launch, &arguments, &mut global);
            assert!(max_steps > 0 || result.is_err());
        }
    }
}

/// Numbers from 0 to `below - 1`, by a linear congruence.
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}

#[test]
fn truncated() {
    for end in (0..CONTROLS.len()).step_by(1009) {
        let text = &CONTROLS[..end];
        try_all(text);
        // Closed again, so that the parser accepts the body.
        try_all(&format!("{text} ;}}"));
        try_all(&format!("{text} }}"));
    }
}

#[test]
fn mutated() {
    let pieces = [
        "",
        ";",
        "}",
        "{",
        ":",
        ",",
        "[",
        "]",
        "(",
        ")",
        "@",
        "@!",
        "|",
        ".",
        "/*",
        "//",
        "\"",
        "%r1",
        "%p1",
        "%rd1",
        "%tid.x",
        "-1",
        "0x",
        "18446744073709551616",
        "$L__BB0_1",
        ".b8 x[9999999999999999999]",
        ".align 3",
        ".reg .b32 %q<4294967295>",
        ".shared .b64 s[999999]",
        "ret",
        "bra",
        "ld.global.v4.u32",
        "st.shared.u8",
        "bar.sync 0",
        "shfl.sync.idx.b32",
        "mov.b64",
        "exit",
        "\u{e9}",
        "\0",
    ];
    // One kernel is sufficient, and parses fast.
    let start = CONTROLS.find(".visible .entry scanned_shared").unwrap();
    let end = CONTROLS.find(".visible .entry uncleared").unwrap();
    let words: Vec<_> = CONTROLS[start..end]
        .split_inclusive([' ', '\n', '\t', ','])
        .collect();
    let mut random = Random(1);
    for _ in 0..1500 {
        let mut words = words.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(words.len());
            match random.below(4) {
                0 => words[at] = pieces[random.below(pieces.len())],
                1 => words.insert(at, pieces[random.below(pieces.len())]),
                2 => words[at] = words[random.below(words.len())],
                _ => drop(words.remove(at)),
            }
        }
        try_all(&words.concat());
    }
}

#[test]
fn flipped_bits() {
    let start = CONTROLS.find(".visible .entry lane_private").unwrap();
    let end = CONTROLS.find(".visible .entry shared_bank").unwrap();
    let mut random = Random(2);
    for _ in 0..1500 {
        let mut bytes = CONTROLS.as_bytes()[start..end].to_vec();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(7);
        }
        try_all(&String::from_utf8(bytes).expect("no bit 7 is set"));
    }
}

/// Offsets and addresses at the ends of the address space.
#[test]
fn huge_addresses() {
    for (base, offset) in [
        ("-1", "0"),
        ("-8", "-8"),
        ("-16", "-9223372036854775808"),
        ("9223372036854775807", "9223372036854775807"),
        ("0x8000000000000000", "9223372036854775792"),
    ] {
        for space in ["global", "shared"] {
            for access in [
                format!("ld.{space}.v2.u64 {{%rd2, %rd3}}, [%rd1+{offset}];"),
                format!("st.{space}.v2.u64 [%rd1+{offset}], {{%rd2, %rd3}};"),
            ] {
                let text = format!(
                    ".entry k() {{ .reg .b64 %rd<4>; .shared .b64 s[2]; mov.u64 %rd1, {base}; {access} ret; }}"
                );
                let module = Module::parse(&text).unwrap();
                let program = module.entry("k").unwrap().decode().unwrap();
                let result = program.run(&Launch::new(1, 32), &[], &mut Global::default());
                assert!(result.is_err(), "{text}");
            }
        }
    }
    let text = ".entry k(.param .u64 a) { .reg .b64 %rd<2>; ld.param.u64 %rd1, [a+-16]; }";
    try_all(text);
    try_all(&text.replace("-16", "9223372036854775807"));
}

//! Compares instructions with Rust, and checks that their taint covers all effects of secrets.

use ptx_machine::{Argument, Fault, Global, Launch, Module, Program, RunError};

const LANES: usize = 32;

/// A statement with `%rd1` to `%rd3` and their low halves `%r1` to `%r3` as operands and `%rd4` as
/// result, and its meaning.
type Case = (&'static str, fn(u64, u64, u64) -> u64);

const CASES: &[Case] = &[
    ("add.s64 %rd4, %rd1, %rd2;", |a, b, _| a.wrapping_add(b)),
    ("sub.s64 %rd4, %rd1, %rd2;", |a, b, _| a.wrapping_sub(b)),
    ("add.u32 %r4, %r1, -7;", |a, _, _| low(a.wrapping_sub(7))),
    ("mul.lo.s64 %rd4, %rd1, %rd2;", |a, b, _| a.wrapping_mul(b)),
    ("mul.hi.u64 %rd4, %rd1, %rd2;", |a, b, _| {
        ((u128::from(a) * u128::from(b)) >> 64) as u64
    }),
    ("mul.hi.u32 %r4, %r1, %r2;", |a, b, _| {
        (low(a) * low(b)) >> 32
    }),
    ("mul.hi.s32 %r4, %r1, %r2;", |a, b, _| {
        low(((signed(a) * signed(b)) >> 32) as u64)
    }),
    ("mul.wide.u32 %rd4, %r1, %r2;", |a, b, _| low(a) * low(b)),
    ("mul.wide.u32 %rd4, %r1, -1431655765;", |a, _, _| {
        low(a) * 0xaaaa_aaab
    }),
    ("mul.wide.s32 %rd4, %r1, %r2;", |a, b, _| {
        (signed(a) * signed(b)) as u64
    }),
    ("mad.lo.s32 %r4, %r1, %r2, %r3;", |a, b, c| {
        low(a.wrapping_mul(b).wrapping_add(c))
    }),
    ("mad.hi.u32 %r4, %r1, %r2, %r3;", |a, b, c| {
        low(((low(a) * low(b)) >> 32).wrapping_add(c))
    }),
    ("mad.wide.s32 %rd4, %r1, %r2, %rd3;", |a, b, c| {
        ((signed(a) * signed(b)) as u64).wrapping_add(c)
    }),
    // The carry, or borrow, of the words %r1 and %r2.
    (
        "add.cc.u32 %r5, %r1, %r2; addc.u32 %r4, 0, 0;",
        |a, b, _| (low(a) + low(b)) >> 32,
    ),
    (
        "sub.cc.u32 %r5, %r1, %r2; subc.u32 %r4, %r3, 0;",
        |a, b, c| low(c.wrapping_sub(u64::from(low(a) < low(b)))),
    ),
    // Two words and their carry.
    (
        "add.cc.s32 %r1, %r1, %r2; addc.cc.s32 %r2, %r3, -1; addc.u32 %r4, 0, 0;",
        |a, b, c| (low(c) + low(u64::MAX) + ((low(a) + low(b)) >> 32)) >> 32,
    ),
    (
        "sub.cc.s32 %r1, %r1, %r2; subc.cc.s32 %r4, %r3, 5; subc.u32 %r5, 0, 0; add.u32 %r4, %r4, %r5;",
        |a, b, c| {
            let wide = (low(c) as i64) - 5 - i64::from(low(a) < low(b));
            low(wide as u64).wrapping_sub(u64::from(wide < 0)) & 0xffff_ffff
        },
    ),
    // Instructions without `.cc` do not change the flag.
    (
        "add.cc.u32 %r5, %r1, %r2; mul.lo.u32 %r5, %r1, %r2; addc.u32 %r4, %r5, %r3;",
        |a, b, c| {
            let sum = a.wrapping_mul(b).wrapping_add(c);
            low(sum.wrapping_add((low(a) + low(b)) >> 32))
        },
    ),
    (
        "mad.lo.cc.u32 %r5, %r1, %r2, %r3; madc.hi.u32 %r4, %r1, %r2, 7; mov.b64 %rd4, {%r5, %r4};",
        |a, b, c| (low(a) * low(b)).wrapping_add(low(c) | 7 << 32),
    ),
    (
        "mad.hi.cc.u32 %r5, %r1, %r2, %r3; madc.lo.cc.u32 %r5, %r1, %r3, %r2; addc.u32 %r4, 0, 0;",
        |a, b, c| {
            let first = ((low(a) * low(b)) >> 32) + low(c);
            (low(a.wrapping_mul(c)) + low(b) + (first >> 32)) >> 32
        },
    ),
    (
        "add.cc.u32 %r5, %r1, %r1; madc.hi.cc.u32 %r5, %r2, -2, %r3; addc.u32 %r4, %r5, 0;",
        |a, b, c| {
            let sum = ((low(b) * 0xffff_fffe) >> 32) + low(c) + (low(a) >> 31);
            low(sum + (sum >> 32))
        },
    ),
    ("neg.s32 %r4, %r1;", |a, _, _| low(a.wrapping_neg())),
    ("not.b64 %rd4, %rd1;", |a, _, _| !a),
    ("and.b64 %rd4, %rd1, %rd2;", |a, b, _| a & b),
    ("or.b64 %rd4, %rd1, %rd2;", |a, b, _| a | b),
    ("xor.b32 %r4, %r1, %r2;", |a, b, _| low(a ^ b)),
    ("min.u32 %r4, %r1, %r2;", |a, b, _| low(a).min(low(b))),
    ("max.s32 %r4, %r1, %r2;", |a, b, _| {
        low(signed(a).max(signed(b)) as u64)
    }),
    ("min.s64 %rd4, %rd1, %rd2;", |a, b, _| {
        (a as i64).min(b as i64) as u64
    }),
    ("shl.b32 %r4, %r1, 5;", |a, _, _| low(low(a) << 5)),
    ("shl.b32 %r4, %r1, %r2;", |a, b, _| {
        low(low(a).checked_shl(low(b).min(64) as u32).unwrap_or(0))
    }),
    ("shr.u64 %rd4, %rd1, 13;", |a, _, _| a >> 13),
    ("shr.s32 %r4, %r1, 9;", |a, _, _| {
        low((signed(a) >> 9) as u64)
    }),
    ("shr.s64 %rd4, %rd1, %r2;", |a, b, _| {
        ((a as i64) >> low(b).min(63)) as u64
    }),
    ("bfi.b32 %r4, %r1, %r2, 5, 11;", |a, b, _| {
        low(b & !(0x7ff << 5) | (a & 0x7ff) << 5)
    }),
    ("bfi.b64 %rd4, %rd1, %rd2, 60, 11;", |a, b, _| {
        b & !(0xf << 60) | a << 60
    }),
    ("shf.l.wrap.b32 %r4, %r1, %r2, 3;", |a, b, _| {
        low(b << 3 | low(a) >> 29)
    }),
    ("shf.r.wrap.b32 %r4, %r1, %r2, %r3;", |a, b, c| {
        low((low(a) | b << 32) >> (c & 31))
    }),
    ("prmt.b32 %r4, %r1, %r2, 30212;", |a, b, _| {
        // Bytes 4, 0, 6, 7 of both, 30212 being 0x7604.
        low(b & 0xff | (a & 0xff) << 8 | (b >> 16 & 0xffff) << 16)
    }),
    ("prmt.b32 %r4, %r1, %r2, 0x9b31;", |a, b, _| {
        let sign = |byte: u64| if byte & 0x80 == 0 { 0 } else { 0xff };
        let byte = |number: u64| (low(a) | b << 32) >> (8 * number) & 0xff;
        byte(1) | byte(3) << 8 | sign(byte(3)) << 16 | sign(byte(1)) << 24
    }),
    ("bfe.u64 %rd4, %rd1, 7, 20;", |a, _, _| a >> 7 & 0xf_ffff),
    ("mov.b64 %rd4, {%r1, %r2};", |a, b, _| low(a) | b << 32),
    ("mov.b64 {%r5, %r4}, %rd1;", |a, _, _| a >> 32),
    ("cvt.s64.s32 %rd4, %r1;", |a, _, _| signed(a) as u64),
    ("cvt.u64.u32 %rd4, %r1;", |a, _, _| low(a)),
    ("cvt.s32.s8 %r4, %r1;", |a, _, _| low(a as i8 as u64)),
    ("cvt.s16.s64 %r4, %rd1;", |a, _, _| low(a as i16 as u64)),
    ("cvt.u16.u64 %r4, %rd1;", |a, _, _| a & 0xffff),
    (
        "setp.lt.u32 %p1, %r1, %r2; selp.b32 %r4, %r3, 9, %p1;",
        |a, b, c| if low(a) < low(b) { low(c) } else { 9 },
    ),
    (
        "setp.ge.s32 %p1, %r1, %r2; selp.b64 %rd4, %rd3, %rd1, %p1;",
        |a, b, c| if signed(a) >= signed(b) { c } else { a },
    ),
    (
        "setp.eq.s64 %p1, %rd1, %rd2; setp.ne.or.b64 %p2, %rd1, 0, %p1; selp.u32 %r4, 1, 0, %p2;",
        |a, b, _| u64::from(a != 0 || a == b),
    ),
    (
        "setp.hi.u64 %p1, %rd1, %rd2; not.pred %p2, %p1; selp.u32 %r4, 1, 0, %p2;",
        |a, b, _| u64::from(a <= b),
    ),
    ("cvt.rn.f64.s64 %rd4, %rd1;", |a, _, _| {
        (a as i64 as f64).to_bits()
    }),
    ("cvt.rn.f64.u32 %rd4, %r1;", |a, _, _| {
        (low(a) as f64).to_bits()
    }),
    (
        "cvt.rn.f64.u64 %rd5, %rd1; cvt.rn.f64.u64 %rd6, %rd2; sub.f64 %rd4, %rd5, %rd6;",
        |a, b, _| (a as f64 - b as f64).to_bits(),
    ),
    (
        "cvt.rn.f64.u64 %rd5, %rd1; neg.f64 %rd5, %rd5; add.rn.f64 %rd4, %rd5, 0d3ff0000000000000;",
        |a, _, _| (1.0 - a as f64).to_bits(),
    ),
];

/// Instructions whose time depends on their operands.
const DIVISIONS: &[Case] = &[
    ("div.u32 %r4, %r1, %r2;", |a, b, _| {
        low(a).checked_div(low(b)).unwrap_or(low(u64::MAX))
    }),
    ("rem.u64 %rd4, %rd1, %rd2;", |a, b, _| {
        a.checked_rem(b).unwrap_or(a)
    }),
    ("div.s32 %r4, %r1, %r2;", |a, b, _| match signed(b) {
        0 => low(u64::MAX),
        divisor => low((signed(a) / divisor) as u64),
    }),
];

fn low(x: u64) -> u64 {
    x & 0xffff_ffff
}

fn signed(x: u64) -> i64 {
    i64::from(x as i32)
}

/// A kernel that executes one statement in each lane, on three numbers with one result.
fn program(statement: &str) -> Program {
    let widened = if statement.contains(" %rd4,") {
        ""
    } else {
        "cvt.u64.u32 %rd4, %r4;"
    };
    let text = format!(
        ".version 7.0
        .target sm_70
        .address_size 64
        .visible .entry one(.param .u64 out, .param .u64 in)
        {{
            .reg .pred %p<3>;
            .reg .b32 %r<7>;
            .reg .b64 %rd<12>;
            mov.u32 %r6, %tid.x;
            ld.param.u64 %rd10, [in];
            mad.wide.u32 %rd10, %r6, 24, %rd10;
            ld.global.u64 %rd1, [%rd10];
            ld.global.u64 %rd2, [%rd10+8];
            ld.global.u64 %rd3, [%rd10+16];
            cvt.u32.u64 %r1, %rd1;
            cvt.u32.u64 %r2, %rd2;
            cvt.u32.u64 %r3, %rd3;
            {statement}
            {widened}
            ld.param.u64 %rd11, [out];
            mad.wide.u32 %rd11, %r6, 8, %rd11;
            st.global.u64 [%rd11], %rd4;
            ret;
        }}"
    );
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let entry = module.entry("one").unwrap();
    entry.decode().unwrap_or_else(|error| panic!("{error}"))
}

/// Runs it on three numbers in each lane. Bytes of the numbers are public where `public` is set.
/// Returns the results and their taint.
fn run(
    program: &Program,
    numbers: &[[u64; 3]; LANES],
    public: [bool; 24],
) -> Result<Vec<(u64, u64)>, Fault> {
    let mut global = Global::default();
    let bytes = numbers.as_flattened().iter().flat_map(|n| n.to_le_bytes());
    let input = global.with_bytes(bytes.collect(), true);
    for at in (0..24 * LANES).filter(|at| public[at % 24]) {
        global.make_public(input, at..at + 1);
    }
    let out = global.uninitialised(8 * LANES);
    let arguments = [Argument::Pointer(out), Argument::Pointer(input)];
    match program.run(&Launch::new(1, LANES as u32), &arguments, &mut global) {
        Err(RunError::Stop(stop)) => return Err(stop.fault),
        Err(error) => panic!("{error}"),
        Ok(_) => {}
    }
    let numbers = |bytes: &[u8]| -> Vec<u64> {
        let words = bytes.chunks_exact(8).map(|word| word.try_into().unwrap());
        words.map(u64::from_le_bytes).collect()
    };
    let out = global.buffer(out);
    Ok(numbers(out.bytes())
        .into_iter()
        .zip(numbers(out.taint()))
        .collect())
}

/// Numbers at the limits and between, different for each `seed`.
fn numbers(seed: u64) -> [[u64; 3]; LANES] {
    let edges = [
        0,
        1,
        5,
        0x7f,
        0x80,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        1 << 32,
        i64::MAX as u64,
        1 << 63,
        u64::MAX,
    ];
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33 ^ state << 31
    };
    core::array::from_fn(|_| {
        core::array::from_fn(|_| {
            let random = next();
            match next() % 3 {
                0 => random,
                1 => random >> (next() % 64),
                _ => edges[random as usize % edges.len()],
            }
        })
    })
}

#[test]
fn values() {
    for (statement, expected) in CASES.iter().chain(DIVISIONS) {
        let program = program(statement);
        for seed in 0..20 {
            let numbers = numbers(seed);
            let results = run(&program, &numbers, [true; 24]).unwrap();
            for ([a, b, c], (result, taint)) in numbers.into_iter().zip(results) {
                assert_eq!(
                    (result, taint),
                    (expected(a, b, c), 0),
                    "{statement} {a:#x} {b:#x} {c:#x}"
                );
            }
        }
    }
}

/// Untainted bits of a result stay the same when the secret bytes change.
#[test]
fn taint_covers_what_secrets_change() {
    let mut untainted = 0;
    for (statement, _) in CASES {
        let program = program(statement);
        for seed in 0..60u64 {
            let mask = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let public: [bool; 24] = core::array::from_fn(|byte| mask >> byte & 1 == 1);
            let (first, mut second) = (numbers(seed), numbers(seed + 1000));
            let pairs = first.as_flattened().iter().zip(second.as_flattened_mut());
            for (number, (from, to)) in pairs.enumerate() {
                let public = (0..8)
                    .filter(|byte| public[8 * (number % 3) + byte])
                    .fold(0, |mask, byte| mask | 0xff << (8 * byte));
                *to = from & public | *to & !public;
            }
            let results = [first, second].map(|numbers| run(&program, &numbers, public).unwrap());
            for ((x, tx), (y, ty)) in results[0].iter().zip(&results[1]) {
                assert_eq!((x ^ y) & !(tx & ty), 0, "{statement} {x:#x} {y:#x} {tx:#x}");
                untainted += (!tx).count_ones();
            }
        }
    }
    // Control: rules that taint everything would pass as well.
    assert!(untainted > 100_000, "{untainted}");
}

#[test]
fn divisions_of_secrets_are_noticed() {
    for (statement, _) in DIVISIONS {
        let result = run(&program(statement), &numbers(1), [false; 24]);
        assert_eq!(result, Err(Fault::SecretLatency), "{statement}");
    }
}
